//! Names of kernels as people write them: CUPTI gives the names of the object file, as the compiler mangled them.

use std::borrow::Cow;
use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions};

/// Longer names are kept as they are. The longest of real kernels have a few kilobytes when demangled.
const MAX_LENGTH: usize = 64 << 10;

/// How deep a name may be nested.
const MAX_DEPTH: u32 = 160;

/// Text up to a length: a mangled name may refer to its own parts, and so say in a hundred letters what takes gigabytes to write.
struct Bounded {
    text: String,
    limit: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.limit - self.text.len();
        if text.len() <= room {
            self.text.push_str(text);
            return Ok(());
        }
        self.text.extend(text.chars().scan(room, |room, c| {
            *room = room.checked_sub(c.len_utf8())?;
            Some(c)
        }));
        Err(fmt::Error)
    }
}

/// A name, demangled if it is mangled.
pub(super) fn demangled(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.starts_with(b"_Z") || name.len() > MAX_LENGTH {
        return Cow::Borrowed(name);
    }
    let Ok(symbol) = BorrowedSymbol::new(name) else { return Cow::Borrowed(name) };
    let options = DemangleOptions::new().recursion_limit(MAX_DEPTH);
    let text = |options: DemangleOptions, limit: usize| {
        let mut text = Bounded { text: String::new(), limit };
        let result = symbol.structured_demangle(&mut text, &options);
        (text.text, result.is_ok())
    };
    // Only the outermost function's type is part of a name. A kernel returns nothing, which is said of templates alone: the first letters of the
    // whole tell whether it is one.
    let kind = "void ";
    let is_template = text(options, kind.len()).0 == kind;
    let (text, is_whole) = text(options.no_return_type(), MAX_LENGTH);
    if !is_whole {
        return Cow::Borrowed(name);
    }
    let text = with_const_outside(with_suffixes(text));
    Cow::Owned(if is_template { format!("{kind}{text}") } else { text }.into_bytes())
}

/// Writes `(unsigned long)1` as `1ul`, as the GNU demangler does, and so every profiler that uses it.
fn with_suffixes(text: String) -> String {
    const SUFFIXES: [(&str, &str); 5] =
        [("(unsigned long long)", "ull"), ("(unsigned long)", "ul"), ("(unsigned int)", "u"), ("(long long)", "ll"), ("(long)", "l")];
    if !text.contains("long)") && !text.contains("(unsigned int)") {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('(') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let literal = SUFFIXES.iter().find_map(|(cast, suffix)| {
            let number = from.strip_prefix(cast)?;
            let digits = number.strip_prefix('-').unwrap_or(number).bytes().take_while(u8::is_ascii_digit).count();
            let length = digits + usize::from(number.starts_with('-'));
            (digits > 0).then(|| (number.split_at(length), *suffix))
        });
        if let Some(((number, behind), suffix)) = literal {
            out.push_str(number);
            out.push_str(suffix);
            rest = behind;
        } else {
            out.push('(');
            rest = &from[1..];
        }
    }
    out.push_str(rest);
    out
}

/// A reference to a constant lambda: the demangler writes its `const` into the list of the lambda's parameters, where none can be (what is
/// passed by value is never mangled as constant).
fn with_const_outside(text: String) -> String {
    const MISPLACED: &str = " const)#";
    if !text.contains(MISPLACED) {
        return text;
    }
    let mut parts = text.split(MISPLACED);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = part.split_at(digits);
        match behind.strip_prefix("}&") {
            Some(behind) => out.extend([")#", number, "} const&", behind]),
            None => out.extend([MISPLACED, part]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(mangled: &str) -> String {
        String::from_utf8(demangled(mangled.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn names_read_as_other_profilers_write_them() {
        assert_eq!(name("_Z9vectorAddPKfS0_Pfi"), "vectorAdd(float const*, float const*, float*, int)");
        assert_eq!(
            name("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_"),
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, \
             at::native::FillFunctor<float>, std::array<char*, 1ul>)"
        );
        assert_eq!(name("_ZN4cuda12_GLOBAL__N_14workEv"), "cuda::(anonymous namespace)::work()");
    }

    #[test]
    fn kernels_of_lambdas_read_as_the_gnu_demangler_writes_them() {
        let text = "foo(int)::{lambda(c10::BFloat16)#1}";
        assert_eq!(name("_Z4copyIZ3fooiEUlN3c108BFloat16EE_EvRKT_").replace(text, "L"), "void copy<L>(L const&)");
        assert_eq!(name("_Z3runI1AZ4callIS0_EvRKT_EUliE_EvT0_").replace("call<A>(A const&)::{lambda(int)#1}", "L"), "void run<A, L>(L)");
    }

    #[test]
    fn other_names_stay() {
        for plain in ["ampere_sgemm_128x64_tn", "triton_poi_fused_add_0", "_Znonsense", "_Z", ""] {
            assert_eq!(name(plain), plain);
        }
    }

    #[test]
    fn a_name_that_grows_without_end_stays() {
        // Each pair of arguments doubles what it refers to.
        let mut bomb = "_Z1fI1AE".to_owned();
        for at in 0..64 {
            let reference =
                if at == 0 { "S_".to_owned() } else { format!("S{}_", char::from_digit(at - 1, 36).unwrap_or('Z').to_ascii_uppercase()) };
            bomb.extend(["1BI", &reference, &reference, "E"]);
        }
        assert!(name(&bomb).len() <= MAX_LENGTH);
    }
}
