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
/// passed by value is never mangled as constant). Of one parameter it stands behind that; of several behind the last but one, and the `&` behind
/// the last.
fn with_const_outside(text: String) -> String {
    const ONE: &str = " const)#";
    const SEVERAL: &str = "&)#";
    let text = if text.contains(ONE) { rewrite_lists(&text, ONE, "}&", |list| Some((list, None))) } else { text };
    if text.contains(" const, ") && text.contains(SEVERAL) {
        rewrite_lists(&text, SEVERAL, "}", |list| {
            let comma = last_comma(list)?;
            Some((list.get(..comma)?.strip_suffix(" const")?, Some(list.get(comma..)?)))
        })
    } else {
        text
    }
}

/// Rewrites `LIST` + `ending` + number + `behind` to `LIST)#NUMBER} const&`. `parts` gives what is left of the list, in up to two parts, if it is one.
fn rewrite_lists(text: &str, ending: &str, behind: &str, parts: impl Fn(&str) -> Option<(&str, Option<&str>)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(ending) {
        let (list, from) = rest.split_at(at);
        let from = from.get(ending.len()..).unwrap_or_default();
        let (number, after) = from.split_at(from.bytes().take_while(u8::is_ascii_digit).count());
        if let (Some(after), Some((first, last))) = (after.strip_prefix(behind), parts(list)) {
            out.extend([first, last.unwrap_or_default(), ")#", number, "} const&"]);
            rest = after;
        } else {
            out.extend([list, ending]);
            rest = from;
        }
    }
    out.push_str(rest);
    out
}

/// Where the last `, ` stands that is in no brackets within the list that the text ends in.
fn last_comma(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_u32;
    for at in (0..bytes.len()).rev() {
        match bytes[at] {
            b')' | b'>' | b'}' | b']' => depth += 1,
            b'(' | b'<' | b'{' | b'[' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 && bytes.get(at + 1) == Some(&b' ') => return Some(at),
            _ => {}
        }
    }
    None
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

    /// Where the lambda has several parameters, too: PyTorch's `where`, as its wheel names it.
    #[test]
    fn constant_lambdas_of_several_parameters_read_so_too() {
        let lambda = "at::native::(anonymous namespace)::where_kernel_impl(at::TensorIterator&)::{lambda()#1}::operator()() \
                      const::{lambda()#3}::operator()() const::{lambda(bool, c10::BFloat16, c10::BFloat16)#1}";
        let inner = format!("at::native::gpu_kernel_impl_nocast<{lambda}>(at::TensorIteratorBase&, {lambda} const&)::{{lambda(int)#1}}");
        assert_eq!(
            name(
                "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_22gpu_kernel_impl_nocastIZZZNS0_49_GLOBAL__N__d2ba64fb_16_TensorCompare_cu_\
                 71e06f4e17where_kernel_implERNS_14TensorIteratorEENKUlvE_clEvENKUlvE1_clEvEUlbN3c108BFloat16ES9_E_EEvRNS_18TensorIteratorBase\
                 ERKT_EUliE_EEviT1_"
            ),
            format!("void at::native::elementwise_kernel<128, 4, {inner}>(int, {inner})")
        );
        let text = |text: &str| with_const_outside(text.to_owned());
        assert_eq!(text("f(L::{lambda(A<B, C> const, D&)#12})"), "f(L::{lambda(A<B, C>, D)#12} const&)");
        // Constants within the brackets of a type are its own.
        for own in ["{lambda(pair<A const, B>&)#1}", "{lambda(A, pair<A const, B>&)#1}", "{lambda(A&)#1}, const, B&)#", "A const, B&)#1"] {
            assert_eq!(text(own), own);
        }
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
