//! Idle time of devices by cause, and by what the host was in.

use std::mem;

use super::{StackFrame, StackTree, device_label};
use crate::idle::{FrameKind, IdlePiece, each_idle_piece};
use crate::index::TraceIndex;
use crate::scope::Scope;

/// Why devices were idle: device, cause, the operator around, the innermost host frame. The sum is the idle time of the scope's devices.
pub fn idle_stacks(index: &TraceIndex<'_>, scope: &Scope) -> StackTree {
    let trace = index.trace();
    let mut tree = StackTree::new(trace);
    let devices: Vec<u32> = (0..trace.devices.len())
        .map(|device| {
            let label = device_label(trace, longpole_trace::DeviceId::from_index(device));
            tree.own_label(&label)
        })
        .collect();
    let causes = crate::idle::IdleCause::ALL.map(|cause| tree.own_label(cause.code()));
    let mut add = |piece: IdlePiece| {
        let place = tree.child(None, StackFrame::Place, devices[piece.device.index()]);
        let mut at = tree.child(Some(place), StackFrame::Cause, causes[piece.cause.index()]);
        if let Some(inside) = piece.frame.inside {
            at = tree.named(Some(at), StackFrame::Operator, inside);
        }
        let frame = match piece.frame.kind {
            FrameKind::Operator => StackFrame::Operator,
            FrameKind::Call | FrameKind::OsCall => StackFrame::Call,
            FrameKind::Python => StackFrame::Python,
            FrameKind::Range => StackFrame::Range,
            FrameKind::Overhead | FrameKind::Nothing => StackFrame::Note,
        };
        if let Some(name) = piece.frame.name {
            at = tree.named(Some(at), frame, name);
        }
        tree.add(at, piece.end - piece.start);
    };
    each_idle_piece(index, scope, &mut add);
    mem::take(&mut tree)
}
