//! Bytes into classes: one bit a byte, one word for 64 bytes, one list of words a class.
//!
//! Three kernels, for AVX-512BW, AVX2 and everything else.

use super::{BLOCK, CHUNK};

/// One word for each block of a chunk. Bit `i` is byte `i` of the block.
pub(super) type Words = [u64; CHUNK];

/// What the bytes of a chunk are, strings included.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Classes {
    pub(super) quote: Words,
    /// Backslashes; once a chunk was gone through, what they escape, in groups that have any.
    pub(super) backslash: Words,
    /// Opening brackets of both kinds.
    pub(super) open: Words,
    /// Closing brackets of both kinds.
    pub(super) close: Words,
    /// Bytes with the bit that tells braces from square brackets.
    pub(super) curly: Words,
    pub(super) colon: Words,
    pub(super) comma: Words,
    /// White space that JSON knows where colons are wanted, control characters too where they are not.
    pub(super) white: Words,
}

impl Classes {
    pub(super) fn new() -> Self {
        let none = [0; CHUNK];
        Self { quote: none, backslash: none, open: none, close: none, curly: none, colon: none, comma: none, white: none }
    }

    /// Fills one place with what 64 blanks are.
    pub(super) fn set_blank(&mut self, at: usize) {
        for class in
            [&mut self.quote, &mut self.backslash, &mut self.open, &mut self.close, &mut self.curly, &mut self.colon, &mut self.comma]
        {
            class[at] = 0;
        }
        self.white[at] = u64::MAX;
    }
}

/// Sets the bits of one block.
#[inline]
pub(super) fn classify_portable<const COLONS: bool>(block: &[u8; BLOCK], at: usize, classes: &mut Classes) {
    let bits = |is: fn(u8) -> bool| block.iter().rev().fold(0, |bits, byte| (bits << 1) | u64::from(is(*byte)));
    classes.quote[at] = bits(|byte| byte == b'"');
    classes.backslash[at] = bits(|byte| byte == b'\\');
    classes.open[at] = bits(|byte| matches!(byte, b'{' | b'['));
    classes.close[at] = bits(|byte| matches!(byte, b'}' | b']'));
    classes.curly[at] = bits(|byte| byte & 0x20 != 0);
    classes.colon[at] = bits(|byte| byte == b':');
    classes.comma[at] = bits(|byte| byte == b',');
    classes.white[at] = if COLONS { bits(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) } else { bits(|byte| byte <= b' ') };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
#[expect(clippy::cast_ptr_alignment, reason = "the loads are unaligned ones")]
pub(super) fn classify_avx2<const COLONS: bool>(block: &[u8; BLOCK], at: usize, classes: &mut Classes) {
    use std::arch::x86_64::{
        __m256i, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8, _mm256_shuffle_epi8, _mm256_slli_epi16,
    };
    // SAFETY: the block is 64 bytes, and the two unaligned loads read bytes 0..32 and 32..64.
    let halves = [0, 32].map(|half| unsafe { _mm256_loadu_si256(block.as_ptr().add(half).cast::<__m256i>()) });
    let bits = |halves: [__m256i; 2]| {
        let [low, high] = halves.map(|half| u64::from(_mm256_movemask_epi8(half) as u32));
        low | (high << 32)
    };
    let folded = halves.map(|half| _mm256_or_si256(half, _mm256_set1_epi8(0x20)));
    let is = |halves: [__m256i; 2], byte: u8| bits(halves.map(|half| _mm256_cmpeq_epi8(half, _mm256_set1_epi8(byte as i8))));
    classes.quote[at] = is(halves, b'"');
    classes.backslash[at] = is(halves, b'\\');
    classes.open[at] = is(folded, b'{');
    classes.close[at] = is(folded, b'}');
    // Bit 5 where the top bit is taken from.
    classes.curly[at] = bits(halves.map(|half| _mm256_slli_epi16::<2>(half)));
    classes.colon[at] = is(halves, b':');
    classes.comma[at] = is(halves, b',');
    classes.white[at] = bits(halves.map(|half| {
        let known = if COLONS {
            _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(white_table()), half)
        } else {
            _mm256_min_epu8(half, _mm256_set1_epi8(0x20))
        };
        _mm256_cmpeq_epi8(known, half)
    }));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
#[expect(clippy::cast_ptr_alignment, reason = "the load is an unaligned one")]
pub(super) fn classify_avx512<const COLONS: bool>(block: &[u8; BLOCK], at: usize, classes: &mut Classes) {
    use std::arch::x86_64::{
        __m512i, _mm512_broadcast_i32x4, _mm512_cmpeq_epi8_mask, _mm512_cmple_epu8_mask, _mm512_loadu_si512, _mm512_or_si512,
        _mm512_set1_epi8, _mm512_shuffle_epi8, _mm512_test_epi8_mask,
    };
    // SAFETY: the block is exactly the 64 bytes that the unaligned load reads.
    let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast::<__m512i>()) };
    let fold = _mm512_set1_epi8(0x20);
    let folded = _mm512_or_si512(bytes, fold);
    let is = |v: __m512i, byte: u8| _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(byte as i8));
    classes.quote[at] = is(bytes, b'"');
    classes.backslash[at] = is(bytes, b'\\');
    classes.open[at] = is(folded, b'{');
    classes.close[at] = is(folded, b'}');
    classes.curly[at] = _mm512_test_epi8_mask(bytes, fold);
    classes.colon[at] = is(bytes, b':');
    classes.comma[at] = is(bytes, b',');
    classes.white[at] = if COLONS {
        _mm512_cmpeq_epi8_mask(_mm512_shuffle_epi8(_mm512_broadcast_i32x4(white_table()), bytes), bytes)
    } else {
        _mm512_cmple_epu8_mask(bytes, fold)
    };
}

/// White space by its low four bits, for a look-up of 16 bytes: a byte that is white space finds itself. (A byte of 0x80 and more finds
/// zero.)
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn white_table() -> std::arch::x86_64::__m128i {
    std::arch::x86_64::_mm_setr_epi8(0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x0A, 0, 0, 0x0D, 0, 0)
}
