//! Device time by the ranges and operators around its launch.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, ApiCallId, DeviceId, Ns};

use super::{StackFrame, StackTree, device_label};
use crate::index::{HostRow, NodeId, Owner, TraceIndex};
use crate::scope::Scope;

/// Where the time of devices belongs to: device, then the ranges and operators around the launch, outermost first, then the kernel, copy or
/// fill. The launching call is a frame only where no operator is around it. The sum is that of all durations in scope, so work that overlaps
/// counts twice, as in the operator table.
pub fn device_stacks(index: &TraceIndex<'_>, scope: &Scope) -> StackTree {
    let trace = index.trace();
    let mut walk = Walk { index, tree: StackTree::new(trace), of_node: HashMap::default(), chain: Vec::new() };
    let mut places = vec![None; trace.devices.len()];
    for row in 0..trace.activities.len() {
        let activity = ActivityId::from_index(row);
        if !scope.includes_activity(index, activity) {
            continue;
        }
        let device = trace.lanes[trace.activities.lane[row].index()].device;
        let place = *places[device.index()].get_or_insert_with(|| {
            let label = device_label(trace, device);
            walk.tree.texted(None, StackFrame::Place, &label)
        });
        let around = walk.around(device, place, activity);
        let work = walk.tree.named(Some(around), StackFrame::Work, trace.activities.name[row]);
        walk.tree.add(work, trace.activities.dur[row].max(Ns::ZERO));
    }
    walk.tree
}

struct Walk<'a, 't> {
    index: &'a TraceIndex<'t>,
    tree: StackTree,
    /// The stack that ends with a host node, for each device.
    of_node: HashMap<(DeviceId, NodeId), u32, FixedState>,
    chain: Vec<NodeId>,
}

impl Walk<'_, '_> {
    /// The stack around an activity.
    fn around(&mut self, device: DeviceId, place: u32, activity: ActivityId) -> u32 {
        let (tree, links) = (self.index.tree(), self.index.links());
        let call_node = links.call(activity).and_then(|call| tree.api_node(call));
        match links.owner(activity) {
            Owner::Op(node) => {
                // Ranges inside the operator are around the call alone.
                let innermost = call_node.filter(|&call| tree.enclosing_op(call) == Some(node)).unwrap_or(node);
                self.stack(device, place, innermost)
            }
            Owner::LaunchedOutside(call) => {
                let around = call_node.map_or(place, |node| self.stack(device, place, node));
                self.call(around, call)
            }
            Owner::Unrecorded => self.tree.texted(Some(place), StackFrame::Note, "(launch not recorded)"),
        }
    }

    fn call(&mut self, around: u32, call: ApiCallId) -> u32 {
        let name = self.index.trace().api_calls.name[call.index()];
        self.tree.named(Some(around), StackFrame::Call, name)
    }

    /// The stack of ranges and operators that ends with a node. Each node is looked at once a device.
    fn stack(&mut self, device: DeviceId, place: u32, node: NodeId) -> u32 {
        let tree = self.index.tree();
        let (mut at, mut next) = (place, Some(node));
        self.chain.clear();
        while let Some(node) = next {
            if let Some(&known) = self.of_node.get(&(device, node)) {
                at = known;
                break;
            }
            self.chain.push(node);
            next = tree.parent(node);
        }
        for node in std::mem::take(&mut self.chain).into_iter().rev() {
            let frame = match tree.row(node) {
                HostRow::Range(_) => Some(StackFrame::Range),
                HostRow::Op(_) => Some(StackFrame::Operator),
                HostRow::Api(_) => None,
            };
            if let Some(frame) = frame {
                at = self.tree.named(Some(at), frame, tree.name(node));
            }
            self.of_node.insert((device, node), at);
        }
        at
    }
}
