//! Digits in place: short numbers, eight digits at a time.

/// What may stand behind a number that is a member's value.
#[inline]
pub(super) fn ends_number(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        Some(b',' | b'}') => true,
        Some(byte) if byte.is_ascii_whitespace() => matches!(bytes[at..].trim_ascii_start().first(), Some(b',' | b'}')),
        _ => false,
    }
}

/// The digits at `start`, at most 16 of them, as a number, and where they end; `None` when there is no digit.
///
/// Eight at a time: a word without the zeros' high nibble, shifted so that the last digit is in the highest byte, is joined
/// to pairs, fours and eights by multiplication.
#[inline]
pub(super) fn digits(bytes: &[u8], start: usize) -> Option<(u64, usize)> {
    let (word, count) = word_digits(bytes, start);
    match count {
        0 => None,
        1..8 => Some((joined(word << (64 - 8 * count)), start + count)),
        _ => Some(many_digits(bytes, start, joined(word))),
    }
}

/// Eight digits and up to eight more.
#[inline(never)]
fn many_digits(bytes: &[u8], start: usize, high: u64) -> (u64, usize) {
    const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    let (low, more) = word_digits(bytes, start + 8);
    let low = if more == 0 { 0 } else { joined(low << (64 - 8 * more)) };
    (high * POWERS[more] + low, start + 8 + more)
}

/// Eight bytes, each a digit's value if it is a digit, and how many of the first ones are.
#[inline]
fn word_digits(bytes: &[u8], at: usize) -> (u64, usize) {
    let word = match bytes.get(at..at + 8).and_then(|rest| rest.first_chunk::<8>()) {
        Some(word) => u64::from_le_bytes(*word),
        // The last few bytes of the input: anything that is no digit fills up.
        None => last_word(bytes, at),
    };
    let digits = word ^ 0x3030_3030_3030_3030;
    // Bit 7 of every byte that is no digit. Adding 0x76 carries into bit 7 exactly from 10 on, below 0x80; no sum carries
    // into the next byte once bit 7 is masked.
    let other = (((digits & 0x7F7F_7F7F_7F7F_7F7F) + 0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    (digits, (other.trailing_zeros() / 8) as usize)
}

#[cold]
#[inline(never)]
fn last_word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).unwrap_or_default().iter().rev().fold(u64::MAX, |word, byte| (word << 8) | u64::from(*byte))
}

/// The number that eight digit values in one word are, the first in the lowest byte.
#[inline]
fn joined(digits: u64) -> u64 {
    let pairs = (digits * 10 + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    (fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF
}
