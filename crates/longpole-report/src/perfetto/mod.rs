//! A trace, or a part of one, for Perfetto (ui.perfetto.dev): protobuf packets, one track a thread, a stream and a cause of waiting.
//!
//! `wire` is the bytes, `packets` what is written of them, `lanes` what overlaps; `host` and `device` say what is on which track. To show
//! something more, add a track in one of those two. Nothing is held of the events: what is kept is an order of rows, 4 bytes each.
//!
//! Names are written once and made printable, as a viewer shows them to people. Times are the trace's own, in nanoseconds since 1970 where it
//! says when that is.
//!
//! Not written: synchronisations as the profiler describes them, samples of processors, strides and values of operators' arguments.

mod device;
mod host;
mod lanes;
mod packets;
mod wire;

use std::io::{self, Write};

use longpole_analysis::{Scope, StepTable, TraceIndex, Why};
use longpole_trace::MemcpyKind;

use host::Arrows;
use packets::Packets;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfettoSummary {
    /// Tracks, those of processes included.
    pub tracks: u64,
    /// Slices.
    pub slices: u64,
    /// Values of counters.
    pub counts: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Writes a scope as a Perfetto trace: ranges, operators and calls of each thread with arrows to the work they launched; of each device its
/// steps, idle time by cause, queue, memory and streams. `out` is written to in pieces of 64 KiB and flushed.
pub fn perfetto(index: &TraceIndex<'_>, scope: &Scope, steps: &StepTable, out: &mut (dyn Write + Send)) -> io::Result<PerfettoSummary> {
    let mut packets = Packets::new(index.trace(), out);
    let arrows = Arrows::find(index, scope);
    device::write(&mut packets, index, scope, steps, &arrows)?;
    host::write(&mut packets, index, scope, &arrows)?;
    host::profiler(&mut packets, index, scope)?;
    let (tracks, slices, counts, bytes) = packets.finish()?;
    Ok(PerfettoSummary { tracks, slices, counts, bytes })
}

/// A word for the direction of a copy.
pub(crate) fn copy_kind(kind: MemcpyKind) -> &'static str {
    match kind {
        MemcpyKind::HostToDevice => "host_to_device",
        MemcpyKind::DeviceToHost => "device_to_host",
        MemcpyKind::DeviceToDevice => "device_to_device",
        MemcpyKind::PeerToPeer => "peer_to_peer",
        MemcpyKind::HostToHost => "host_to_host",
        MemcpyKind::Unknown => "unknown",
    }
}

fn why_left_out(why: Why) -> &'static str {
    match why {
        Why::Slow => "warm-up: slow",
        Why::OtherKernels => "warm-up: other kernels",
        Why::CutOff => "cut off",
        Why::FirstHalf => "before the second half",
    }
}
