//! The structural index: positions of unescaped quotes and of `{ } [ ]` outside strings, or of `: { }` outside strings.
//!
//! 64 bytes at a time become bit masks (one bit a byte): quotes, backslashes and brackets by comparison; escaped
//! characters by carrying runs of backslashes; "inside a string" as the running parity of quotes, which one carry-less
//! multiplication by all ones computes for a whole block. The method is the one published by Langdale and Lemire ("Parsing
//! gigabytes of JSON per second", 2019).
//!
//! The same masks give a check for damage that costs next to nothing: whatever follows a closing quote must be white
//! space, a comma, a colon or a closing bracket. A stray quote turns text inside out, and breaks that within a few bytes;
//! [`Indexer::first_bad`] says where.
//!
//! For events (`: { }`) more is checked in the same pass, a block at a time, so that damage shows wherever it is: each value begins
//! behind a comma, a colon or an opening bracket, each comma, colon and opening bracket is followed by a value (or the bracket is
//! closed), colons and braces stand in no list, and no value is a key. What breaks this is odd: mostly damage, rarely JSON of an unusual kind (a blank in
//! an empty list, objects in a list), so a strict walk has the last word.
//!
//! Three kernels compute the masks: AVX-512BW, AVX2, and portable code; chosen once at run time, same results (tested
//! against each other).

/// Bytes turned into masks at a time.
const BLOCK: usize = 64;

/// Masks of one block: bit `i` is byte `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Masks {
    quote: u64,
    backslash: u64,
    /// Brackets and braces, or colons and braces: what is wanted of the bytes outside strings.
    bracket: u64,
    /// White space and other control characters, commas, colons, closing brackets: what may follow a string.
    follower: u64,
    /// Opening brackets, commas and colons: what a value follows. This and the rest only where colons are wanted.
    opener: u64,
    /// Opening brackets of both kinds.
    open: u64,
    /// Closing brackets of both kinds.
    close: u64,
    /// White space that JSON knows.
    white: u64,
}

/// What a block hands to the next.
#[derive(Clone, Copy, Debug)]
struct Carry {
    /// All ones when the next byte lies inside a string.
    in_string: u64,
    /// 1 when the next byte is escaped.
    escaped: u64,
    /// 1 when the last byte closed a string, so that the next one must be a follower.
    closed: u64,
    /// 1 when a value must come next, white space aside.
    wants_value: u64,
    /// 1 when the last byte was none of a value.
    between: u64,
    /// 1 when the last byte was an opening bracket.
    opened: u64,
    /// 1 when the last of the brackets, commas and colons was a colon.
    colon: u64,
    /// All ones when the next byte lies in a list, for either bit of the depth.
    in_list: [u64; 2],
}

impl Carry {
    /// Before an event, or something else that begins like a value.
    const START: Self = Self { in_string: 0, escaped: 0, closed: 0, wants_value: 1, between: 1, opened: 0, colon: 0, in_list: [0; 2] };
}

/// Which positions are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Unescaped quotes, and `{ } [ ]` outside strings.
    QuotesAndBrackets,
    /// `:`, `{` and `}` outside strings.
    ColonsAndBraces,
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
            if !is_x86_feature_detected!("pclmulqdq") || !is_x86_feature_detected!("bmi1") || !is_x86_feature_detected!("popcnt") {
                return Self::Portable;
            }
            if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512f") {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
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
}

impl Indexer {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self { level: Level::detect(), wanted, carry: Carry::START, next: 0, bad: usize::MAX }
    }

    /// Starts over at `offset`, which must lie outside any string.
    pub(crate) fn restart(&mut self, offset: usize) {
        self.next = offset;
        self.carry = Carry::START;
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

    /// Replaces `out` with the positions found in the next `window` bytes of `bytes`; false at the end of `bytes`.
    ///
    /// `bytes` must be shorter than 4 GiB. `out` is grown once to the window's size and reused.
    pub(crate) fn fill(&mut self, bytes: &[u8], window: usize, out: &mut Vec<u32>) -> bool {
        out.clear();
        if self.next >= bytes.len() {
            return false;
        }
        let end = bytes.len().min(self.next.saturating_add(window));
        // Each byte gives at most one position, and the extraction loop may write up to 8 slots past the last one.
        out.reserve(end - self.next + BLOCK + 8);
        match self.wanted {
            Wanted::QuotesAndBrackets => self.run_level::<false>(bytes, end, out),
            Wanted::ColonsAndBraces => self.run_level::<true>(bytes, end, out),
        }
        self.next = end;
        true
    }

    fn run_level<const COLONS: bool>(&mut self, bytes: &[u8], end: usize, out: &mut Vec<u32>) {
        match self.level {
            Level::Portable => self.run::<COLONS>(bytes, end, out, masks_portable::<COLONS>, prefix_xor_portable),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                // SAFETY: `detect` found AVX2, BMI1, POPCNT and PCLMULQDQ on this processor.
                unsafe { self.run_avx2::<COLONS>(bytes, end, out) }
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                // SAFETY: `detect` found AVX-512F, AVX-512BW, BMI1, POPCNT and PCLMULQDQ on this processor.
                unsafe { self.run_avx512::<COLONS>(bytes, end, out) }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt,pclmulqdq")]
    fn run_avx2<const COLONS: bool>(&mut self, bytes: &[u8], end: usize, out: &mut Vec<u32>) {
        // The closures inherit the features of this function, so that everything inlines into one loop.
        self.run::<COLONS>(bytes, end, out, |block| masks_avx2::<COLONS>(block), |quotes| prefix_xor_clmul(quotes));
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,bmi1,popcnt,pclmulqdq")]
    fn run_avx512<const COLONS: bool>(&mut self, bytes: &[u8], end: usize, out: &mut Vec<u32>) {
        self.run::<COLONS>(bytes, end, out, |block| masks_avx512::<COLONS>(block), |quotes| prefix_xor_clmul(quotes));
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the vector kernels must be compiled with their caller's target features")]
    fn run<const COLONS: bool>(
        &mut self,
        bytes: &[u8],
        end: usize,
        out: &mut Vec<u32>,
        masks: impl Fn(&[u8; BLOCK]) -> Masks,
        prefix_xor: impl Fn(u64) -> u64,
    ) {
        let mut carry = self.carry;
        let mut base = self.next;
        let mut bad = self.bad;
        let (blocks, rest) = bytes[base..end].as_chunks::<BLOCK>();
        for block in blocks {
            let (found, misplaced) = step::<COLONS>(&masks(block), &mut carry, &prefix_xor, BLOCK);
            if misplaced != 0 {
                bad = bad.min(base + misplaced.trailing_zeros() as usize);
            }
            push_positions(found, base, out);
            base += BLOCK;
        }
        if !rest.is_empty() {
            // Spaces after the end change neither strings nor escapes; but what the true last byte hands to the next window
            // has to be worked out for itself.
            let mut block = [b' '; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            let before = carry;
            let all = masks(&block);
            let (found, misplaced) = step::<COLONS>(&all, &mut carry, &prefix_xor, rest.len());
            if misplaced != 0 {
                bad = bad.min(base + misplaced.trailing_zeros() as usize);
            }
            push_positions(found, base, out);
            let (mut escaped, mut in_string) = (before.escaped == 1, before.in_string != 0);
            carry.closed = 0;
            for (bit, byte) in rest.iter().enumerate() {
                let is_quote = *byte == b'"' && !escaped;
                in_string ^= is_quote;
                carry.closed = u64::from(is_quote && !in_string && bit + 1 == rest.len());
                escaped = *byte == b'\\' && !escaped;
            }
            carry.escaped = u64::from(escaped);
        }
        self.bad = bad;
        self.carry = carry;
    }
}

/// One block, of which `len` bytes are of the input: escapes, strings, the positions worth keeping, and bytes that may not stand where
/// they do.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled with its caller's target features")]
fn step<const COLONS: bool>(masks: &Masks, carry: &mut Carry, prefix_xor: &impl Fn(u64) -> u64, len: usize) -> (u64, u64) {
    let escaped = if masks.backslash | carry.escaped == 0 { 0 } else { escaped_bits(masks.backslash, carry) };
    let quote = masks.quote & !escaped;
    // Bit i: an odd number of quotes up to and including byte i, so an opening quote and what follows it.
    let in_string = prefix_xor(quote) ^ carry.in_string;
    carry.in_string = ((in_string as i64) >> 63) as u64;
    let closing = quote & !in_string;
    let after_string = (closing << 1) | carry.closed;
    carry.closed = closing >> 63;
    let found = masks.bracket & !in_string;
    if !COLONS {
        return (quote | found, after_string & !masks.follower);
    }
    let last = len - 1;
    let (opener, close, white) = (masks.opener & !in_string, masks.close & !in_string, masks.white & !in_string);
    let open = masks.open & opener;
    let structure = opener | close;
    let between = structure | white;
    // Values begin at opening brackets, and where something else begins behind what is between values.
    let begins = !between & ((between << 1) | carry.between);
    let value = begins | open;
    // What follows each opener: adding its neighbour to the white space carries over the white space.
    let (sum, beyond) = ((opener << 1) | carry.wants_value).overflowing_add(white);
    let wanted = sum & !white;
    let empty = close & ((open << 1) | carry.opened);
    // The depth of lists as two bits that change one at a time, so that 1, 2 and 3 levels are told from none (no trace has four). The
    // first changes at each square bracket, the second on the way up to an even depth and down to an odd one.
    let (opens, closes) = (open & !masks.bracket, close & !masks.bracket);
    let first = prefix_xor(opens | closes) ^ carry.in_list[0];
    let second = prefix_xor((opens & !first) | (closes & first)) ^ carry.in_list[1];
    // Two colons with nothing but a string between: the same addition, over all that is no structure.
    let colons = found & !(open | close);
    let (sum, colon_beyond) = ((colons << 1) | carry.colon).overflowing_add(!structure);
    let odd = ((wanted ^ value) & !empty)
        | (found & (first | second))
        | (sum & colons)
        | (after_string & !between)
        | (quote & in_string & !begins);
    carry.wants_value = (opener >> last) & 1 | u64::from(beyond);
    carry.between = (between >> last) & 1;
    carry.opened = (open >> last) & 1;
    carry.colon = (colons >> last) & 1 | u64::from(colon_beyond);
    carry.in_list = [first, second].map(|inside| ((inside as i64) >> 63) as u64);
    (found, odd)
}

/// Bytes that a backslash escapes. A run of backslashes escapes every second byte, starting after its first.
fn escaped_bits(backslash: u64, carry: &mut Carry) -> u64 {
    const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
    let potential = backslash & !carry.escaped;
    // Subtracting the backslashes from the odd-position mask of what may be escaped flips along each run, and leaves the
    // alternating pattern that starts at the run's first byte, whatever its parity.
    let maybe_escaped = potential << 1;
    let code = (maybe_escaped | ODD).wrapping_sub(potential) ^ ODD;
    let escaped = code ^ (backslash | carry.escaped);
    carry.escaped = (code & backslash) >> 63;
    escaped
}

/// Positions written without a test between: a block of a trace holds about this many.
const UNROLL: usize = 4;

/// Appends `base + i` for each set bit `i`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled with its caller's target features")]
fn push_positions(mut bits: u64, base: usize, out: &mut Vec<u32>) {
    let count = bits.count_ones() as usize;
    let len = out.len();
    debug_assert!(out.capacity() - len >= count.next_multiple_of(UNROLL));
    let mut slot = out.as_mut_ptr().wrapping_add(len);
    let mut left = count as isize;
    // The stores past the last bit are overwritten by the next block or ignored.
    while left > 0 {
        for offset in 0..UNROLL {
            // SAFETY: `fill` reserved room for every byte of the window plus one block and eight slots; `slot + offset` is
            // less than `UNROLL` past `len + count`.
            unsafe { slot.wrapping_add(offset).write((base as u32).wrapping_add(bits.trailing_zeros())) };
            bits &= bits.wrapping_sub(1);
        }
        slot = slot.wrapping_add(UNROLL);
        left -= UNROLL as isize;
    }
    // SAFETY: the first `count` slots after `len` were just written, and lie inside the capacity.
    unsafe { out.set_len(len + count) };
}

fn masks_portable<const COLONS: bool>(block: &[u8; BLOCK]) -> Masks {
    let mut masks = Masks::default();
    for (bit, &byte) in block.iter().enumerate() {
        masks.quote |= u64::from(byte == b'"') << bit;
        masks.backslash |= u64::from(byte == b'\\') << bit;
        let folded = byte | 0x20;
        let wanted = if COLONS { matches!(byte, b'{' | b'}' | b':') } else { matches!(folded, b'{' | b'}') };
        masks.bracket |= u64::from(wanted) << bit;
        masks.follower |= u64::from(byte <= b' ' || byte == b',' || byte == b':' || folded == b'}') << bit;
        if COLONS {
            masks.open |= u64::from(folded == b'{') << bit;
            masks.close |= u64::from(folded == b'}') << bit;
            masks.opener |= u64::from(folded == b'{' || byte == b',' || byte == b':') << bit;
            masks.white |= u64::from(matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) << bit;
        }
    }
    masks
}

fn prefix_xor_portable(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "pclmulqdq")]
#[inline]
fn prefix_xor_clmul(bits: u64) -> u64 {
    use std::arch::x86_64::{_mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8};
    let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
    _mm_cvtsi128_si64(product) as u64
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
#[expect(clippy::cast_ptr_alignment, reason = "the loads are unaligned ones")]
fn masks_avx2<const COLONS: bool>(block: &[u8; BLOCK]) -> Masks {
    use std::arch::x86_64::{
        __m256i, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8, _mm256_shuffle_epi8,
    };
    let mut masks = Masks::default();
    for half in 0..2 {
        // SAFETY: the block is 64 bytes, and the two unaligned loads read bytes 0..32 and 32..64.
        let bytes = unsafe { _mm256_loadu_si256(block.as_ptr().add(half * 32).cast::<__m256i>()) };
        let is = |byte: u8| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8));
        let folded = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
        let folded_is = |byte: u8| _mm256_cmpeq_epi8(folded, _mm256_set1_epi8(byte as i8));
        let bits = |mask: __m256i| u64::from(_mm256_movemask_epi8(mask) as u32) << (half * 32);
        let (colon, comma, open, closing) = (is(b':'), is(b','), folded_is(b'{'), folded_is(b'}'));
        masks.quote |= bits(is(b'"'));
        masks.backslash |= bits(is(b'\\'));
        if COLONS {
            let white = _mm256_cmpeq_epi8(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(white_table()), bytes), bytes);
            masks.bracket |= bits(_mm256_or_si256(_mm256_or_si256(is(b'{'), is(b'}')), colon));
            masks.open |= bits(open);
            masks.close |= bits(closing);
            masks.opener |= bits(_mm256_or_si256(_mm256_or_si256(open, comma), colon));
            masks.white |= bits(white);
        } else {
            let blank = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x20)), bytes);
            masks.bracket |= bits(_mm256_or_si256(open, closing));
            masks.follower |= bits(_mm256_or_si256(_mm256_or_si256(closing, blank), _mm256_or_si256(comma, colon)));
        }
    }
    masks
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
#[expect(clippy::cast_ptr_alignment, reason = "the load is an unaligned one")]
fn masks_avx512<const COLONS: bool>(block: &[u8; BLOCK]) -> Masks {
    use std::arch::x86_64::{
        __m512i, _mm512_broadcast_i32x4, _mm512_cmpeq_epi8_mask, _mm512_cmple_epu8_mask, _mm512_loadu_si512, _mm512_or_si512,
        _mm512_set1_epi8, _mm512_shuffle_epi8,
    };
    // SAFETY: the block is exactly the 64 bytes that the unaligned load reads.
    let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast::<__m512i>()) };
    let folded = _mm512_or_si512(bytes, _mm512_set1_epi8(0x20));
    let is = |v: __m512i, byte: u8| _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(byte as i8));
    let (open, close) = (is(folded, b'{'), is(folded, b'}'));
    let (colon, comma) = (is(bytes, b':'), is(bytes, b','));
    let mut masks = Masks { quote: is(bytes, b'"'), backslash: is(bytes, b'\\'), ..Masks::default() };
    if COLONS {
        masks.bracket = is(bytes, b'{') | is(bytes, b'}') | colon;
        (masks.open, masks.close, masks.opener) = (open, close, open | comma | colon);
        masks.white = _mm512_cmpeq_epi8_mask(_mm512_shuffle_epi8(_mm512_broadcast_i32x4(white_table()), bytes), bytes);
    } else {
        masks.bracket = open | close;
        masks.follower = close | comma | colon | _mm512_cmple_epu8_mask(bytes, _mm512_set1_epi8(0x20));
    }
    masks
}

/// White space by its low four bits, for a look-up of 16 bytes: a byte that is white space finds itself.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn white_table() -> std::arch::x86_64::__m128i {
    std::arch::x86_64::_mm_setr_epi8(0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x0A, 0, 0, 0x0D, 0, 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, a byte at a time: positions, whether the text ends inside a string, the first byte that may not stand where it does.
    fn naive(wanted: Wanted, bytes: &[u8]) -> (Vec<u32>, bool, usize) {
        let colons = wanted == Wanted::ColonsAndBraces;
        let (mut out, mut in_string, mut escaped, mut closed) = (Vec::new(), false, false, false);
        let (mut wants_value, mut between, mut opened, mut after_colon, mut depth) = (true, true, false, false, 0_i32);
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
                let is_colon = !of_string && byte == b':';
                odd |= depth.rem_euclid(4) != 0 && (is_colon || (!of_string && matches!(byte, b'{' | b'}')));
                odd |= is_colon && after_colon;
                after_colon = is_colon || (after_colon && !is_opener && !is_close);
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

    proptest! {
        #[test]
        fn every_level_and_window_agrees_with_the_naive_scan(
            text in proptest::collection::vec(proptest::sample::select(b"\"\\{}[]a ,:;{\t\0".to_vec()), 0..400),
            window in 1usize..200,
        ) {
            for wanted in [Wanted::QuotesAndBrackets, Wanted::ColonsAndBraces] {
                let want = naive(wanted, &text);
                for level in [Level::Portable, Level::detect()] {
                    prop_assert_eq!(&indexed(wanted, level, &text, window), &want);
                }
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("pclmulqdq") {
                    prop_assert_eq!(&indexed(wanted, Level::Avx2, &text, window), &want);
                }
            }
        }
    }
}
