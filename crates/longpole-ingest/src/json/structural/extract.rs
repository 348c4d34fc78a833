//! Set bits into positions.

use super::BLOCK;

/// Room that must be left behind the positions of a chunk: some are written in bulk and overwritten by the next.
pub(super) const SLACK: usize = BLOCK;

/// Positions written without a test between: a block of a trace holds about this many.
const UNROLL: usize = 4;

/// Appends the positions of all bits of `found`, the first of which is at `base`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled with its caller's target features")]
pub(super) fn extract(found: &[u64], base: usize, out: &mut Vec<u32>) {
    let mut len = out.len();
    debug_assert!(out.capacity() >= len + found.len() * BLOCK + SLACK);
    for (at, &word) in found.iter().enumerate() {
        let (mut bits, base) = (word, (base + at * BLOCK) as u32);
        let count = bits.count_ones() as usize;
        let mut slot = out.as_mut_ptr().wrapping_add(len);
        let mut left = count as isize;
        while left > 0 {
            for offset in 0..UNROLL {
                // SAFETY: `fill` reserved room for every byte of its window and the slack; `slot + offset` is less than `UNROLL` past
                // `len + count`.
                unsafe { slot.wrapping_add(offset).write(base.wrapping_add(bits.trailing_zeros())) };
                bits &= bits.wrapping_sub(1);
            }
            slot = slot.wrapping_add(UNROLL);
            left -= UNROLL as isize;
        }
        len += count;
    }
    // SAFETY: the slots up to `len` were just written, and lie inside the capacity.
    unsafe { out.set_len(len) };
}

/// The same. The numbers of all bits, 0 to 63, are squeezed to those of the set bits, and widened; there are rarely more than 16.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
#[inline]
#[expect(clippy::cast_ptr_alignment, reason = "the loads and stores are unaligned ones")]
pub(super) fn extract_avx512(found: &[u64], base: usize, out: &mut Vec<u32>) {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi32, _mm512_castsi512_si128, _mm512_cvtepu8_epi32, _mm512_extracti32x4_epi32, _mm512_loadu_si512,
        _mm512_maskz_compress_epi8, _mm512_set1_epi32, _mm512_storeu_si512,
    };
    const NUMBERS: [u8; BLOCK] = {
        let (mut numbers, mut at) = ([0; BLOCK], 0);
        while at < BLOCK {
            numbers[at] = at as u8;
            at += 1;
        }
        numbers
    };
    let mut len = out.len();
    debug_assert!(out.capacity() >= len + found.len() * BLOCK + SLACK);
    // SAFETY: there are 64 numbers.
    let numbers = unsafe { _mm512_loadu_si512(NUMBERS.as_ptr().cast::<__m512i>()) };
    let mut base = _mm512_set1_epi32(base as i32);
    let slots = out.as_mut_ptr();
    for &word in found {
        let set = _mm512_maskz_compress_epi8(word, numbers);
        let count = word.count_ones() as usize;
        let write = |quarter, offset: usize| {
            let positions = _mm512_add_epi32(_mm512_cvtepu8_epi32(quarter), base);
            // SAFETY: `fill` reserved room for every byte of its window and the slack, which is more than the 64 slots that a block
            // may write behind `len`.
            unsafe { _mm512_storeu_si512(slots.add(len + offset).cast::<__m512i>(), positions) };
        };
        write(_mm512_castsi512_si128(set), 0);
        if count > 16 {
            write(_mm512_extracti32x4_epi32::<1>(set), 16);
            write(_mm512_extracti32x4_epi32::<2>(set), 32);
            write(_mm512_extracti32x4_epi32::<3>(set), 48);
        }
        len += count;
        base = _mm512_add_epi32(base, _mm512_set1_epi32(BLOCK as i32));
    }
    // SAFETY: the slots up to `len` were just written, and lie inside the capacity.
    unsafe { out.set_len(len) };
}
