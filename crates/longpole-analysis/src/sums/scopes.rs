//! The scopes of a tree: device time inside each, all of it and what is not in a scope inside.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{AggregateKind, Ns, StrId, Trace};

use super::{NONE, Sum, Sums, WorkSum};
use crate::scope::Scope;

/// Scopes nested deeper than this are listed at this depth: a path is written out in every row.
const MAX_DEPTH: usize = 64;

/// One path of scopes.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeSum {
    /// Its place in the tree.
    path: u32,
    /// How many scopes are around it.
    pub depth: usize,
    /// Calls of kernels inside, at any depth; absent when one of the counts is.
    pub kernels: Option<u64>,
    /// Device time of all kernels inside.
    pub cuda_ns: Option<Ns>,
    /// Device time of kernels that are in no scope inside this one.
    pub self_cuda_ns: Option<Ns>,
    /// Host time, where it was recorded for the scope.
    pub cpu_ns: Option<Ns>,
    /// Clock cycles of the region itself, where those were counted.
    pub cycles: Option<u64>,
    /// Declared work of everything inside.
    pub work: WorkSum,
}

/// The scopes of a tree, depth first, in the order of the source.
#[derive(Debug, Default)]
pub struct ScopeSums {
    /// The rows. They may be sorted, filtered and cut.
    pub rows: Vec<ScopeSum>,
    /// Name and parent of each path.
    paths: Vec<(StrId, u32)>,
}

impl ScopeSums {
    /// The name of a row.
    pub fn name<'t>(&self, trace: &'t Trace, row: &ScopeSum) -> &'t str {
        trace.strings.get(self.paths[row.path as usize].0)
    }

    /// Names of the scopes around a row, outermost first.
    pub fn parents<'t>(&self, trace: &'t Trace, row: &ScopeSum) -> Vec<&'t str> {
        let around = |path: u32| Some(self.paths[path as usize].1).filter(|&parent| parent != NONE);
        let mut names: Vec<&str> = std::iter::successors(around(row.path), |&path| around(path))
            .map(|path| trace.strings.get(self.paths[path as usize].0))
            .collect();
        names.reverse();
        names
    }
}

/// What is gathered of a path.
#[derive(Default)]
struct Path {
    depth: usize,
    children: Vec<u32>,
    /// Whether a row of it is in scope.
    is_in: bool,
    own: Sum,
    /// Of kernels inside, whatever is between.
    all: Sum,
    host: Option<Ns>,
    cycles: Option<u64>,
}

/// The scopes of a scope.
pub fn scope_sums(trace: &Trace, scope: &Scope) -> ScopeSums {
    rows(&Sums::new(trace, scope))
}

pub(super) fn rows(sums: &Sums<'_>) -> ScopeSums {
    let table = sums.table();
    let mut has_rows_inside = vec![false; table.len()];
    for row in 0..table.len() {
        if let Some(parent) = table.parent(row) {
            has_rows_inside[parent.index()] = true;
        }
    }
    let mut names: Vec<(StrId, u32)> = Vec::new();
    let mut paths: Vec<Path> = Vec::new();
    let mut known: HashMap<(u32, StrId), u32, FixedState> = HashMap::default();
    let mut roots: Vec<u32> = Vec::new();
    // By row: the path that it is, or that is around it.
    let mut path_of = vec![NONE; table.len()];
    for row in 0..table.len() {
        let mut parent = table.parent(row).map_or(NONE, |parent| path_of[parent.index()]);
        if table.kind[row] == AggregateKind::Scope || has_rows_inside[row] {
            if parent != NONE && paths[parent as usize].depth + 1 >= MAX_DEPTH {
                parent = names[parent as usize].1;
            }
            let next = paths.len() as u32;
            let path = *known.entry((parent, table.name[row])).or_insert(next);
            if path == next {
                let depth = if parent == NONE { 0 } else { paths[parent as usize].depth + 1 };
                paths.push(Path { depth, ..Path::default() });
                names.push((table.name[row], parent));
                if parent == NONE { &mut roots } else { &mut paths[parent as usize].children }.push(path);
            }
            let detail = table.detail(row);
            let of_path = &mut paths[path as usize];
            of_path.is_in |= sums.included[row];
            if sums.included[row] {
                if let Some(host) = detail.host_ns {
                    *of_path.host.get_or_insert_default() += host;
                }
                of_path.cycles = super::both(of_path.cycles, detail.cycles);
            }
            parent = path;
        }
        path_of[row] = parent;
        if parent != NONE && sums.included[row] {
            // Cycles are of a region, and regions overlap: they are not added up.
            paths[parent as usize].own.add(&Sum { cycles: None, ..sums.own(row, true) });
        }
    }
    for path in (0..paths.len()).rev() {
        let own = paths[path].own;
        paths[path].all.add(&own);
        let (all, parent) = (paths[path].all, names[path].1);
        if parent != NONE {
            paths[parent as usize].all.add(&all);
        }
    }
    let mut rows = Vec::new();
    roots.reverse();
    while let Some(path) = roots.pop() {
        let Path { depth, children, is_in, own, all, host, cycles } = &paths[path as usize];
        roots.extend(children.iter().rev());
        if *is_in {
            rows.push(ScopeSum {
                path,
                depth: *depth,
                kernels: all.calls,
                cuda_ns: all.time,
                self_cuda_ns: own.time,
                cpu_ns: *host,
                cycles: *cycles,
                work: all.work(),
            });
        }
    }
    ScopeSums { rows, paths: names }
}
