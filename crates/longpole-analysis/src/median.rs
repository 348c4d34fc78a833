//! The exact median of very many times, without a copy of them all.

use longpole_trace::Ns;

/// Bits of a time that tell buckets apart, behind its first.
const BITS: u32 = 10;

/// The bucket of a time: its first bit and the [`BITS`] behind it. Larger times are in later buckets.
fn bucket(time: u64) -> usize {
    let shift = (u64::BITS - time.leading_zeros()).saturating_sub(BITS + 1);
    ((shift as usize) << BITS) + (time >> shift) as usize
}

/// The median of the times that `times` gives, twice the same; of an even number the lower of the two in the middle. Negative times count
/// as zero. One pass counts how many are in each bucket of a thousandth's width, a second looks into the one in the middle.
pub(crate) fn lower_median<I: Iterator<Item = Ns>>(times: impl Fn() -> I) -> Option<Ns> {
    let values = || times().map(|time| time.get().max(0) as u64);
    let mut counts = vec![0_u64; ((u64::BITS - BITS) as usize + 1) << BITS];
    let mut count = 0_u64;
    for value in values() {
        counts[bucket(value)] += 1;
        count += 1;
    }
    let mut before = count.checked_sub(1)? / 2;
    let middle = counts.iter().position(|&count| {
        let is_here = before < count;
        before -= if is_here { 0 } else { count };
        is_here
    })?;
    let mut inside: Vec<u64> = values().filter(|&value| bucket(value) == middle).collect();
    let median = *inside.select_nth_unstable(usize::try_from(before).ok()?).1;
    Some(Ns(median as i64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_middle_of_the_sorted_times(
            times in proptest::collection::vec(prop_oneof![0_i64..3_000, -5_i64..5, any::<i64>()], 0..60)
        ) {
            let mut sorted: Vec<Ns> = times.iter().map(|&time| Ns(time.max(0))).collect();
            sorted.sort_unstable();
            let expected = sorted.len().checked_sub(1).map(|last| sorted[last / 2]);
            prop_assert_eq!(lower_median(|| times.iter().map(|&time| Ns(time))), expected);
        }
    }
}
