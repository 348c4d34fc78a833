//! Time by stack: what flame graphs are drawn of.
//!
//! Three questions, a file each, with one kind of answer, a [`StackTree`]: where the host spent its own time (`host`), which ranges and
//! operators the device's time belongs to (`device`), and what the host did while a device was idle (`idle`). The sums are those of the
//! tables: self CPU of operators and calls, self CUDA, and idle time.

mod device;
mod host;
mod idle;
mod labels;
#[cfg(test)]
mod tests;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{Ns, StrId, Trace};

pub use device::device_stacks;
pub use host::host_stacks;
pub use idle::idle_stacks;
pub use labels::{device_label, rank_order, thread_label};

/// What a frame of a stack stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StackFrame {
    /// A thread or a device: the outermost frame of every stack.
    Place,
    /// A named range.
    Range,
    /// An operator.
    Operator,
    /// A runtime or driver call, or a call into the operating system.
    Call,
    /// A Python function.
    Python,
    /// A kernel, copy or fill.
    Work,
    /// Why a device was idle.
    Cause,
    /// What stands for frames that are not known.
    Note,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    label: u32,
    frame: StackFrame,
    depth: u16,
    value: Ns,
}

/// Times by stack, as a tree: a node is a stack, its parent the stack without the innermost frame.
///
/// Stacks deeper than [`StackTree::MAX_DEPTH`] frames keep the outer ones: what is deeper counts for the frame at the limit, so that no time
/// is lost and a runaway recursion costs no more than its length.
#[derive(Debug, Default)]
pub struct StackTree {
    nodes: Vec<Node>,
    children: HashMap<(u32, u32, StackFrame), u32, FixedState>,
    /// Labels that are no string of the trace; they are numbered behind those.
    own_labels: Vec<String>,
    own_numbers: HashMap<String, u32, FixedState>,
    strings: u32,
}

/// Marks the parent of outermost frames.
const NONE: u32 = u32::MAX;

impl StackTree {
    /// Frames of a stack at most.
    pub const MAX_DEPTH: usize = 256;

    fn new(trace: &Trace) -> Self {
        Self { strings: trace.strings.len() as u32, ..Self::default() }
    }

    fn own_label(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.own_numbers.get(text) {
            return number;
        }
        let number = self.strings + self.own_labels.len() as u32;
        self.own_labels.push(text.to_owned());
        self.own_numbers.insert(text.to_owned(), number);
        number
    }

    /// The stack with one more frame.
    fn child(&mut self, parent: Option<u32>, frame: StackFrame, label: u32) -> u32 {
        let depth = parent.map_or(0, |parent| self.nodes[parent as usize].depth + 1);
        if let Some(parent) = parent.filter(|_| usize::from(depth) >= Self::MAX_DEPTH) {
            return parent;
        }
        let (key, next) = (parent.unwrap_or(NONE), self.nodes.len() as u32);
        *self.children.entry((key, label, frame)).or_insert_with(|| {
            self.nodes.push(Node { parent: key, label, frame, depth, value: Ns::ZERO });
            next
        })
    }

    fn named(&mut self, parent: Option<u32>, frame: StackFrame, name: StrId) -> u32 {
        self.child(parent, frame, name.0)
    }

    fn texted(&mut self, parent: Option<u32>, frame: StackFrame, text: &str) -> u32 {
        let label = self.own_label(text);
        self.child(parent, frame, label)
    }

    fn add(&mut self, node: u32, time: Ns) {
        self.nodes[node as usize].value += time.max(Ns::ZERO);
    }

    /// Stacks with time of their own: the node of each and that time, in order of first occurrence.
    pub fn stacks(&self) -> impl Iterator<Item = (usize, Ns)> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.value > Ns::ZERO).map(|(at, node)| (at, node.value))
    }

    /// The nodes of a stack, outermost first, into `path`.
    pub fn path(&self, node: usize, path: &mut Vec<usize>) {
        path.clear();
        let mut at = node as u32;
        while let Some(node) = self.nodes.get(at as usize) {
            path.push(at as usize);
            at = node.parent;
        }
        path.reverse();
    }

    /// What the innermost frame of a stack is.
    pub fn frame(&self, node: usize) -> StackFrame {
        self.nodes[node].frame
    }

    /// A number for the name of the innermost frame of a stack; equal names have equal numbers, below [`StackTree::labels`].
    pub fn label(&self, node: usize) -> usize {
        self.nodes[node].label as usize
    }

    /// How many numbers of names there may be.
    pub fn labels(&self) -> usize {
        self.strings as usize + self.own_labels.len()
    }

    /// The name behind a number.
    pub fn text<'a>(&'a self, trace: &'a Trace, label: usize) -> &'a str {
        match label.checked_sub(self.strings as usize) {
            None => trace.strings.get(StrId(label as u32)),
            Some(own) => &self.own_labels[own],
        }
    }

    /// The sum of all times.
    pub fn total(&self) -> Ns {
        self.nodes.iter().map(|node| node.value).sum()
    }
}
