//! How long several unions of intervals last, alone and together, without making any of them.

use longpole_trace::{Interval, Ns};

/// Intervals in order of start, and the bit that their union stands for.
pub(crate) struct Cover<'a> {
    bit: usize,
    rest: Box<dyn Iterator<Item = Interval> + 'a>,
    next: Option<Interval>,
    /// Until when the union lasts, as far as it was read.
    until: Ns,
}

impl<'a> Cover<'a> {
    pub(crate) fn new(bit: usize, mut rest: Box<dyn Iterator<Item = Interval> + 'a>) -> Self {
        let next = rest.next();
        Self { bit, rest, next, until: Ns::MIN }
    }
}

/// For each set of the first `bits` bits, the time in which just these were set: one pass in order of time that keeps nothing.
pub(crate) fn sums(covers: &mut [Cover<'_>], bits: usize) -> Vec<Ns> {
    let mut sums = vec![Ns::ZERO; 1 << bits];
    let mut now = Ns::MIN;
    loop {
        let next = covers.iter().filter_map(|cover| cover.next.map(|next| next.start)).min();
        // Up to there nothing begins, so that the bits change only where a union ends.
        let to = next.unwrap_or(Ns::MAX);
        while now < to {
            let (mut bits, mut change) = (0, to);
            for cover in covers.iter().filter(|cover| cover.until > now) {
                bits |= cover.bit;
                change = change.min(cover.until);
            }
            if bits == 0 {
                break;
            }
            sums[bits] += change - now;
            now = change;
        }
        if next.is_none() {
            return sums;
        }
        now = now.max(to);
        for cover in covers.iter_mut() {
            while let Some(begun) = cover.next.filter(|next| next.start <= now) {
                cover.until = cover.until.max(begun.end);
                cover.next = cover.rest.next();
            }
        }
    }
}
