//! Modules of the model around launches: from paths in range and operator names, and from Python frames.
//!
//! A *path* such as `model.layers.3.self_attn.q_proj` names the module and the layer. Its role is what is left of it when the layer is
//! taken away: `q_proj`. A *frame* such as `nn.Module: RMSNorm_7` gives only the class and a number over the whole model; the number
//! becomes the order of occurrence in the layer: `Attention.RMSNorm #1`. Which module is the layer is seen from the nesting: the
//! outermost one that has sisters of its class. What all class names begin with (`Qwen3`) is left out.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use longpole_trace::{Ns, StrId, ThreadId, Trace};

use crate::index::order::{Order, end_of};

/// Names longer than this are no paths.
const LONGEST_PATH: usize = 512;
/// Classes are cut to this many bytes.
const LONGEST_CLASS: usize = 80;
/// Modules around a launch that are kept.
const DEEPEST: usize = 64;
/// Paths that give fewer roles than this are no module paths.
const FEWEST_ROLES: usize = 3;
/// Classes that must share a beginning for it to be left out.
const SHARING: usize = 3;
const MODULE: &str = "nn.Module: ";
/// Not in the arena.
const NONE: u32 = u32::MAX;

/// A launch whose modules are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query {
    pub(super) row: u32,
    pub(super) step: u32,
    pub(super) thread: ThreadId,
    pub(super) at: Ns,
    /// A name around the launch that may be a module's path.
    pub(super) path: Option<StrId>,
}

/// What modules say of a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ModuleRole {
    /// From a path: `q_proj`.
    pub(super) path: Option<String>,
    /// The class of a module that holds no other: `Attention.RMSNorm #1`.
    pub(super) leaf: Option<String>,
    /// The outermost function inside the innermost module, with its file: `cache_utils.update`.
    pub(super) function: Option<String>,
}

/// The components of a path, and whether one of them is a number.
struct Path<'n> {
    parts: Vec<&'n str>,
    number: Option<usize>,
}

/// The longest text in a name that looks like a module's path.
fn path(name: &str) -> Option<Path<'_>> {
    if name.len() > LONGEST_PATH || !name.contains('.') || name.starts_with(MODULE) || name.contains(".py(") {
        return None;
    }
    let tokens = name.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
    let parts = |token: &'_ str| token.contains('.') && token.split('.').all(|part| !part.is_empty());
    let token =
        tokens.filter(|token| parts(token) && token.starts_with(|c: char| c.is_ascii_alphabetic())).max_by_key(|token| token.len())?;
    let parts: Vec<&str> = token.split('.').collect();
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.iter().any(|part| part.starts_with(|c: char| c.is_ascii_digit()) && !is_number(part)) {
        return None;
    }
    Some(Path { number: parts.iter().position(|part| is_number(part)), parts })
}

/// Whether a name may be a module's path, and whether it names a layer by number.
pub(super) fn may_be_path(name: &str) -> Option<bool> {
    path(name).map(|path| path.number.is_some())
}

/// Per row what most votes say; of equals the first in order.
fn elect<T: Ord + Clone + std::hash::Hash>(votes: HashMap<(u32, T), u32, FixedState>, mut each: impl FnMut(usize, T)) {
    let mut best: HashMap<u32, (u32, T), FixedState> = HashMap::default();
    for ((row, value), count) in votes {
        let known = best.entry(row).or_insert_with(|| (count, value.clone()));
        if (count, &known.1) > (known.0, &value) {
            *known = (count, value);
        }
    }
    best.into_iter().for_each(|(row, (_, value))| each(row as usize, value));
}

/// Roles by row from paths in names.
pub(super) fn name_by_paths(trace: &Trace, queries: &[Query], roles: &mut [ModuleRole]) {
    let mut votes: HashMap<(u32, StrId), u32, FixedState> = HashMap::default();
    for query in queries {
        if let Some(name) = query.path {
            *votes.entry((query.row, name)).or_default() += 1;
        }
    }
    // A layer's number differs from layer to layer: names are made general before they vote.
    let mut roots: HashSet<&str, FixedState> = HashSet::default();
    let mut known: HashMap<StrId, Option<Path<'_>>, FixedState> = HashMap::default();
    for &(_, name) in votes.keys() {
        let path = known.entry(name).or_insert_with(|| path(trace.strings.get(name)));
        if let Some(path) = path.as_ref().filter(|path| path.number.is_some()) {
            roots.insert(path.parts[0]);
        }
    }
    let general = |name: StrId| -> Option<Vec<&str>> {
        let path = known.get(&name)?.as_ref()?;
        let inside = match path.number {
            Some(number) => &path.parts[number + 1..],
            None if roots.contains(path.parts[0]) => &path.parts[1..],
            None => return None,
        };
        let stars = inside.iter().map(|part| if part.bytes().all(|byte| byte.is_ascii_digit()) { "*" } else { part });
        Some(stars.collect()).filter(|inside: &Vec<&str>| !inside.is_empty())
    };
    let mut of_row: HashMap<(u32, Vec<&str>), u32, FixedState> = HashMap::default();
    for (&(row, name), &count) in &votes {
        if let Some(inside) = general(name) {
            *of_row.entry((row, inside)).or_default() += count;
        }
    }
    let distinct: HashSet<&Vec<&str>, FixedState> = of_row.keys().map(|(_, inside)| inside).collect();
    if distinct.len() < FEWEST_ROLES {
        return;
    }
    let last = |inside: &[&str]| {
        let from = inside.iter().rposition(|part| *part != "*").unwrap_or(0);
        inside[from..].join(".")
    };
    let mut same_last: HashMap<String, u32, FixedState> = HashMap::default();
    distinct.iter().for_each(|inside| *same_last.entry(last(inside)).or_default() += 1);
    drop(distinct);
    elect(of_row, |row, inside| {
        let short = last(&inside);
        let is_shared = same_last.get(&short).is_some_and(|&count| count > 1);
        let role = if is_shared { inside[inside.len().saturating_sub(short.split('.').count() + 1)..].join(".") } else { short };
        roles[row].path = Some(role);
    });
}

/// Nests of modules: each with the one around it. Two with the same name in the same one are the same.
#[derive(Default)]
struct Nests {
    all: Vec<(u32, StrId)>,
    numbers: HashMap<(u32, StrId), u32, FixedState>,
}

struct Open {
    end: Ns,
    nest: u32,
    depth: usize,
    function: Option<StrId>,
}

/// For each query the innermost module nest, and the outermost function of a name of its own inside that.
fn innermost(trace: &Trace, queries: &[Query], nests: &mut Nests) -> Vec<(u32, Option<StrId>)> {
    let frames = &trace.frames;
    let order = Order::nesting(trace.threads.len(), &frames.thread, &frames.start, &frames.dur);
    let mut sorted: Vec<usize> = (0..queries.len()).collect();
    sorted.sort_by_key(|&query| (queries[query].thread, queries[query].at));
    let mut found = vec![(NONE, None); queries.len()];
    let mut is_own: HashMap<StrId, bool, FixedState> = HashMap::default();
    let mut open: Vec<Open> = Vec::new();
    for chunk in sorted.chunk_by(|&a, &b| queries[a].thread == queries[b].thread) {
        open.clear();
        let Some(&first) = chunk.first() else { continue };
        let mut coming = order.thread(queries[first].thread.index()).map(|position| order.row(position) as usize).peekable();
        for &query in chunk {
            let at = queries[query].at;
            while let Some(row) = coming.next_if(|&row| frames.start[row] <= at) {
                let (start, end) = (frames.start[row], end_of(frames.start[row], frames.dur[row]));
                while open.last().is_some_and(|top| start >= top.end || end > top.end) {
                    open.pop();
                }
                let name = frames.name[row];
                let (nest, depth, function) = open.last().map_or((NONE, 0, None), |top| (top.nest, top.depth, top.function));
                if depth < DEEPEST && trace.strings.get(name).starts_with(MODULE) {
                    let next = nests.all.len() as u32;
                    let inner = *nests.numbers.entry((nest, name)).or_insert(next);
                    if inner == next {
                        nests.all.push((nest, name));
                    }
                    open.push(Open { end, nest: inner, depth: depth + 1, function: None });
                } else {
                    let own = || function_name(trace.strings.get(name)).is_some();
                    let is_own = nest != NONE && function.is_none() && *is_own.entry(name).or_insert_with(own);
                    open.push(Open { end, nest, depth, function: if is_own { Some(name) } else { function } });
                }
            }
            while open.last().is_some_and(|top| top.end <= at) {
                open.pop();
            }
            if let Some(top) = open.last() {
                found[query] = (top.nest, top.function);
            }
        }
    }
    found
}

/// The file and name of a function that says what it does (`cache_utils.update`): not one of those that every module has, and no
/// wrapper.
fn function_name(frame: &str) -> Option<String> {
    let (place, name) = frame.split_once("): ")?;
    let (file, line) = place.rsplit_once('(')?;
    let is_line = line.bytes().all(|byte| byte.is_ascii_digit());
    let stem = file.rsplit(['/', '\\']).next()?.strip_suffix(".py")?;
    let is_plain = |text: &str| (1..=80).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let tells = !name.starts_with('_') && !["forward", "wrapper", "wrapped", "inner", "decorate_context"].contains(&name);
    (is_line && is_plain(name) && is_plain(stem) && tells).then(|| format!("{stem}.{name}"))
}

/// The class in `nn.Module: Class_7`; of a name too long to be one, its beginning.
fn class(frame: &str) -> &str {
    let name = frame.strip_prefix(MODULE).unwrap_or(frame);
    if name.len() > LONGEST_CLASS {
        return &name[..name.floor_char_boundary(LONGEST_CLASS)];
    }
    match name.rsplit_once('_') {
        Some((class, number)) if !class.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => class,
        _ => name,
    }
}

/// What enough classes begin with, up to the begin of a word: `Qwen3` of `Qwen3Attention`, `Qwen3MLP`, `Qwen3RMSNorm`.
fn shared_prefix<'n>(classes: &HashSet<&'n str, FixedState>) -> &'n str {
    let mut counts: HashMap<&str, usize, FixedState> = HashMap::default();
    for class in classes {
        for (at, pair) in class.as_bytes().windows(2).enumerate().take(64) {
            if (pair[0].is_ascii_lowercase() || pair[0].is_ascii_digit()) && pair[1].is_ascii_uppercase() {
                *counts.entry(&class[..=at]).or_default() += 1;
            }
        }
    }
    let shared = counts.into_iter().filter(|&(_, count)| count >= SHARING);
    shared.max_by_key(|&(prefix, count)| (count, prefix.len(), prefix)).map_or("", |(prefix, _)| prefix)
}

/// The Python frames around all launches that were asked for, and what their modules have in common.
pub(super) struct Frames<'t> {
    trace: &'t Trace,
    nests: Nests,
    /// For each query its innermost module, and a function in it.
    found: Vec<(u32, Option<StrId>)>,
    /// Modules of one class in one module.
    sisters: HashMap<(u32, &'t str), u32, FixedState>,
    /// Classes of modules that hold others.
    holders: HashSet<&'t str, FixedState>,
    prefix: &'t str,
}

impl<'t> Frames<'t> {
    pub(super) fn find(trace: &'t Trace, queries: &[Query]) -> Self {
        let mut nests = Nests::default();
        let found = if trace.frames.is_empty() { Vec::new() } else { innermost(trace, queries, &mut nests) };
        let (sisters, holders) = (HashMap::default(), HashSet::default());
        let mut frames = Self { trace, nests, found, sisters, holders, prefix: "" };
        let mut classes = HashSet::default();
        for nest in 0..frames.nests.all.len() as u32 {
            let (outer, class) = (frames.outer(nest), frames.class(nest));
            *frames.sisters.entry((outer, class)).or_default() += 1;
            classes.insert(class);
            if outer != NONE {
                frames.holders.insert(frames.class(outer));
            }
        }
        frames.prefix = shared_prefix(&classes);
        frames
    }

    fn class(&self, nest: u32) -> &'t str {
        self.nests.all.get(nest as usize).map_or("", |&(_, name)| class(self.trace.strings.get(name)))
    }

    fn outer(&self, nest: u32) -> u32 {
        self.nests.all.get(nest as usize).map_or(NONE, |&(outer, _)| outer)
    }

    /// The class without what all classes begin with.
    fn bare(&self, nest: u32) -> &'t str {
        let class = self.class(nest);
        class.strip_prefix(self.prefix).filter(|rest| !rest.is_empty()).unwrap_or(class)
    }

    /// The modules around a query, outermost first.
    fn nest(&self, nest: u32) -> Vec<u32> {
        let some = |nest: u32| Some(nest).filter(|&nest| nest != NONE);
        let mut nest: Vec<u32> = std::iter::successors(some(nest), |&nest| some(self.outer(nest))).collect();
        nest.reverse();
        nest
    }

    /// Roles by row for some of the queries, which begin at the given one.
    pub(super) fn name(&self, first: usize, queries: &[Query], roles: &mut [ModuleRole]) {
        let Some(found) = self.found.get(first..first + queries.len()) else { return };
        // Which modules of a class path a layer has, in order of their first launch.
        let mut keys: HashMap<(u32, u32, String), usize, FixedState> = HashMap::default();
        let mut ranks: HashMap<(usize, u32), u32, FixedState> = HashMap::default();
        let mut counts: Vec<u32> = Vec::new();
        let mut leaf_of = Vec::with_capacity(queries.len());
        for (query, &(nest, _)) in queries.iter().zip(found) {
            let nest = self.nest(nest);
            let Some(&innermost) = nest.last().filter(|&&nest| !self.holders.contains(self.class(nest))) else {
                leaf_of.push(None);
                continue;
            };
            let has_sisters = |&nest: &u32| self.sisters.get(&(self.outer(nest), self.class(nest))).is_some_and(|&count| count > 1);
            let layer = nest.iter().position(has_sisters);
            let (last, layer) = (nest.len() - 1, layer.filter(|layer| layer + 1 < nest.len()));
            let inside = layer.map_or(last, |layer| (layer + 1).max(last.saturating_sub(1)));
            let text = nest[inside..].iter().map(|&nest| self.bare(nest)).collect::<Vec<_>>().join(".");
            let holder = layer.map_or(self.outer(innermost), |layer| nest[layer]);
            let next = counts.len();
            let key = *keys.entry((query.step, holder, text.clone())).or_insert(next);
            if key == next {
                counts.push(0_u32);
            }
            let rank = *ranks.entry((key, innermost)).or_insert_with(|| {
                counts[key] += 1;
                counts[key]
            });
            leaf_of.push(Some((text, key, rank)));
        }
        let mut leaves: HashMap<(u32, String), u32, FixedState> = HashMap::default();
        let mut functions: HashMap<(u32, StrId), u32, FixedState> = HashMap::default();
        for ((query, &(_, function)), leaf) in queries.iter().zip(found).zip(leaf_of) {
            if let Some((text, key, rank)) = leaf {
                let text = if counts[key] > 1 { format!("{text} #{rank}") } else { text };
                *leaves.entry((query.row, text)).or_default() += 1;
            } else if let Some(function) = function {
                *functions.entry((query.row, function)).or_default() += 1;
            }
        }
        elect(leaves, |row, leaf| roles[row].leaf = Some(leaf));
        elect(functions, |row, function| roles[row].function = function_name(self.trace.strings.get(function)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_modules() {
        let parts = |name| path(name).map(|path: Path<'_>| (path.parts.join("/"), path.number));
        assert_eq!(parts("model.layers.3.self_attn.q_proj"), Some(("model/layers/3/self_attn/q_proj".to_owned(), Some(2))));
        assert_eq!(parts("{'Module': 'model.layers.0.mlp', 'Inputs': [[1, 8]]}"), Some(("model/layers/0/mlp".to_owned(), Some(2))));
        assert_eq!(parts("model.embed_tokens"), Some(("model/embed_tokens".to_owned(), None)));
        for name in ["decode_step", "a..b", ".", "1.2.3", "aten::mm", "nn.Module: Linear_3", "x/y.py(12): forward", "h.3x.y", ""] {
            assert_eq!(parts(name), None, "{name}");
        }
        assert_eq!(may_be_path(&"a.1.".repeat(1_000)), None);
    }

    #[test]
    fn functions_that_say_something() {
        let named = "models/modeling_x.py(147): apply_rotary_pos_emb";
        assert_eq!(function_name(named).as_deref(), Some("modeling_x.apply_rotary_pos_emb"));
        for frame in
            ["a.py(3): forward", "a.py(3): _call_impl", "a.py(x): f", "<built-in method to>", "a.py(3): <lambda>", "nn.Module: A_1", "): "]
        {
            assert_eq!(function_name(frame), None, "{frame}");
        }
    }

    #[test]
    fn classes_lose_their_number_and_what_they_share() {
        assert_eq!(
            ["Linear_12", "Linear", "A_b", "_3"].map(|name| class(&format!("{MODULE}{name}")).to_owned()),
            ["Linear", "Linear", "A_b", "_3"]
        );
        let classes = |names: &[&'static str]| shared_prefix(&names.iter().copied().collect());
        assert_eq!(classes(&["Qwen3Attention", "Qwen3MLP", "Qwen3RMSNorm", "Linear", "SiLU"]), "Qwen3");
        assert_eq!(classes(&["LlamaAttention", "LlamaMLP", "Linear"]), "");
    }
}
