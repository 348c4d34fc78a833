//! From the classes of bytes to the positions wanted and the bytes that may not stand where they do, a group of blocks at a time.

use super::classes::{Classes, Words};
use super::lanes::{Lanes, parity, two_sums};

/// What a group hands to the next; each is 0 or 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carry {
    /// The next byte lies inside a string.
    pub(super) in_string: u32,
    /// The next byte is escaped.
    escaped: u64,
    /// A value may begin next: the last byte closed a string or is none of a value.
    boundary: u32,
    /// The last byte is something that a value follows.
    opener: u32,
    /// The last byte was an opening bracket.
    open: u32,
    /// The last byte begins a member.
    starter: u32,
    /// Bit 0: a value must come next, white space aside. Bit 16: a key is under way, so that a colon must come before other structure.
    wants: u32,
    /// The next byte lies in a list, for either bit of the depth.
    in_list: [u32; 2],
}

impl Carry {
    /// Before an event, or something else that begins like a value.
    pub(super) const START: Self =
        Self { in_string: 0, escaped: 0, boundary: 1, opener: 1, open: 0, starter: 0, wants: 0, in_list: [0; 2] };

    /// Before metadata, where nothing is known of the byte before.
    pub(super) const START_PLAIN: Self = Self { boundary: 0, ..Self::START };
}

/// A row before the first, of which only the last bit counts.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled with its caller's target features")]
unsafe fn row_before<L: Lanes>(last: u32) -> L {
    // SAFETY: the caller vouches for the processor's features.
    unsafe { L::spread(last << (L::COUNT - 1)) }
}

/// Goes through the first `count` blocks (a multiple of the type's): `found` becomes the positions wanted. Returns where the first byte
/// is that may not stand where it does.
///
/// # Safety
/// The processor must have the features that `L` is named for.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled with its caller's target features")]
pub(super) unsafe fn run<L: Lanes, const COLONS: bool>(
    classes: &mut Classes,
    count: usize,
    carry: &mut Carry,
    found: &mut Words,
) -> Option<usize> {
    let mut first_odd = None;
    // SAFETY: the caller vouches for the processor's features.
    let before = |last: u32| unsafe { row_before::<L>(last) };
    let mut last_boundary = before(carry.boundary);
    let (mut last_opener, mut last_open, mut last_starter) = (before(carry.opener), before(carry.open), before(carry.starter));
    for at in (0..count).step_by(L::COUNT) {
        // SAFETY: the caller vouches for the processor's features.
        let load = |class: &Words| unsafe { L::load(&class[at..at + L::COUNT]) };
        let mut quote = load(&classes.quote);
        if !load(&classes.backslash).is_zero() || carry.escaped != 0 {
            for backslash in &mut classes.backslash[at..at + L::COUNT] {
                *backslash = escaped_bits(*backslash, &mut carry.escaped);
            }
            quote = quote & !load(&classes.backslash);
        }
        // An odd number of quotes up to and including a byte: an opening quote and what follows it.
        let in_string = parity(quote, &mut carry.in_string);
        let outside = !in_string;
        let closing = quote & outside;
        let (open, close) = (load(&classes.open) & outside, load(&classes.close) & outside);
        let (colon, comma, white) = (load(&classes.colon) & outside, load(&classes.comma) & outside, load(&classes.white) & outside);
        let structure = open | close | colon | comma;
        let (wanted, odd) = if COLONS {
            let curly = load(&classes.curly);
            let (open_curly, opener) = (open & curly, open | comma | colon);
            let between = structure | white;
            // Values begin at opening quotes and brackets, and where something else begins behind a string or what is between values.
            let boundary = between | closing;
            let value = (boundary.up(last_boundary) & !between) | (quote & in_string) | open;
            // The depth of lists as two bits that change one at a time, so that 1, 2 and 3 levels are told from none (no trace has four).
            // The first changes at each square bracket, the second on the way up to an even depth and down to an odd one.
            let (opens, closes) = (open & !curly, close & !curly);
            let first = parity(opens | closes, &mut carry.in_list[0]);
            let second = parity((opens & !first) | (closes & first), &mut carry.in_list[1]);
            let in_list = first | second;
            let wanted = ((open | close) & curly) | colon;
            // What follows each opener: adding its neighbour to the white space carries over the white space. A member begins behind a
            // brace or a comma, and its colon comes before all other structure: the same, over all that is no structure.
            let starter = (comma | open_curly) & !in_list;
            let (after_white, after_key) =
                two_sums((opener.up(last_opener), white), (starter.up(last_starter), !structure), &mut carry.wants);
            let (value_wanted, lands) = (after_white & !white, after_key & structure);
            // Brackets with nothing between; and behind a comma there may also be a brace: the next event.
            let empty = close & open.up(last_open);
            let odd = ((value_wanted ^ value) & !empty) | (wanted & in_list) | (colon & !lands) | (lands & !(colon | open_curly | empty));
            (last_boundary, last_opener, last_open, last_starter) = (boundary, opener, open, starter);
            (wanted, odd)
        } else {
            let after_string = closing.up(last_boundary);
            last_boundary = closing;
            (quote | open | close, after_string & !(close | comma | colon | white))
        };
        wanted.store(&mut found[at..at + L::COUNT]);
        if !odd.is_zero() && first_odd.is_none() {
            first_odd = Some(first_bit(odd, at));
        }
    }
    let top = |row: L| row.tops() >> (L::COUNT - 1);
    carry.boundary = top(last_boundary);
    (carry.opener, carry.open, carry.starter) = (top(last_opener), top(last_open), top(last_starter));
    first_odd
}

/// Where the first bit is that is set, from the chunk's beginning.
#[cold]
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled with its caller's target features")]
fn first_bit<L: Lanes>(row: L, at: usize) -> usize {
    let mut words = [0; 8];
    row.store(&mut words);
    let word = words.iter().position(|word| *word != 0).unwrap_or_default();
    (at + word) * super::BLOCK + words[word].trailing_zeros() as usize
}

/// Bytes that a backslash escapes. A run of backslashes escapes every second byte, starting after its first.
fn escaped_bits(backslash: u64, carry: &mut u64) -> u64 {
    const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
    let potential = backslash & !*carry;
    // Subtracting the backslashes from the odd-position mask of what may be escaped flips along each run, and leaves the
    // alternating pattern that starts at the run's first byte, whatever its parity.
    let maybe_escaped = potential << 1;
    let code = (maybe_escaped | ODD).wrapping_sub(potential) ^ ODD;
    let escaped = code ^ (backslash | *carry);
    *carry = (code & backslash) >> 63;
    escaped
}
