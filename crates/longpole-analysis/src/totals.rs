//! Totals before tables: wall, busy, idle, and how much of each kind of device time was exposed.

use longpole_trace::{DeviceId, Ns};

/// Totals of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTotals {
    /// The device.
    pub device: DeviceId,
    /// Union of all its activity.
    pub busy_ns: Ns,
    /// First start to last end of its activity.
    pub span_ns: Ns,
    /// Union of its kernels, communication kernels included.
    pub kernel_busy_ns: Ns,
    /// Union of its copies and fills.
    pub copy_busy_ns: Ns,
    /// Union of its communication kernels.
    pub comm_busy_ns: Ns,
    /// Copy time with no kernel running.
    pub exposed_copy_ns: Ns,
    /// Communication time with no other kernel running.
    pub exposed_comm_ns: Ns,
    /// Its activities.
    pub activities: u64,
}

/// Totals of the scope. Device times are sums over devices; absent when no device activity was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    /// First to last event of any kind; for a scope, the union of its instances, device work included.
    pub wall_ns: Ns,
    /// Union of device activity.
    pub gpu_busy_ns: Option<Ns>,
    /// Span minus busy.
    pub gpu_idle_ns: Option<Ns>,
    /// Busy over wall, 0..1 (over wall times devices, where several were active).
    pub gpu_busy_fraction: Option<f64>,
    /// Kernel time.
    pub kernel_busy_ns: Option<Ns>,
    /// Copy and fill time.
    pub copy_busy_ns: Option<Ns>,
    /// Communication time.
    pub comm_busy_ns: Option<Ns>,
    /// Copy time with no kernel running.
    pub exposed_copy_ns: Option<Ns>,
    /// Communication time with no other kernel running.
    pub exposed_comm_ns: Option<Ns>,
    /// Kernels.
    pub kernels: u64,
    /// Copies.
    pub memcpys: u64,
    /// Fills.
    pub memsets: u64,
    /// API calls that launched device work.
    pub launches: u64,
    /// Operator calls.
    pub host_ops: u64,
    /// Each active device apart.
    pub devices: Vec<DeviceTotals>,
}
