//! Names as NVIDIA's tools demangle them, in the spelling of the GNU demangler, which traces have.
//!
//! | NVIDIA | GNU |
//! |---|---|
//! | `<unnamed>::f` | `(anonymous namespace)::f` |
//! | `[lambda(float) (instance 1)]` | `{lambda(float)#1}` |
//! | `operator ()() const` | `operator()() const` |
//! | `f<(int)4, (bool)0>` | `f<4, 0>` |

use std::borrow::Cow;

/// Types that stand before a number in a list of template arguments.
const CASTS: &[&str] = &[
    "(int)",
    "(unsigned int)",
    "(long)",
    "(unsigned long)",
    "(bool)",
    "(short)",
    "(unsigned short)",
    "(char)",
    "(unsigned char)",
    "(long long)",
    "(unsigned long long)",
];

/// `name` in GNU spelling. Names that are in it already come back as they are.
pub(crate) fn gnu_spelling(name: &str) -> Cow<'_, str> {
    if !["<unnamed>", "[lambda(", "operator ()", "<(", ", ("].iter().any(|mark| name.contains(mark)) {
        return Cow::Borrowed(name);
    }
    let name = name.replace("<unnamed>", "(anonymous namespace)").replace("operator ()", "operator()").replace(", void ", ", ");
    Cow::Owned(without_casts(&with_braces(&name)))
}

fn with_braces(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    // Lambdas in the arguments of lambdas nest; each bracket is looked at once.
    let mut open = 0_usize;
    while let Some(at) = rest.find(['[', ']', ')']) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let instance = after.strip_prefix(") (instance ").and_then(|tail| tail.split_once(")]")).filter(|_| open > 0);
        if after.starts_with("[lambda(") {
            open += 1;
            out.push('{');
            rest = &after[1..];
        } else if let Some((number, tail)) = instance.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit())) {
            open -= 1;
            out.push_str(")#");
            out.push_str(number);
            out.push('}');
            rest = tail;
        } else {
            out.push_str(&after[..1]);
            rest = &after[1..];
        }
    }
    out.push_str(rest);
    out
}

fn without_casts(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('(') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let is_argument = out.ends_with('<') || out.ends_with(", ");
        let is_number = |tail: &&str| tail.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let number = CASTS.iter().find_map(|cast| after.strip_prefix(cast).filter(is_number)).filter(|_| is_argument);
        if let Some(number) = number {
            rest = number;
        } else {
            out.push('(');
            rest = &after[1..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_demanglers_spell_a_kernel_alike() {
        for (nvidia, gnu) in [
            (
                "void at::native::<unnamed>::silu_kernel(at::T &)::[lambda() (instance 1)]::operator ()() const::[lambda(float) (instance 12)]",
                "void at::native::(anonymous namespace)::silu_kernel(at::T &)::{lambda()#1}::operator()() const::{lambda(float)#12}",
            ),
            ("void f<(int)128, (unsigned long)2, (bool)0, (int)-2>(int, T3)", "void f<128, 2, 0, -2>(int, T3)"),
            ("void f<int, (anonymous)>(int (*)(int), (int)x)", "void f<int, (anonymous)>(int (*)(int), (int)x)"),
            ("f[3](int) (instance 1)]", "f[3](int) (instance 1)]"),
        ] {
            assert_eq!(gnu_spelling(nvidia), gnu);
        }
        assert!(matches!(gnu_spelling("void f<4>(int)"), Cow::Borrowed(_)));
    }
}
