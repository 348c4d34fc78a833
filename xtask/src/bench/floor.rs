//! The floor a reader is measured against: the least work that finds every event and the device time of a trace in any layout.
//!
//! Blocks of 64 bytes become bit masks (quotes, backslashes, braces); a prefix xor over the quotes tells what is inside a string, and
//! braces outside strings give the depth. The root object is depth 1, an event is an object at depth 2 with a `"ph"` key, and its
//! `"cat"` and `"dur"` are read in place. Nothing is kept, nothing is validated, no name is looked at. It stays honest by being checked
//! against the generator's totals, and fast by using AVX-512 or AVX2 where the machine has them.

#![expect(clippy::inline_always, reason = "code compiled for one instruction set must end up inside the function that enables it")]

use std::thread;

use super::masks::{Isa, Masks, Scalar};

/// What a scan of a whole trace finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) events: u64,
    /// Sum of the durations of kernels, copies and fills.
    pub(crate) device_ns: i64,
}

#[derive(Clone, Copy, Default)]
struct State {
    totals: Totals,
    depth: u32,
    /// All ones while a string is open.
    in_string: u64,
    /// One when the next byte is escaped.
    escaped: u64,
    is_event: bool,
    is_device: bool,
    duration_ns: i64,
}

/// Scans with up to `threads` threads. Chunks start at event boundaries found by a guess that is then proved: each chunk must end
/// outside strings at the depth the next one was assumed to start at. A wrong guess costs a second pass on one thread.
pub(crate) fn scan(data: &[u8], threads: usize) -> Totals {
    let mut starts = vec![0];
    for k in 1..threads {
        let from = (data.len() / threads) * k;
        if let Some(start) = next_event(data, from.max(starts[starts.len() - 1] + 1)) {
            starts.push(start);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([data.len()]);
    let chunks: Vec<(usize, usize)> = starts.iter().copied().zip(ends).collect();
    let states: Vec<State> = thread::scope(|scope| {
        let handles: Vec<_> =
            chunks.iter().map(|&(start, end)| scope.spawn(move || scan_range(data, start, end, u32::from(start > 0)))).collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).collect()
    });
    let last = states.len().saturating_sub(1);
    let proved = states.len() == chunks.len() && states[..last].iter().all(|state| state.depth == 1 && state.in_string == 0);
    if !proved {
        return scan_range(data, 0, data.len(), 0).totals;
    }
    states.iter().fold(Totals::default(), |sum, state| Totals {
        events: sum.events + state.totals.events,
        device_ns: sum.device_ns + state.totals.device_ns,
    })
}

/// The next place from `from` on that looks like the start of an object after another one: `}`, `,`, `{`, `"`.
fn next_event(data: &[u8], from: usize) -> Option<usize> {
    let skip = |mut at: usize| {
        while data.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        at
    };
    let mut at = from;
    while let Some(&byte) = data.get(at) {
        if byte == b'}' {
            let comma = skip(at + 1);
            let open = skip(comma + 1);
            if data.get(comma) == Some(&b',') && data.get(open) == Some(&b'{') && data.get(skip(open + 1)) == Some(&b'"') {
                return Some(open);
            }
        }
        at += 1;
    }
    None
}

fn scan_range(data: &[u8], start: usize, end: usize, depth: u32) -> State {
    #[cfg(target_arch = "x86_64")]
    {
        use super::masks::{has_avx2, has_avx512};
        if has_avx512() {
            // SAFETY: the features this function is compiled for were just found on this machine.
            return unsafe { scan_avx512(data, start, end, depth) };
        }
        if has_avx2() {
            // SAFETY: as above.
            return unsafe { scan_avx2(data, start, end, depth) };
        }
    }
    scan_with::<Scalar>(data, start, end, depth)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn scan_avx512(data: &[u8], start: usize, end: usize, depth: u32) -> State {
    scan_with::<super::masks::Avx512>(data, start, end, depth)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn scan_avx2(data: &[u8], start: usize, end: usize, depth: u32) -> State {
    scan_with::<super::masks::Avx2>(data, start, end, depth)
}

/// Every even bit.
const EVEN: u64 = 0x5555_5555_5555_5555;

/// A block and the two bytes after it, which key candidates look at.
const WINDOW: usize = 66;

#[inline(always)]
fn scan_with<I: Isa>(data: &[u8], start: usize, end: usize, depth: u32) -> State {
    let mut state = State { depth, ..State::default() };
    let mut at = start;
    while at + 64 <= end && at + WINDOW <= data.len() {
        // SAFETY: `WINDOW` bytes from `at` on lie inside `data`.
        let masks = unsafe { I::masks(data.as_ptr().add(at)) };
        state.block::<I>(data, at, &masks);
        at += 64;
    }
    while at < end {
        // The rest, padded with spaces: bytes after `end` belong to the next chunk and must not count.
        let mut padded = [b' '; WINDOW];
        let rest = (end - at).min(64);
        let seen = (data.len() - at).min(WINDOW);
        padded[..seen].copy_from_slice(&data[at..at + seen]);
        padded[rest..64].fill(b' ');
        // SAFETY: `padded` is `WINDOW` bytes long.
        let masks = unsafe { I::masks(padded.as_ptr()) };
        state.block::<I>(data, at, &masks);
        at += rest;
    }
    state
}

impl State {
    #[inline(always)]
    fn block<I: Isa>(&mut self, data: &[u8], at: usize, masks: &Masks) {
        let quotes = masks.quotes & !self.escaped_bits(masks.backslashes);
        // Set from an opening quote to the byte before its closing one.
        let inside = I::prefix_xor(quotes) ^ self.in_string;
        self.in_string = ((inside as i64) >> 63) as u64;
        let opens = masks.opens & !inside;
        let closes = masks.closes & !inside;
        let mut todo = opens | closes | (masks.keys & quotes & inside);
        while todo != 0 {
            let bit = todo & todo.wrapping_neg();
            if opens & bit != 0 {
                self.depth += 1;
                if self.depth == 2 {
                    (self.is_event, self.is_device, self.duration_ns) = (false, false, 0);
                }
            } else if closes & bit != 0 {
                if self.depth == 2 && self.is_event {
                    self.totals.events += 1;
                    if self.is_device {
                        self.totals.device_ns += self.duration_ns;
                    }
                }
                self.depth = self.depth.saturating_sub(1);
            } else if self.depth == 2 {
                self.key(&data[at + bit.trailing_zeros() as usize..]);
            }
            todo ^= bit;
        }
    }

    /// Which of the block's bytes are escaped. Runs of backslashes escape what follows them when their length is odd.
    #[inline(always)]
    fn escaped_bits(&mut self, backslashes: u64) -> u64 {
        if backslashes == 0 {
            return std::mem::take(&mut self.escaped);
        }
        let starts = backslashes & !self.escaped;
        let follows = (starts << 1) | self.escaped;
        let odd_starts = starts & !EVEN & !follows;
        let (runs, overflow) = odd_starts.overflowing_add(starts);
        self.escaped = u64::from(overflow);
        (EVEN ^ (runs << 1)) & follows
    }

    /// A string at an event's top level that starts like one of the three keys.
    #[inline(always)]
    fn key(&mut self, text: &[u8]) {
        if let Some(value) = value_of(text, b"\"dur\"") {
            self.duration_ns = nanoseconds(value);
        } else if let Some(value) = value_of(text, b"\"cat\"") {
            self.is_device =
                value.starts_with(b"\"kernel\"") || value.starts_with(b"\"gpu_memcpy\"") || value.starts_with(b"\"gpu_memset\"");
        } else if value_of(text, b"\"ph\"").is_some() {
            self.is_event = true;
        }
    }
}

/// The text of the value, when `text` starts with `key` and a colon.
#[inline(always)]
fn value_of<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut rest = text.strip_prefix(key)?;
    while let [b' ' | b'\t' | b'\n' | b'\r', tail @ ..] = rest {
        rest = tail;
    }
    rest = rest.strip_prefix(b":")?;
    while let [b' ' | b'\t' | b'\n' | b'\r', tail @ ..] = rest {
        rest = tail;
    }
    Some(rest)
}

/// Decimal microseconds with up to three decimals, as nanoseconds.
#[inline(always)]
fn nanoseconds(text: &[u8]) -> i64 {
    let mut value = 0i64;
    let mut decimals = None;
    for &byte in text {
        match byte {
            b'0'..=b'9' if decimals.is_none_or(|count| count < 3) => {
                value = value.wrapping_mul(10).wrapping_add(i64::from(byte - b'0'));
                decimals = decimals.map(|count: u32| count + 1);
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            b'0'..=b'9' => {}
            _ => break,
        }
    }
    value.wrapping_mul(10i64.pow(3 - decimals.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "a }{ \" b"}], "traceEvents": [
      {"ph": "X", "cat": "kernel", "name": "k\\", "ts": 1.5, "dur": 2.625, "args": {"dur": 9, "cat": "kernel", "ph": {"ph": 1}}},
      {"args": {"correlation": 3}, "dur": 10, "name": "x\\\" }, {\"ph\": 1", "cat": "gpu_memcpy", "ph": "X"},
      {"ph":"X","cat":"gpu_memset","dur":0.5},
      {"ph": "X", "cat": "cpu_op", "name": "cat", "dur": 1000},
      {"name": "process_name", "ph": "M", "args": {"name": "p"}}
    ], "late": {"cat": "kernel", "dur": 5}}"#;

    #[test]
    fn finds_what_is_there() {
        let expected = Totals { events: 5, device_ns: 2_625 + 10_000 + 500 };
        for threads in 1..6 {
            assert_eq!(scan(TRACE.as_bytes(), threads), expected, "{threads} threads");
        }
    }

    #[test]
    fn every_instruction_set_and_offset_agrees() {
        let expected = Totals { events: 5, device_ns: 13_125 };
        for pad in 0..130 {
            let text = format!("{}{TRACE}{}", " ".repeat(pad), " ".repeat(pad % 67));
            let data = text.as_bytes();
            assert_eq!(scan_with::<Scalar>(data, 0, data.len(), 0).totals, expected);
            #[cfg(target_arch = "x86_64")]
            {
                use super::super::masks::{has_avx2, has_avx512};
                if has_avx2() {
                    // SAFETY: the features were just found.
                    assert_eq!(unsafe { scan_avx2(data, 0, data.len(), 0) }.totals, expected);
                }
                if has_avx512() {
                    // SAFETY: the features were just found.
                    assert_eq!(unsafe { scan_avx512(data, 0, data.len(), 0) }.totals, expected);
                }
            }
        }
    }

    #[test]
    fn a_wrong_split_is_noticed() {
        let name = r#"{"traceEvents": [{"ph": "X", "cat": "kernel", "dur": 2, "a name as long as all of the rest": "}, {"}]}"#;
        assert!(next_event(name.as_bytes(), name.len() / 2).is_some());
        assert_eq!(scan(name.as_bytes(), 2), Totals { events: 1, device_ns: 2000 });
        let tricky = r#"{"traceEvents": [{"ph": "X", "args": {"list": [{"a": 1}, {"a": 2}, {"a": 3}]}, "cat": "kernel", "dur": 1}]}"#;
        assert!(next_event(tricky.as_bytes(), tricky.len() / 2).is_some());
        assert_eq!(scan(tricky.as_bytes(), 2), Totals { events: 1, device_ns: 1000 });
    }

    #[test]
    fn durations_are_exact() {
        for (text, expected) in
            [("1", 1000), ("0.001,", 1), ("12.5}", 12_500), ("3.14159", 3141), ("1712195495521716.781 ", 1_712_195_495_521_716_781)]
        {
            assert_eq!(nanoseconds(text.as_bytes()), expected, "{text}");
        }
    }
}
