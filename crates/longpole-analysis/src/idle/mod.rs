//! Why the device did nothing: every nanosecond of idle time has exactly one cause.
//!
//! The idle time of a device is the gaps of its merged timeline between its first and last activity. The activity that ends a
//! gap decides: the part of the gap before its launch goes to what the launching thread was doing, split at every change; the
//! part after it to the device. The rules are in `docs/idle.md`.

mod types;

pub use types::{CauseRow, DeviceIdle, FrameKind, FrameRow, HostFrame, IdleCause, IdlePiece, IdleTable, Queue, QueueSample, RangeIdle};
