//! Results as tables: which columns there are, in which order, and what a narrow terminal can do without.

mod bench;
mod check;
mod diff;
mod families;
mod idle;
mod kernels;
mod memory;
pub mod ncu;
mod ops;
mod overlap;
mod ranges;
mod ranks;
mod recorded;
mod roofline;
mod shapes;
mod step_ceilings;
mod steps;
mod sums;

pub use bench::{bench, bench_compare, bench_compare_table, bench_list, bench_list_table, bench_peaks, bench_peaks_table, bench_table};
pub use check::{check, check_csv};
pub use diff::{DiffLayout, diff, diff_csv};
pub use families::families;
pub use idle::{IdleLayout, frame_kind, idle, idle_csv};
pub use kernels::kernels;
pub use memory::memory;
pub use ops::ops;
pub use overlap::{SharesOf, overlap_note};
pub use ranges::{RangeLayout, ranges};
pub use ranks::{RankLayout, ranks, ranks_csv};
pub use recorded::Recorded;
pub use roofline::{no_peaks, roofline, roofline_rows};
pub use step_ceilings::Steps;
pub(crate) use step_ceilings::of_span;
pub(crate) use steps::rows_in_order;
pub use steps::{StepLayout, StepOrder, role_source, steps, steps_csv};
pub use sums::{family_sums, kernel_sums, scope_sums};

use longpole_trace::{DeviceId, Ns, Trace};

use crate::table::Value;

/// The exact sum of those present; absent when none is.
fn sum<T>(values: impl Iterator<Item = Option<T>>) -> Option<T>
where
    T: std::ops::Add<Output = T>,
{
    values.flatten().reduce(|a, b| a + b)
}

/// A device by its number, with its rank where there are several.
pub(crate) fn device_label(trace: &Trace, device: DeviceId) -> String {
    let Some(device) = trace.devices.get(device.index()) else { return "device ?".to_owned() };
    let rank = trace.ranks.get(device.rank as usize).filter(|_| trace.ranks.len() > 1);
    let rank = rank.map_or_else(String::new, |rank| format!("rank {} ", rank.rank));
    format!("{rank}device {}", device.ordinal)
}

/// A time counted from the first event, as `--time` counts it.
pub(crate) fn since_first(trace: &Trace, at: Ns) -> Ns {
    trace.window.bounds().map_or(at, |(first, _)| at - first)
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// A total's label.
fn total_label(rows: usize, one: &str, many: &str) -> Value {
    Value::Text(format!("total of {} {}", crate::units::count(rows as u64), if rows == 1 { one } else { many }))
}

fn sum_times<'a, T: 'a>(rows: impl Iterator<Item = &'a T>, time: impl Fn(&T) -> Ns) -> Ns {
    rows.map(time).sum()
}
