//! Several words beside each other, as one long row of bits: the same steps for one, four and eight blocks of 64 bytes.

use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A number of words; word 0 holds the first bits of the row.
///
/// Only [`Lanes::load`] and [`Lanes::spread`] make a value from nothing, and are unsafe: whoever calls them knows that the processor has
/// what the type needs. All else takes a value, which proves it.
pub(super) trait Lanes: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self> {
    /// How many words.
    const COUNT: usize;

    /// The first words of `words`, which are at least [`Lanes::COUNT`].
    ///
    /// # Safety
    /// The processor must have the features that the type is named for.
    unsafe fn load(words: &[u64]) -> Self;

    /// A word of ones for each bit that is set in `bits`, and of zeros for the others.
    ///
    /// # Safety
    /// The processor must have the features that the type is named for.
    unsafe fn spread(bits: u32) -> Self;

    /// Writes the words to the beginning of `words`, which are at least [`Lanes::COUNT`].
    fn store(self, words: &mut [u64]);

    /// The whole row moved up by one bit; bit 0 is the last bit of `before`.
    fn up(self, before: Self) -> Self;

    /// Bit `i` of each word becomes the parity of its bits up to and including `i`.
    fn prefix_xor(self) -> Self;

    /// The highest bit of each word.
    fn tops(self) -> u32;

    /// The sum of each word and its counterpart, without carries between words; and which sums went over, and which are all ones.
    fn sums(self, other: Self) -> (Self, u32, u32);

    /// One added to the words whose bit is set in `lanes`.
    fn plus_one(self, lanes: u32) -> Self;

    /// No bit is set.
    fn is_zero(self) -> bool;
}

/// The parity of all bits up to and including each. `carry` is 1 when an odd number came before, and is brought up to date.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled with its caller's target features")]
pub(super) fn parity<L: Lanes>(bits: L, carry: &mut u32) -> L {
    let within = bits.prefix_xor();
    let mut odd = within.tops();
    for shift in [1, 2, 4] {
        if shift < L::COUNT {
            odd ^= odd << shift;
        }
    }
    let before = (odd << 1) ^ carry.wrapping_neg();
    *carry = (before >> L::COUNT) & 1;
    // SAFETY: `bits` proves that the processor has what the type needs.
    within ^ unsafe { L::spread(before) }
}

/// Two sums of two rows each, as long numbers. `carry` has bit 0 set when one is to be added to the first and bit 16 when to the second,
/// and is brought up to date.
///
/// A word goes over by itself (`over`), or passes a carry on if it is all ones: which words get one added is again a sum, of those two
/// short rows of bits. Each sum waits for the one before, so that both are done in one number.
#[inline(always)]
pub(super) fn two_sums<L: Lanes>(first: (L, L), second: (L, L), carry: &mut u32) -> (L, L) {
    const SECOND: u32 = 16;
    let (first, over, full) = first.0.sums(first.1);
    let (second, second_over, second_full) = second.0.sums(second.1);
    let (over, full) = (over | (second_over << SECOND), full | (second_full << SECOND));
    let carried = (((over << 1) | *carry) + full) ^ full;
    *carry = (carried >> L::COUNT) & (1 | (1 << SECOND));
    (first.plus_one(carried), second.plus_one(carried >> SECOND))
}

impl Lanes for u64 {
    const COUNT: usize = 1;

    #[inline]
    unsafe fn load(words: &[u64]) -> Self {
        words[0]
    }

    #[inline]
    unsafe fn spread(bits: u32) -> Self {
        Self::from(bits & 1).wrapping_neg()
    }

    #[inline]
    fn store(self, words: &mut [u64]) {
        words[0] = self;
    }

    #[inline]
    fn up(self, before: Self) -> Self {
        (self << 1) | (before >> 63)
    }

    #[inline]
    fn prefix_xor(mut self) -> Self {
        for shift in [1, 2, 4, 8, 16, 32] {
            self ^= self << shift;
        }
        self
    }

    #[inline]
    fn tops(self) -> u32 {
        (self >> 63) as u32
    }

    #[inline]
    fn sums(self, other: Self) -> (Self, u32, u32) {
        let (sum, over) = self.overflowing_add(other);
        (sum, u32::from(over), u32::from(sum == Self::MAX))
    }

    #[inline]
    fn plus_one(self, lanes: u32) -> Self {
        self.wrapping_add(Self::from(lanes & 1))
    }

    #[inline]
    fn is_zero(self) -> bool {
        self == 0
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
#[expect(clippy::inline_always, reason = "must be compiled with the caller's target features")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_add_epi64, _mm256_and_si256, _mm256_blend_epi32, _mm256_castsi256_pd, _mm256_cmpeq_epi64,
        _mm256_cmpgt_epi64, _mm256_loadu_si256, _mm256_movemask_pd, _mm256_or_si256, _mm256_permute4x64_epi64, _mm256_set1_epi64x,
        _mm256_setr_epi64x, _mm256_slli_epi64, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_sub_epi64, _mm256_testz_si256,
        _mm256_xor_si256, _mm512_add_epi64, _mm512_alignr_epi64, _mm512_and_si512, _mm512_clmulepi64_epi128, _mm512_cmpeq_epi64_mask,
        _mm512_cmplt_epu64_mask, _mm512_loadu_si512, _mm512_mask_sub_epi64, _mm512_movepi64_mask, _mm512_movm_epi64, _mm512_or_si512,
        _mm512_set1_epi64, _mm512_shldi_epi64, _mm512_storeu_si512, _mm512_test_epi64_mask, _mm512_unpacklo_epi64, _mm512_xor_si512,
    };
    use std::ops::{BitAnd, BitOr, BitXor, Not};

    use super::Lanes;

    /// Four words, on a processor with AVX2.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2(__m256i);

    /// Eight words, on a processor with AVX-512F, DQ and VBMI2, and VPCLMULQDQ.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512(__m512i);

    macro_rules! operator {
        ($trait:ident, $method:ident, $type:ident, $intrinsic:ident) => {
            impl $trait for $type {
                type Output = Self;
                #[inline(always)]
                fn $method(self, other: Self) -> Self {
                    // SAFETY: a value of the type proves that the processor has the feature.
                    Self(unsafe { $intrinsic(self.0, other.0) })
                }
            }
        };
    }
    operator!(BitAnd, bitand, Avx2, _mm256_and_si256);
    operator!(BitOr, bitor, Avx2, _mm256_or_si256);
    operator!(BitXor, bitxor, Avx2, _mm256_xor_si256);
    operator!(BitAnd, bitand, Avx512, _mm512_and_si512);
    operator!(BitOr, bitor, Avx512, _mm512_or_si512);
    operator!(BitXor, bitxor, Avx512, _mm512_xor_si512);

    impl Not for Avx2 {
        type Output = Self;
        #[inline(always)]
        fn not(self) -> Self {
            // SAFETY: a value of the type proves that the processor has AVX2.
            Self(unsafe { _mm256_xor_si256(self.0, _mm256_set1_epi64x(-1)) })
        }
    }

    impl Not for Avx512 {
        type Output = Self;
        #[inline(always)]
        fn not(self) -> Self {
            // SAFETY: a value of the type proves that the processor has AVX-512F.
            Self(unsafe { _mm512_xor_si512(self.0, _mm512_set1_epi64(-1)) })
        }
    }

    impl Lanes for Avx2 {
        const COUNT: usize = 4;

        #[inline(always)]
        unsafe fn load(words: &[u64]) -> Self {
            let words = &words[..4];
            // SAFETY: the caller vouches for AVX2, and the unaligned load reads the four words.
            Self(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
        }

        #[inline(always)]
        unsafe fn spread(bits: u32) -> Self {
            // SAFETY: the caller vouches for AVX2.
            Self(unsafe {
                let each = _mm256_setr_epi64x(1, 2, 4, 8);
                _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(i64::from(bits)), each), each)
            })
        }

        #[inline(always)]
        fn store(self, words: &mut [u64]) {
            let words = &mut words[..4];
            // SAFETY: `self` proves AVX2, and the unaligned store writes the four words.
            unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) }
        }

        #[inline(always)]
        fn up(self, before: Self) -> Self {
            // SAFETY: `self` proves AVX2.
            Self(unsafe {
                // Each word's predecessor: both rows turned by one word, the first word from `before`.
                let (own, others) = (_mm256_permute4x64_epi64::<0x93>(self.0), _mm256_permute4x64_epi64::<0x93>(before.0));
                let previous = _mm256_blend_epi32::<0b0000_0011>(own, others);
                _mm256_or_si256(_mm256_slli_epi64::<1>(self.0), _mm256_srli_epi64::<63>(previous))
            })
        }

        #[inline(always)]
        fn prefix_xor(self) -> Self {
            let mut bits = self.0;
            // SAFETY: `self` proves AVX2.
            unsafe {
                bits = _mm256_xor_si256(bits, _mm256_slli_epi64::<1>(bits));
                bits = _mm256_xor_si256(bits, _mm256_slli_epi64::<2>(bits));
                bits = _mm256_xor_si256(bits, _mm256_slli_epi64::<4>(bits));
                bits = _mm256_xor_si256(bits, _mm256_slli_epi64::<8>(bits));
                bits = _mm256_xor_si256(bits, _mm256_slli_epi64::<16>(bits));
                bits = _mm256_xor_si256(bits, _mm256_slli_epi64::<32>(bits));
            }
            Self(bits)
        }

        #[inline(always)]
        fn tops(self) -> u32 {
            // SAFETY: `self` proves AVX2.
            unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(self.0)) as u32 }
        }

        #[inline(always)]
        fn sums(self, other: Self) -> (Self, u32, u32) {
            // SAFETY: `self` proves AVX2.
            unsafe {
                let sum = _mm256_add_epi64(self.0, other.0);
                // There is no comparison of unsigned numbers; with the top bits turned, that of signed ones is it.
                let top = _mm256_set1_epi64x(i64::MIN);
                let over = _mm256_cmpgt_epi64(_mm256_xor_si256(self.0, top), _mm256_xor_si256(sum, top));
                let full = _mm256_cmpeq_epi64(sum, _mm256_set1_epi64x(-1));
                (Self(sum), Self(over).tops(), Self(full).tops())
            }
        }

        #[inline(always)]
        fn plus_one(self, lanes: u32) -> Self {
            // SAFETY: `self` proves AVX2. All ones is minus one.
            Self(unsafe { _mm256_sub_epi64(self.0, Self::spread(lanes).0) })
        }

        #[inline(always)]
        fn is_zero(self) -> bool {
            // SAFETY: `self` proves AVX2.
            unsafe { _mm256_testz_si256(self.0, self.0) == 1 }
        }
    }

    impl Lanes for Avx512 {
        const COUNT: usize = 8;

        #[inline(always)]
        unsafe fn load(words: &[u64]) -> Self {
            let words = &words[..8];
            // SAFETY: the caller vouches for AVX-512F, and the unaligned load reads the eight words.
            Self(unsafe { _mm512_loadu_si512(words.as_ptr().cast()) })
        }

        #[inline(always)]
        unsafe fn spread(bits: u32) -> Self {
            // SAFETY: the caller vouches for AVX-512DQ.
            Self(unsafe { _mm512_movm_epi64(bits as u8) })
        }

        #[inline(always)]
        fn store(self, words: &mut [u64]) {
            let words = &mut words[..8];
            // SAFETY: `self` proves AVX-512F, and the unaligned store writes the eight words.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) }
        }

        #[inline(always)]
        fn up(self, before: Self) -> Self {
            // SAFETY: `self` proves AVX-512F and VBMI2.
            Self(unsafe { _mm512_shldi_epi64::<1>(self.0, _mm512_alignr_epi64::<7>(self.0, before.0)) })
        }

        #[inline(always)]
        fn prefix_xor(self) -> Self {
            // SAFETY: `self` proves AVX-512F and VPCLMULQDQ. A carry-less multiplication by all ones is the parity wanted, in its lower
            // half; each takes every second word.
            Self(unsafe {
                let ones = _mm512_set1_epi64(-1);
                let (even, odd) = (_mm512_clmulepi64_epi128::<0x00>(self.0, ones), _mm512_clmulepi64_epi128::<0x01>(self.0, ones));
                _mm512_unpacklo_epi64(even, odd)
            })
        }

        #[inline(always)]
        fn tops(self) -> u32 {
            // SAFETY: `self` proves AVX-512DQ.
            u32::from(unsafe { _mm512_movepi64_mask(self.0) })
        }

        #[inline(always)]
        fn sums(self, other: Self) -> (Self, u32, u32) {
            // SAFETY: `self` proves AVX-512F.
            unsafe {
                let sum = _mm512_add_epi64(self.0, other.0);
                let (over, full) = (_mm512_cmplt_epu64_mask(sum, self.0), _mm512_cmpeq_epi64_mask(sum, _mm512_set1_epi64(-1)));
                (Self(sum), u32::from(over), u32::from(full))
            }
        }

        #[inline(always)]
        fn plus_one(self, lanes: u32) -> Self {
            // SAFETY: `self` proves AVX-512F.
            Self(unsafe { _mm512_mask_sub_epi64(self.0, lanes as u8, self.0, _mm512_set1_epi64(-1)) })
        }

        #[inline(always)]
        fn is_zero(self) -> bool {
            // SAFETY: `self` proves AVX-512F.
            unsafe { _mm512_test_epi64_mask(self.0, self.0) == 0 }
        }
    }
}
