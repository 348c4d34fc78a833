//! What a step wins: medians over the steps of a group, as all figures of a step are.
//!
//! A step that is cold or slow would drive a mean, and stand beside medians that it does not drive. What is won from a part of a step is in
//! every single step no more than that part, and so its median is no more than the median of the part.

use longpole_trace::Ns;

/// The median over some steps, the lower of two; steps without a value, which are not listed, count as nothing. Values are not negative.
pub(super) fn median(mut values: Vec<Ns>, steps: usize) -> Ns {
    let absent = steps.saturating_sub(values.len());
    let middle = steps.max(values.len()).saturating_sub(1) / 2;
    // Those that count as nothing are the smallest.
    match middle.checked_sub(absent) {
        Some(at) if at < values.len() => *values.select_nth_unstable(at).1,
        _ => Ns::ZERO,
    }
}

/// The median of values that come with their steps, in order of steps; those of one step are added.
pub(super) fn median_of_sums(values: impl Iterator<Item = (u32, Ns)>, steps: usize) -> Ns {
    let mut sums: Vec<Ns> = Vec::new();
    let mut latest = None;
    for (step, value) in values {
        match sums.last_mut() {
            Some(sum) if latest == Some(step) => *sum += value,
            _ => sums.push(value),
        }
        latest = Some(step);
    }
    median(sums, steps)
}
