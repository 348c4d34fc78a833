//! 64 bytes as bit masks, with the widest instructions a machine has.

#![expect(clippy::inline_always, reason = "code compiled for one instruction set must end up inside the function that enables it")]

/// Bit `i` speaks of byte `i` of the block.
pub(super) struct Masks {
    pub(super) quotes: u64,
    pub(super) backslashes: u64,
    pub(super) opens: u64,
    pub(super) closes: u64,
    /// The two bytes after this one are `ca`, `du` or `ph`.
    pub(super) keys: u64,
}

pub(super) trait Isa {
    /// # Safety
    /// 66 bytes from `from` on must be readable, and the machine must have the instructions.
    unsafe fn masks(from: *const u8) -> Masks;
    /// Bit `i` of the result is the xor of bits 0 to `i`.
    fn prefix_xor(bits: u64) -> u64;
}

/// Plain Rust, for any machine.
pub(super) struct Scalar;

impl Isa for Scalar {
    #[inline(always)]
    unsafe fn masks(from: *const u8) -> Masks {
        // SAFETY: the caller vouches for 66 readable bytes.
        let window = unsafe { std::slice::from_raw_parts(from, 66) };
        let mut masks = Masks { quotes: 0, backslashes: 0, opens: 0, closes: 0, keys: 0 };
        for i in 0..64 {
            let bit = 1 << i;
            match window[i] {
                b'"' => masks.quotes |= bit,
                b'\\' => masks.backslashes |= bit,
                b'{' => masks.opens |= bit,
                b'}' => masks.closes |= bit,
                _ => {}
            }
            if matches!(&window[i + 1..i + 3], b"ca" | b"du" | b"ph") {
                masks.keys |= bit;
            }
        }
        masks
    }

    #[inline(always)]
    fn prefix_xor(mut bits: u64) -> u64 {
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << shift;
        }
        bits
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512, has_avx2, has_avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8, _mm256_and_si256, _mm256_cmpeq_epi8,
        _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm512_cmpeq_epi8_mask, _mm512_loadu_si512,
        _mm512_set1_epi8,
    };

    use super::{Isa, Masks};

    pub(in super::super) fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("pclmulqdq")
    }

    pub(in super::super) fn has_avx512() -> bool {
        has_avx2() && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
    }

    /// A carry-less product with all ones is a prefix xor.
    #[inline(always)]
    fn clmul_prefix_xor(bits: u64) -> u64 {
        // SAFETY: reached only from functions compiled for, and run on, machines with these instructions.
        unsafe { _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1))) as u64 }
    }

    pub(in super::super) struct Avx2;

    impl Isa for Avx2 {
        #[inline(always)]
        unsafe fn masks(from: *const u8) -> Masks {
            // SAFETY: the caller vouches for the bytes and the instructions.
            unsafe {
                let load =
                    |at: usize| -> [__m256i; 2] { [_mm256_loadu_si256(from.add(at).cast()), _mm256_loadu_si256(from.add(at + 32).cast())] };
                let bits = |half: [__m256i; 2]| {
                    u64::from(_mm256_movemask_epi8(half[0]).cast_unsigned())
                        | (u64::from(_mm256_movemask_epi8(half[1]).cast_unsigned()) << 32)
                };
                let is = |half: [__m256i; 2], byte: u8| {
                    let byte = _mm256_set1_epi8(byte as i8);
                    [_mm256_cmpeq_epi8(half[0], byte), _mm256_cmpeq_epi8(half[1], byte)]
                };
                let and = |a: [__m256i; 2], b: [__m256i; 2]| [_mm256_and_si256(a[0], b[0]), _mm256_and_si256(a[1], b[1])];
                let or = |a: [__m256i; 2], b: [__m256i; 2]| [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])];
                let (here, next, after) = (load(0), load(1), load(2));
                let cat = and(is(next, b'c'), is(after, b'a'));
                let dur = and(is(next, b'd'), is(after, b'u'));
                let ph = and(is(next, b'p'), is(after, b'h'));
                Masks {
                    quotes: bits(is(here, b'"')),
                    backslashes: bits(is(here, b'\\')),
                    opens: bits(is(here, b'{')),
                    closes: bits(is(here, b'}')),
                    keys: bits(or(or(cat, dur), ph)),
                }
            }
        }

        #[inline(always)]
        fn prefix_xor(bits: u64) -> u64 {
            clmul_prefix_xor(bits)
        }
    }

    pub(in super::super) struct Avx512;

    impl Isa for Avx512 {
        #[inline(always)]
        unsafe fn masks(from: *const u8) -> Masks {
            // SAFETY: the caller vouches for the bytes and the instructions.
            unsafe {
                let here = _mm512_loadu_si512(from.cast());
                let next = _mm512_loadu_si512(from.add(1).cast());
                let after = _mm512_loadu_si512(from.add(2).cast());
                let cat = _mm512_cmpeq_epi8_mask(next, _mm512_set1_epi8(b'c' as i8))
                    & _mm512_cmpeq_epi8_mask(after, _mm512_set1_epi8(b'a' as i8));
                let dur = _mm512_cmpeq_epi8_mask(next, _mm512_set1_epi8(b'd' as i8))
                    & _mm512_cmpeq_epi8_mask(after, _mm512_set1_epi8(b'u' as i8));
                let ph = _mm512_cmpeq_epi8_mask(next, _mm512_set1_epi8(b'p' as i8))
                    & _mm512_cmpeq_epi8_mask(after, _mm512_set1_epi8(b'h' as i8));
                Masks {
                    quotes: _mm512_cmpeq_epi8_mask(here, _mm512_set1_epi8(b'"' as i8)),
                    backslashes: _mm512_cmpeq_epi8_mask(here, _mm512_set1_epi8(b'\\' as i8)),
                    opens: _mm512_cmpeq_epi8_mask(here, _mm512_set1_epi8(b'{' as i8)),
                    closes: _mm512_cmpeq_epi8_mask(here, _mm512_set1_epi8(b'}' as i8)),
                    keys: cat | dur | ph,
                }
            }
        }

        #[inline(always)]
        fn prefix_xor(bits: u64) -> u64 {
            clmul_prefix_xor(bits)
        }
    }
}
