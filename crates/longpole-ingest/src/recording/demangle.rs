//! Names of kernels as people write them: CUPTI gives the names of the object file, as the compiler mangled them.

use std::borrow::Cow;
use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions};

/// Longer names are kept as they are. The longest of real kernels have a few kilobytes when demangled.
const MAX_LENGTH: usize = 64 << 10;

/// How deep a name may be nested.
const MAX_DEPTH: u32 = 160;

/// Text up to a length: a mangled name may refer to its own parts, and so say in a hundred letters what takes gigabytes to write.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_LENGTH {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// A name, demangled if it is mangled.
pub(super) fn demangled(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.starts_with(b"_Z") || name.len() > MAX_LENGTH {
        return Cow::Borrowed(name);
    }
    let Ok(symbol) = BorrowedSymbol::new(name) else { return Cow::Borrowed(name) };
    let mut text = Bounded(String::new());
    match symbol.structured_demangle(&mut text, &DemangleOptions::new().recursion_limit(MAX_DEPTH)) {
        Ok(()) => Cow::Owned(text.0.into_bytes()),
        Err(_) => Cow::Borrowed(name),
    }
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
            let reference = if at == 0 { "S_".to_owned() } else { format!("S{}_", char::from_digit(at - 1, 36).unwrap_or('Z').to_ascii_uppercase()) };
            bomb += &format!("1BI{reference}{reference}E");
        }
        assert!(name(&bomb).len() <= MAX_LENGTH);
    }
}
