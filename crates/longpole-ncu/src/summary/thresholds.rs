//! Every limit that a verdict or a symptom rests on, in one table.
//!
//! Those marked "ncu" are the limits that ncu's own rules of 2024.1 use, so that the two do not contradict each other; the
//! others are ours, chosen so that a symptom is worth a line. All are compared with what was measured, never with a rounded figure.
//!
//! | constant | value | from | what it separates |
//! |---|---|---|---|
//! | [`BUSY_PCT`] | 60 % of peak | ncu | below it on both sides nothing is the bottleneck: warps wait |
//! | [`NEAR_PEAK_PCT`] | 80 % of peak | ncu | above it little is left to win on this side |
//! | [`BALANCED_POINTS`] | 10 points | ncu | a smaller distance of memory and SM is no difference |
//! | [`FULL_WAVE`] | 1 wave | ncu | below it the grid does not fill the device once |
//! | [`THEORETICAL_OCCUPANCY_PCT`] | 80 % | ncu | below it the launch itself keeps warps out |
//! | [`OCCUPANCY_GAP_POINTS`] | 10 points | ncu | above it the launch allows more warps than there were |
//! | [`TAIL_FRACTION`] | 20 % | ncu | a cheaper last wave is not worth a line |
//! | [`IMBALANCE_FRACTION`] | 5 % | ncu | less than this to save by evening out is not worth a line |
//! | [`EXCESSIVE_FRACTION`] | 10 % | ours | sectors or wavefronts beyond what the access needs |
//! | [`SPILL_FRACTION`] | 1 % | ours | instructions that go to local memory |
//! | [`THREADS_PER_INSTRUCTION`] | 24 of 32 | ours | threads of a warp that take part in an instruction |

/// Percent of peak below which a side is not busy.
pub(crate) const BUSY_PCT: f64 = 60.0;
/// Percent of peak above which a side is near its peak.
pub(crate) const NEAR_PEAK_PCT: f64 = 80.0;
/// Points between memory and SM below which the two are balanced.
pub(crate) const BALANCED_POINTS: f64 = 10.0;
/// Waves below which the grid is too small.
pub(crate) const FULL_WAVE: f64 = 1.0;
/// Theoretical occupancy, percent, below which the launch is what keeps it low.
pub(crate) const THEORETICAL_OCCUPANCY_PCT: f64 = 80.0;
/// Points that the achieved occupancy may stay behind the theoretical one.
pub(crate) const OCCUPANCY_GAP_POINTS: f64 = 10.0;
/// Share of the time that the last, partial wave must cost.
pub(crate) const TAIL_FRACTION: f64 = 0.20;
/// Share of the time that even work could save.
pub(crate) const IMBALANCE_FRACTION: f64 = 0.05;
/// Share of sectors or wavefronts that a better access would not need.
pub(crate) const EXCESSIVE_FRACTION: f64 = 0.10;
/// Share of executed instructions that read or write local memory.
pub(crate) const SPILL_FRACTION: f64 = 0.01;
/// Threads of a warp, of 32, below which branches keep too many idle.
pub(crate) const THREADS_PER_INSTRUCTION: f64 = 24.0;
