//! Results as tables: which columns there are, in which order, and what a narrow terminal can do without.

mod families;
mod kernels;
mod memory;
pub mod ncu;
mod ops;
mod ranges;

pub use families::families;
pub use kernels::kernels;
pub use memory::memory;
pub use ops::ops;
pub use ranges::{RangeLayout, ranges};

use longpole_trace::Ns;

use crate::table::Value;

/// Why a table of device work has no rows.
pub const NO_DEVICE_ACTIVITY: &str = "no device activity was recorded (add ProfilerActivity.CUDA)";
const NO_DEVICE: &str = "CUDA times: no device activity was recorded (add ProfilerActivity.CUDA)";
const NO_MEMORY: &str = "memory: not recorded (profile_memory=True records it)";

/// The exact sum of those present; absent when none is.
fn sum<T>(values: impl Iterator<Item = Option<T>>) -> Option<T>
where
    T: std::ops::Add<Output = T>,
{
    values.flatten().reduce(|a, b| a + b)
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
