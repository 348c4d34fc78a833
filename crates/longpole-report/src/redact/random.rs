//! Long runs that look like random bytes in hexadecimal or base 64.
//!
//! What tells a secret from a kernel name of the same length is how often the kind of character changes (lower case, upper
//! case, digit): about 62 % of neighbours in random base 64, below 30 % in words that people and compilers write. Mangled C++
//! names and the dense names of some kernel libraries are as busy as random text, and are told by their marks.

use super::Hidden;

/// Shorter runs are not judged: 32 hexadecimal digits are 128 bits.
const MIN: usize = 32;
/// Share of neighbours of different kinds from which a run is random, in percent.
const BUSY_PERCENT: usize = 38;
/// Words that name kernels and caches of kernels; the hashes beside them are no secrets.
const KERNEL_WORDS: [&[u8]; 9] = [b"kernel", b"triton", b"inductor", b"cutlass", b"gemm", b"nvjet", b"cublas", b"cudnn", b"xmma"];
/// How far before a run a kernel word still speaks for it.
const CONTEXT: usize = 32;

fn in_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-')
}

/// The next random run at or after `from`.
pub(super) fn next(text: &[u8], from: usize) -> Option<Hidden> {
    let mut floor = from;
    // A run of MIN bytes cannot hide between two looks that are MIN bytes apart.
    let mut at = from + MIN - 1;
    while at < text.len() {
        if !in_run(text[at]) {
            floor = at + 1;
            at += MIN;
            continue;
        }
        let start = at - text[floor..at].iter().rev().take_while(|&&byte| in_run(byte)).count();
        let end = at + text[at..].iter().take_while(|&&byte| in_run(byte)).count();
        if end - start >= MIN
            && let Some(hidden) = judge(text, start, end)
        {
            return Some(hidden);
        }
        floor = end;
        at = end + MIN;
    }
    None
}

/// What of a run is a secret: the whole of it in base 64, or from its first hexadecimal piece on.
fn judge(text: &[u8], start: usize, end: usize) -> Option<Hidden> {
    let run = &text[start..end];
    let context = &text[start.saturating_sub(CONTEXT)..end];
    let known = |word: &[u8]| context.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    let hidden_from = if is_base64(run) {
        start
    } else {
        let mut at = start;
        let mut pieces = run.split(|&byte| !byte.is_ascii_alphanumeric());
        loop {
            let piece = pieces.next()?;
            if is_hex(piece) {
                break at;
            }
            at += piece.len() + 1;
        }
    };
    let is_code = is_mangled(run) || KERNEL_WORDS.iter().any(|word| known(word));
    (!is_code).then(|| Hidden::secret(hidden_from, end))
}

fn is_mangled(run: &[u8]) -> bool {
    run.starts_with(b"_Z") || run.windows(3).any(|part| part == b"_ZN")
}

/// Hexadecimal of one case with the variety that random digits have. Signatures such as `0d1d2d3de` use few letters.
fn is_hex(piece: &[u8]) -> bool {
    // Databricks puts these letters before its tokens.
    let piece = piece.strip_prefix(b"dapi").unwrap_or(piece);
    if piece.len() < MIN || !piece.iter().all(u8::is_ascii_hexdigit) {
        return false;
    }
    let distinct = |class: fn(&u8) -> bool| {
        let seen = piece.iter().filter(|byte| class(byte)).fold(0_u128, |seen, &byte| seen | 1 << (byte & 127));
        seen.count_ones()
    };
    let (lower, upper) = (distinct(u8::is_ascii_lowercase), distinct(u8::is_ascii_uppercase));
    (lower == 0 || upper == 0) && lower.max(upper) >= 4 && distinct(u8::is_ascii_digit) >= 5
}

fn is_base64(run: &[u8]) -> bool {
    let kind = |byte: &u8| match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3_usize,
    };
    let mut counts = [0; 4];
    for byte in run {
        counts[kind(byte)] += 1;
    }
    let changes = run.windows(2).filter(|pair| kind(&pair[0]) != kind(&pair[1])).count();
    // Random text has three or four separators in a hundred characters; words have one every few.
    let few_separators = counts[3] <= run.len() / 12 + 1;
    counts[..3].iter().all(|&count| count > 0) && few_separators && changes * 100 >= (run.len() - 1) * BUSY_PERCENT
}
