//! Ranges, the operators in them, and what these launched, as a tree of names.
//!
//! Instances with the same names around them are one node. Device work hangs under the operator that owns it, failing that under the call that
//! launched it; what has no recorded launch hangs under a node of its own. So the root holds all device work of the scope.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, Ns, StrId};

use super::types::{IcicleKind, IcicleNode, OverviewOptions};
use crate::index::{HostRow, Owner, TraceIndex};
use crate::scope::Scope;

/// Deeper nesting belongs to the last node that is told apart.
const MOST_DEPTH: u16 = 96;
/// Nodes while the tree is made; what comes after belongs to the node around it.
const MOST_NODES: usize = 1 << 18;
const NONE: u32 = u32::MAX;

/// A node in the making.
#[derive(Clone, Copy, Debug)]
struct Path {
    parent: u32,
    kind: IcicleKind,
    name: Option<StrId>,
    depth: u16,
    host: Ns,
    device: Ns,
    calls: u64,
}

#[derive(Debug)]
struct Tree {
    paths: Vec<Path>,
    numbers: HashMap<(u32, IcicleKind, u32), u32, FixedState>,
}

impl Tree {
    fn new() -> Self {
        let root = Path { parent: NONE, kind: IcicleKind::Root, name: None, depth: 0, host: Ns::ZERO, device: Ns::ZERO, calls: 1 };
        Self { paths: vec![root], numbers: HashMap::default() }
    }

    /// The node of a name under another; that one itself when there is no room, or it is too deep.
    fn child(&mut self, parent: u32, kind: IcicleKind, name: Option<StrId>) -> u32 {
        let key = (parent, kind, name.map_or(NONE, |name| name.0));
        if let Some(&known) = self.numbers.get(&key) {
            return known;
        }
        let depth = self.paths[parent as usize].depth + 1;
        if depth > MOST_DEPTH || self.paths.len() >= MOST_NODES {
            return parent;
        }
        let number = self.paths.len() as u32;
        self.paths.push(Path { parent, kind, name, depth, host: Ns::ZERO, device: Ns::ZERO, calls: 0 });
        self.numbers.insert(key, number);
        number
    }
}

/// The tree of a scope, which is empty when nothing is in it; and how many nodes it has without a limit.
pub(super) fn icicle(index: &TraceIndex<'_>, scope: &Scope, options: &OverviewOptions) -> (Vec<IcicleNode>, usize) {
    let (trace, host, links) = (index.trace(), index.tree(), index.links());
    let mut tree = Tree::new();
    let steps_of_profiler = Steps::find(index);
    // By node of the host tree: its path.
    let mut path_of: Vec<u32> = vec![0; host.len()];
    for node in host.nodes() {
        let around = host.parent(node).map_or(0, |parent| path_of[parent.index()]);
        if !scope.includes_node(index, node) {
            path_of[node.index()] = around;
            continue;
        }
        let (row, _, dur) = host.event(node);
        let kind = match row {
            HostRow::Range(_) => IcicleKind::Range,
            HostRow::Op(_) => IcicleKind::Op,
            HostRow::Api(_) => IcicleKind::Call,
        };
        let name = host.name(node);
        let name = if kind == IcicleKind::Range { steps_of_profiler.shown(name) } else { name };
        let path = tree.child(around, kind, Some(name));
        path_of[node.index()] = path;
        if path != around {
            let own = &mut tree.paths[path as usize];
            own.host += dur;
            own.calls += 1;
            if around == 0 {
                tree.paths[0].host += dur;
            }
        }
    }
    for row in 0..trace.activities.len() {
        let activity = ActivityId::from_index(row);
        if !scope.includes_activity(index, activity) {
            continue;
        }
        let around = match links.owner(activity) {
            Owner::Op(node) => path_of[node.index()],
            Owner::LaunchedOutside(call) => host.api_node(call).map_or(0, |node| path_of[node.index()]),
            Owner::Unrecorded => {
                let around = tree.child(0, IcicleKind::NoLaunch, None);
                tree.paths[around as usize].calls += u64::from(around != 0);
                around
            }
        };
        let path = tree.child(around, IcicleKind::Kernel, Some(trace.activities.name[row]));
        let own = &mut tree.paths[path as usize];
        own.device += trace.activities.dur[row].max(Ns::ZERO);
        own.calls += u64::from(path != around);
    }
    // Parents are numbered before their children.
    for path in (1..tree.paths.len()).rev() {
        let (parent, device) = (tree.paths[path].parent, tree.paths[path].device);
        tree.paths[parent as usize].device += device;
    }
    if tree.paths.len() == 1 { (Vec::new(), 0) } else { (pruned(&tree.paths, options.icicle_nodes), tree.paths.len()) }
}

/// `ProfilerStep#3` is shown as `ProfilerStep*` in the range table; here all of them have the first one's name for a number.
struct Steps {
    is_step: Vec<bool>,
    first: Option<StrId>,
}

impl Steps {
    fn find(index: &TraceIndex<'_>) -> Self {
        let trace = index.trace();
        let mut steps = Self { is_step: Vec::new(), first: None };
        for &name in &trace.ranges.name {
            if steps.is_step.is_empty() {
                steps.is_step = vec![false; trace.strings.len()];
            }
            if !steps.is_step[name.index()] && trace.strings.get(name).starts_with("ProfilerStep#") {
                steps.is_step[name.index()] = true;
                steps.first.get_or_insert(name);
            }
        }
        steps
    }

    fn shown(&self, name: StrId) -> StrId {
        if self.is_step.get(name.index()) == Some(&true) { self.first.unwrap_or(name) } else { name }
    }
}

/// The largest nodes in preorder, larger children first; what goes is added up under the node around it.
fn pruned(paths: &[Path], most: usize) -> Vec<IcicleNode> {
    let share = |time: Ns, whole: Ns| (i128::from(time.get()) << 32) / i128::from(whole.get().max(1));
    let weight = |path: &Path| share(path.device, paths[0].device).max(share(path.host, paths[0].host));
    let mut order: Vec<u32> = (0..paths.len() as u32).collect();
    order.sort_by_cached_key(|&path| (std::cmp::Reverse(weight(&paths[path as usize])), path));
    let mut stays = vec![false; paths.len()];
    for &path in order.iter().take(most.max(1)) {
        // With all around it: a child may have more host time than they.
        let mut path = path;
        while path != NONE && !stays[path as usize] {
            stays[path as usize] = true;
            path = paths[path as usize].parent;
        }
    }
    stays[0] = true;
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); paths.len()];
    for path in 1..paths.len() as u32 {
        children[paths[path as usize].parent as usize].push(path);
    }
    let mut nodes: Vec<IcicleNode> = Vec::new();
    let mut open: Vec<(u32, Option<u32>)> = vec![(0, None)];
    while let Some((at, parent)) = open.pop() {
        let number = nodes.len() as u32;
        let path = &paths[at as usize];
        let is_device = matches!(path.kind, IcicleKind::Kernel | IcicleKind::NoLaunch);
        let (kind, name) = (path.kind, path.name);
        nodes.push(IcicleNode {
            parent,
            kind,
            name,
            host_ns: (!is_device).then_some(path.host),
            device_ns: path.device,
            calls: path.calls,
        });
        let (mut kept, gone): (Vec<u32>, Vec<u32>) = children[at as usize].iter().partition(|child| stays[**child as usize]);
        if !gone.is_empty() {
            let of = |child: &u32| &paths[*child as usize];
            nodes.push(IcicleNode {
                parent: Some(number),
                kind: IcicleKind::Rest,
                name: None,
                host_ns: Some(gone.iter().map(|child| of(child).host).sum()),
                device_ns: gone.iter().map(|child| of(child).device).sum(),
                calls: gone.iter().map(|child| of(child).calls).sum(),
            });
        }
        kept.sort_by_key(|&child| {
            let path = &paths[child as usize];
            (path.device, path.host, std::cmp::Reverse(child))
        });
        // The largest is taken from the end first.
        open.extend(kept.into_iter().map(|child| (child, Some(number))));
    }
    nodes
}
