//! The structural index: positions of unescaped quotes and of `{ } [ ]` outside strings, or of `: { }` outside strings.
//!
//! 64 bytes at a time become bit masks, one bit a byte ([`classes`]): quotes, backslashes, brackets and so on by comparison. On rows of
//! such masks ([`lanes`]) everything else is arithmetic ([`steps`]): escaped characters by carrying runs of backslashes, "inside a string"
//! as the running parity of quotes. The method is the one published by Langdale and Lemire ("Parsing gigabytes of JSON per second", 2019),
//! here for several masks side by side.
//!
//! The same masks give a check for damage: whatever follows a closing quote must be white space, a comma, a colon or a closing bracket. A
//! stray quote turns text inside out, and breaks that within a few bytes; [`Indexer::first_bad`] says where.
//!
//! For events (`: { }`) more is checked in the same pass, so that damage shows wherever it is: each value begins behind a comma, a colon or
//! an opening bracket, each comma, colon and opening bracket is followed by a value (or the bracket is closed), colons and braces stand in
//! no list, and outside lists what begins behind a comma or a brace is a key with one colon. What breaks this is odd: mostly damage, rarely
//! JSON of an unusual kind (a blank in an empty list, objects in a list), so a strict walk has the last word.
//!
//! Three kernels: AVX-512 with VBMI2 and VPCLMULQDQ (eight blocks side by side), AVX2 (four), and portable code; chosen once at run time,
//! same results (tested against each other).

mod classes;
mod extract;
mod lanes;
mod steps;

use classes::{Classes, Words};
use lanes::Lanes;
use steps::Carry;

/// Bytes turned into masks at a time.
const BLOCK: usize = 64;
/// Blocks turned into masks before anything else is done with them: few enough for the first-level cache.
const CHUNK: usize = 64;
/// Blocks that go side by side at most. Windows are whole multiples, so that only the input's end is not.
const GROUP: usize = 8;

/// Which positions are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Unescaped quotes, and `{ } [ ]` outside strings.
    QuotesAndBrackets,
    /// `:`, `{` and `}` outside strings.
    ColonsAndBraces,
}

impl Wanted {
    fn start(self) -> Carry {
        match self {
            Self::QuotesAndBrackets => Carry::START_PLAIN,
            Self::ColonsAndBraces => Carry::START,
        }
    }
}

/// Which kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            macro_rules! has {
                ($($feature:tt),*) => { $(is_x86_feature_detected!($feature))&&* };
            }
            if has!("avx512f", "avx512bw", "avx512dq", "avx512vbmi2", "vpclmulqdq", "popcnt", "bmi1") {
                return Self::Avx512;
            }
            if has!("avx2", "popcnt", "bmi1") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }
}

/// Indexes a byte slice window by window.
#[derive(Debug)]
pub(crate) struct Indexer {
    level: Level,
    wanted: Wanted,
    carry: Carry,
    /// Offset of the next byte to index.
    next: usize,
    /// Offset of the first byte that may not stand where it does; `usize::MAX` while there is none.
    bad: usize,
    /// Space for the masks of a chunk.
    masks: Box<(Classes, Words)>,
}

impl Indexer {
    pub(crate) fn new(wanted: Wanted) -> Self {
        let masks = Box::new((Classes::new(), [0; CHUNK]));
        Self { level: Level::detect(), wanted, carry: wanted.start(), next: 0, bad: usize::MAX, masks }
    }

    /// Starts over at `offset`, which must lie outside any string.
    pub(crate) fn restart(&mut self, offset: usize) {
        self.next = offset;
        self.carry = self.wanted.start();
        self.bad = usize::MAX;
    }

    /// Offset of the first byte, among those indexed since the last restart, that follows a string and may not, or (where colons are
    /// wanted) that is odd; `usize::MAX` while there is none. Damage before it is possible; at it, it is certain in the first case and
    /// likely in the second.
    #[inline]
    pub(crate) fn first_bad(&self) -> usize {
        self.bad
    }

    /// True when the bytes seen so far end inside a string.
    #[cfg(test)]
    fn ends_in_string(&self) -> bool {
        self.carry.in_string != 0
    }

    /// Replaces `out` with the positions found in the next `window` bytes of `bytes`, or a few more; false at the end of `bytes`.
    ///
    /// `bytes` must be shorter than 4 GiB. `out` is grown once to the window's size and reused.
    pub(crate) fn fill(&mut self, bytes: &[u8], window: usize, out: &mut Vec<u32>) -> bool {
        out.clear();
        if self.next >= bytes.len() {
            return false;
        }
        let window = window.next_multiple_of(GROUP * BLOCK);
        let end = bytes.len().min(self.next.saturating_add(window));
        // Each byte gives at most one position.
        out.reserve(window + extract::SLACK);
        match self.wanted {
            Wanted::QuotesAndBrackets => self.run_level::<false>(&bytes[..end], out),
            Wanted::ColonsAndBraces => self.run_level::<true>(&bytes[..end], out),
        }
        true
    }

    fn run_level<const COLONS: bool>(&mut self, bytes: &[u8], out: &mut Vec<u32>) {
        match self.level {
            Level::Portable => {
                // SAFETY: a plain word needs no features.
                unsafe { self.run::<u64, COLONS>(bytes, out, classes::classify_portable::<COLONS>, extract::extract) }
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                // SAFETY: `detect` found these features on this processor.
                unsafe { self.run_avx2::<COLONS>(bytes, out) }
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                // SAFETY: `detect` found these features on this processor.
                unsafe { self.run_avx512::<COLONS>(bytes, out) }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn run_avx2<const COLONS: bool>(&mut self, bytes: &[u8], out: &mut Vec<u32>) {
        // The closures inherit the features of this function, so that everything inlines into one loop.
        // SAFETY: the features are this function's.
        unsafe {
            self.run::<lanes::Avx2, COLONS>(
                bytes,
                out,
                |block, at, classes| classes::classify_avx2::<COLONS>(block, at, classes),
                extract::extract,
            );
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi2,vpclmulqdq,bmi1,popcnt")]
    fn run_avx512<const COLONS: bool>(&mut self, bytes: &[u8], out: &mut Vec<u32>) {
        // SAFETY: the features are this function's.
        unsafe {
            self.run::<lanes::Avx512, COLONS>(
                bytes,
                out,
                |block, at, classes| classes::classify_avx512::<COLONS>(block, at, classes),
                |found, base, out| extract::extract_avx512(found, base, out),
            );
        }
    }

    /// Indexes from where the last window ended to the end of `bytes`.
    ///
    /// # Safety
    /// The processor must have the features that `L` is named for.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the vector kernels must be compiled with their caller's target features")]
    unsafe fn run<L: Lanes, const COLONS: bool>(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u32>,
        classify: impl Fn(&[u8; BLOCK], usize, &mut Classes),
        extract: impl Fn(&[u64], usize, &mut Vec<u32>),
    ) {
        let (classes, found) = &mut *self.masks;
        for chunk in bytes[self.next..].chunks(CHUNK * BLOCK) {
            let (blocks, rest) = chunk.as_chunks::<BLOCK>();
            for (at, block) in blocks.iter().enumerate() {
                classify(block, at, classes);
            }
            let mut count = blocks.len();
            if !rest.is_empty() {
                // Blanks behind the end of the input change nothing.
                let mut block = [b' '; BLOCK];
                block[..rest.len()].copy_from_slice(rest);
                classify(&block, count, classes);
                count += 1;
            }
            while !count.is_multiple_of(L::COUNT) {
                classes.set_blank(count);
                count += 1;
            }
            // SAFETY: the caller vouches for the processor's features.
            let odd = unsafe { steps::run::<L, COLONS>(classes, count, &mut self.carry, found) };
            if let Some(odd) = odd {
                self.bad = self.bad.min(self.next + odd);
            }
            extract(&found[..count], self.next, out);
            self.next += chunk.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, a byte at a time: positions, whether the text ends inside a string, the first byte that may not stand where it does.
    fn naive(wanted: Wanted, bytes: &[u8]) -> (Vec<u32>, bool, usize) {
        let colons = wanted == Wanted::ColonsAndBraces;
        let (mut out, mut in_string, mut escaped, mut closed) = (Vec::new(), false, false, false);
        let (mut wants_value, mut between, mut opened, mut wants_colon, mut depth) = (true, true, false, false, 0_i32);
        let mut bad = usize::MAX;
        for (at, &byte) in bytes.iter().enumerate() {
            let was_escaped = std::mem::take(&mut escaped);
            let (was_closed, was_in_string) = (std::mem::take(&mut closed), in_string);
            let white = if colons { matches!(byte, b' ' | b'\t' | b'\n' | b'\r') } else { byte <= b' ' };
            let follows = white || matches!(byte, b',' | b':' | b'}' | b']') || (colons && matches!(byte, b'{' | b'['));
            let mut odd = was_closed && !follows;
            match byte {
                b'\\' => escaped = !was_escaped,
                b'"' if was_escaped => {}
                b'"' => {
                    in_string = !in_string;
                    closed = !in_string;
                    if !colons {
                        out.push(at as u32);
                    }
                }
                b'{' | b'}' if !in_string => out.push(at as u32),
                b'[' | b']' if !in_string && !colons => out.push(at as u32),
                b':' if !in_string && colons => out.push(at as u32),
                _ => {}
            }
            if colons {
                let of_string = was_in_string || in_string;
                let is_open = !of_string && matches!(byte, b'{' | b'[');
                let is_close = !of_string && matches!(byte, b'}' | b']');
                let is_opener = is_open || (!of_string && matches!(byte, b',' | b':'));
                let is_between = is_opener || is_close || (white && !of_string);
                let begins = !is_between && between;
                if begins || is_open {
                    odd |= !wants_value;
                } else if is_opener || (is_close && !opened) {
                    odd |= wants_value;
                }
                odd |= in_string && !was_in_string && !between;
                depth += i32::from(!of_string && byte == b'[') - i32::from(!of_string && byte == b']');
                let (is_colon, in_list) = (!of_string && byte == b':', depth.rem_euclid(4) != 0);
                odd |= in_list && (is_colon || (!of_string && matches!(byte, b'{' | b'}')));
                if is_opener || is_close {
                    let is_brace = byte == b'{';
                    odd |= if wants_colon { !(is_colon || is_brace || (is_close && opened)) } else { is_colon };
                    wants_colon = (is_brace || byte == b',') && !in_list;
                }
                wants_value = is_opener || (wants_value && white && !of_string);
                (between, opened) = (is_between, is_open);
            }
            if odd {
                bad = bad.min(at);
            }
        }
        (out, in_string, bad)
    }

    fn indexed(wanted: Wanted, level: Level, bytes: &[u8], window: usize) -> (Vec<u32>, bool, usize) {
        let mut indexer = Indexer { level, ..Indexer::new(wanted) };
        let (mut all, mut part) = (Vec::new(), Vec::new());
        while indexer.fill(bytes, window, &mut part) {
            all.extend_from_slice(&part);
        }
        (all, indexer.ends_in_string(), indexer.first_bad())
    }

    impl Level {
        /// Those that this processor has.
        fn all() -> Vec<Self> {
            match Self::detect() {
                Self::Portable => vec![Self::Portable],
                #[cfg(target_arch = "x86_64")]
                Self::Avx2 => vec![Self::Portable, Self::Avx2],
                #[cfg(target_arch = "x86_64")]
                Self::Avx512 => vec![Self::Portable, Self::Avx2, Self::Avx512],
            }
        }
    }

    /// What follows a member of an event.
    const PIECES: [&str; 10] = [
        ", \"dur\": 12.5",
        ",\n\"Input Dims\": [[1, 559, 896], [], [[2]]]",
        ", \"values\": [\"\", \"[1, 2]\", \"a\\\"b: {\"]",
        ", \"args\": {\"External id\": 7, \"Collective name\": \"x\", \"empty\": {}}",
        ", \"path\": \"C:\\\\\"",
        ", \"long\": \"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, void>(int)\"",
        " , \"none\" : null",
        "},\n  {\n    \"ph\": \"X\"",
        ",\"a\":1,\"b\":\"c\",\"d\":[]",
        ",                                                                  \"far\":           1",
    ];

    proptest! {
        #[test]
        fn every_level_and_window_agrees_with_the_naive_scan(
            text in proptest::collection::vec(proptest::sample::select(b"\"\\{}[]a ,:;{\t\0".to_vec()), 0..3000),
            window in 1usize..2000,
        ) {
            for wanted in [Wanted::QuotesAndBrackets, Wanted::ColonsAndBraces] {
                let want = naive(wanted, &text);
                for level in Level::all() {
                    prop_assert_eq!(&indexed(wanted, level, &text, window), &want);
                }
            }
        }

        #[test]
        fn damage_deep_inside_events_is_found_by_every_level(
            pieces in proptest::collection::vec(0..PIECES.len(), 0..120),
            changed in 0usize..8000,
            into in proptest::sample::select(b"\"\\{}[]a ,:\n".to_vec()),
            is_changed in proptest::bool::ANY,
        ) {
            let mut text = b"{\"ph\": \"X\"".to_vec();
            for piece in pieces {
                text.extend_from_slice(PIECES[piece].as_bytes());
            }
            text.extend_from_slice(b"}");
            if is_changed && changed < text.len() {
                text[changed] = into;
            }
            let want = naive(Wanted::ColonsAndBraces, &text);
            prop_assert!(is_changed || want.2 == usize::MAX);
            for level in Level::all() {
                prop_assert_eq!(&indexed(Wanted::ColonsAndBraces, level, &text, 4096), &want);
            }
        }
    }
}
