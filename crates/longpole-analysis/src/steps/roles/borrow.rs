//! Borrowing: a step replayed from a graph runs the kernels of an eager step, but nothing on the host tells what each is for.
//!
//! The kernels of a layer, of what is before the layers and of what is after are aligned with those of a donor (global alignment in a
//! band around the diagonal). Equal names are strongly preferred; kernels of one family may stand for each other where the family says
//! what they do (another tile of a matrix product). What stays unmatched keeps its own name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{Ns, StrId, Trace};

use super::evidence::Names;
use crate::families::Family;
use crate::steps::table::is_kernel;
use crate::steps::types::{Part, RoleSource, StepGroup, StepNote, StepTable};

/// Scores of a pair: equal names, one telling family; and of a kernel without a partner.
const SAME_NAME: i32 = 8;
const SAME_FAMILY: i32 = 2;
const ALONE: i32 = -1;
/// How far from the diagonal partners may be, besides the difference of lengths.
const BAND: usize = 96;
/// Cells of the alignments of one group, and of all groups of a table, at most: what is beyond borrows nothing. A cell takes about two
/// nanoseconds.
const MOST_CELLS: usize = 1 << 25;
const MOST_CELLS_WITHIN: usize = 1 << 27;
/// A donor must match at least this share of the kernels of the layers.
const LEAST_MATCHED: f64 = 0.4;
/// A group whose own roles cover this share of the time need not borrow.
const KNOWN: f64 = 0.9;
/// Share of the time that must get a role by it.
const LEAST_GAIN: f64 = 0.05;
/// Groups that are tried as donors at most, nearest number of layers first, then nearest number of places.
const MOST_DONORS: usize = 8;

/// The roles of a group, to be borrowed by others, of the same trace or of another one.
#[derive(Clone, Debug)]
pub struct RoleDonor {
    name: String,
    layers: usize,
    places: usize,
    /// Share of the time with a role that is more than a kernel's name.
    known: f64,
    parts: BTreeMap<Part, Vec<Lent>>,
}

#[derive(Clone, Debug)]
struct Lent {
    kernel: Arc<str>,
    family: Family,
    /// Absent where the donor has only the kernel's name.
    role: Option<String>,
}

/// What a group borrowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BorrowedRoles {
    /// Name of the group that lent.
    pub donor: String,
    /// Kernels matched in one layer of each kind, and all kernels of it.
    pub layers: Vec<(u32, u32)>,
    /// Time of the matched kernels of layers, and of all kernels of layers, over all steps.
    pub layers_matched_ns: Ns,
    /// See [`Self::layers_matched_ns`].
    pub layers_ns: Ns,
    /// Time of all matched places of the step, over all steps.
    pub matched_ns: Ns,
    /// Busy of all steps.
    pub total_ns: Ns,
}

impl fmt::Display for BorrowedRoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "roles borrowed from `{}`", self.donor)?;
        for (number, (matched, all)) in self.layers.iter().enumerate() {
            write!(f, "{} {matched} of {all} kernels", if number == 0 { ":" } else { "," })?;
        }
        if !self.layers.is_empty() {
            f.write_str(" a layer matched")?;
        }
        if let Some(percent) = crate::phrases::percent(self.layers_matched_ns, self.layers_ns) {
            write!(f, ", {percent} of the time of layers")?;
        }
        if let Some(percent) = crate::phrases::percent(self.matched_ns, self.total_ns) {
            write!(f, ", {percent} of all")?;
        }
        Ok(())
    }
}

/// Share of the time of rows whose role is more than a kernel's name.
fn known(group: &StepGroup) -> f64 {
    let named = group.rows.iter().filter(|row| row.role_from != RoleSource::Kernel);
    crate::phrases::fraction(named.map(|row| row.total_ns).sum(), group.total_busy_ns)
}

/// The groups of a table that have roles to lend.
pub fn role_donors(trace: &Trace, table: &StepTable) -> Vec<RoleDonor> {
    donors(trace, table, &mut Names::new(trace))
}

fn donors(trace: &Trace, table: &StepTable, names: &mut Names<'_>) -> Vec<RoleDonor> {
    let has_roles = |group: &&StepGroup| group.rows.iter().any(|row| !matches!(row.role_from, RoleSource::Kernel | RoleSource::Borrowed));
    // Kernel names are long, and the same in all groups.
    let mut texts: HashMap<StrId, Arc<str>, FixedState> = HashMap::default();
    let donor = |group: &StepGroup| {
        let mut parts: BTreeMap<Part, Vec<Lent>> = BTreeMap::new();
        for row in group.rows.iter().filter(|row| row.place.is_some()) {
            let kernel = Arc::clone(texts.entry(row.name).or_insert_with(|| Arc::from(trace.strings.get(row.name))));
            let family = names.family(row.kind, row.name);
            let role = (row.role_from != RoleSource::Kernel).then(|| row.role.clone());
            parts.entry(row.part).or_default().push(Lent { kernel, family, role });
        }
        RoleDonor { name: group.name.clone(), layers: layers(group), places: places(group), known: known(group), parts }
    };
    table.groups.iter().filter(has_roles).map(donor).collect()
}

/// Borrowing among the groups of one trace.
pub(super) fn borrow_within(trace: &Trace, table: &mut StepTable, names: &mut Names<'_>) {
    if table.groups.iter().all(|group| known(group) >= KNOWN) {
        return;
    }
    let donors = donors(trace, table, names);
    let mut cells = MOST_CELLS_WITHIN;
    for group in &mut table.groups {
        borrow(trace, group, &donors, names, &mut cells);
    }
}

fn layers(group: &StepGroup) -> usize {
    group.layers.as_ref().map_or(0, |layers| layers.order.len())
}

fn places(group: &StepGroup) -> usize {
    group.rows.iter().filter(|row| row.place.is_some()).count()
}

impl RoleDonor {
    /// The role at a position of a part.
    fn role(&self, part: Part, at: usize) -> Option<&str> {
        self.parts.get(&part)?.get(at)?.role.as_deref()
    }
}

/// Positions that were aligned, in order.
type Pairs = Vec<(usize, usize)>;

/// A way to match a group with a donor.
struct Matches {
    /// Row of the group, part of the donor, position in it.
    pairs: Vec<(usize, Part, usize)>,
    layers: Vec<(u32, u32)>,
}

/// Fills the roles of a group that are only kernel names from the donor that fits best: with as many layers if there is one, then
/// with most kernels matched. Adds a note of what was matched. Does nothing where the group knows its roles, where no donor knows
/// more, where none fits, or where hardly anything would be gained.
pub fn borrow_roles(trace: &Trace, group: &mut StepGroup, donors: &[RoleDonor]) -> Option<BorrowedRoles> {
    borrow(trace, group, donors, &mut Names::new(trace), &mut { MOST_CELLS })
}

fn borrow(trace: &Trace, group: &mut StepGroup, donors: &[RoleDonor], names: &mut Names<'_>, cells: &mut usize) -> Option<BorrowedRoles> {
    let own = known(group);
    if own >= KNOWN {
        return None;
    }
    let count = layers(group);
    let mut fitting: Vec<&RoleDonor> = donors.iter().filter(|donor| donor.known > own).collect();
    let places = places(group);
    fitting.sort_by_key(|donor| (donor.layers.abs_diff(count), donor.places.abs_diff(places)));
    let nearest = fitting.first()?.layers.abs_diff(count);
    fitting.retain(|donor| donor.layers.abs_diff(count) == nearest);
    fitting.truncate(MOST_DONORS);
    let mut best: Option<(f64, &RoleDonor, Matches)> = None;
    for donor in fitting {
        let matches = match_all(trace, group, donor, names, cells);
        let (matched, all) = matches.layers.iter().fold((0, 0), |(matched, all), of| (matched + of.0, all + of.1));
        let share = if all > 0 { f64::from(matched) / f64::from(all) } else { matches.pairs.len() as f64 / group.rows.len().max(1) as f64 };
        if share >= LEAST_MATCHED && best.as_ref().is_none_or(|(known, ..)| share > *known) {
            best = Some((share, donor, matches));
        }
    }
    let (_, donor, matches) = best?;
    let gains =
        |&&(row, part, at): &&(usize, Part, usize)| group.rows[row].role_from == RoleSource::Kernel && donor.role(part, at).is_some();
    let gain: Ns = matches.pairs.iter().filter(gains).map(|&(row, ..)| group.rows[row].total_ns).sum();
    if crate::phrases::fraction(gain, group.total_busy_ns) < LEAST_GAIN {
        return None;
    }
    Some(apply(group, donor, &matches))
}

fn apply(group: &mut StepGroup, donor: &RoleDonor, matches: &Matches) -> BorrowedRoles {
    let mut borrowed = BorrowedRoles {
        donor: donor.name.clone(),
        layers: matches.layers.clone(),
        layers_matched_ns: Ns::ZERO,
        layers_ns: group.rows.iter().filter(|row| matches!(row.part, Part::Layer(_))).map(|row| row.total_ns).sum(),
        matched_ns: Ns::ZERO,
        total_ns: group.total_busy_ns,
    };
    for &(row, part, at) in &matches.pairs {
        let row = &mut group.rows[row];
        borrowed.matched_ns += row.total_ns;
        if matches!(row.part, Part::Layer(_)) {
            borrowed.layers_matched_ns += row.total_ns;
        }
        if let Some(role) = donor.role(part, at)
            && row.role_from == RoleSource::Kernel
        {
            role.clone_into(&mut row.role);
            row.role_from = RoleSource::Borrowed;
        }
    }
    group.notes.push(StepNote::RolesBorrowed(borrowed.clone()));
    borrowed
}

/// Aligns each part of a group with the same part of a donor; a kind of layer with the kind that has most in common with it.
fn match_all(trace: &Trace, group: &StepGroup, donor: &RoleDonor, names: &mut Names<'_>, cells: &mut usize) -> Matches {
    let mut matches = Matches { pairs: Vec::new(), layers: Vec::new() };
    let placed: Vec<usize> = (0..group.rows.len()).filter(|&row| group.rows[row].place.is_some()).collect();
    for rows in placed.chunk_by(|&a, &b| group.rows[a].part == group.rows[b].part) {
        let part = group.rows[rows[0]].part;
        let own: Vec<(&str, Family)> = rows
            .iter()
            .map(|&row| {
                let row = &group.rows[row];
                (trace.strings.get(row.name), names.family(row.kind, row.name))
            })
            .collect();
        let is_layer = matches!(part, Part::Layer(_));
        let candidates = donor.parts.iter().filter(|(other, _)| if is_layer { matches!(other, Part::Layer(_)) } else { **other == part });
        let mut best: Option<(i32, Part, Pairs)> = None;
        for (&other, lent) in candidates {
            let (score, pairs) = align(&own, lent, cells);
            if best.as_ref().is_none_or(|(known, ..)| score > *known) {
                best = Some((score, other, pairs));
            }
        }
        let (other, pairs) = best.map_or((part, Vec::new()), |(_, other, pairs)| (other, pairs));
        if is_layer {
            let is_kernel = |at: usize| is_kernel(group.rows[rows[at]].kind);
            let matched = pairs.iter().filter(|&&(at, _)| is_kernel(at)).count();
            matches.layers.push((matched as u32, (0..rows.len()).filter(|&at| is_kernel(at)).count() as u32));
        }
        matches.pairs.extend(pairs.into_iter().map(|(at, lent)| (rows[at], other, lent)));
    }
    matches
}

/// Whether kernels of a family do one thing, whatever their names.
fn tells(family: Family) -> bool {
    matches!(family, Family::Gemm | Family::Attention | Family::Norm | Family::Communication | Family::SoftmaxSampling)
}

/// The best alignment of two rows of kernels: its score, and the pairs in order.
fn align(own: &[(&str, Family)], lent: &[Lent], cells: &mut usize) -> (i32, Pairs) {
    let (height, width) = (own.len(), lent.len());
    let reach = BAND + height.abs_diff(width);
    let across = (2 * reach + 1).min(width + 1);
    let Some(left) = cells.checked_sub((height + 1).saturating_mul(across)) else { return (i32::MIN, Vec::new()) };
    *cells = left;
    let mut numbers: HashMap<&str, u32, FixedState> = HashMap::default();
    let mut number = |name| {
        let next = numbers.len() as u32;
        *numbers.entry(name).or_insert(next)
    };
    let own: Vec<(u32, Family)> = own.iter().map(|&(name, family)| (number(name), family)).collect();
    let lent: Vec<(u32, Family)> = lent.iter().map(|lent| (number(&lent.kernel), lent.family)).collect();
    let pair = |at: usize, other: usize| {
        let ((name, family), (other, other_family)) = (own[at], lent[other]);
        if name == other {
            Some(SAME_NAME)
        } else if family == other_family && tells(family) {
            Some(SAME_FAMILY)
        } else {
            None
        }
    };
    // Row by row from the end, so that of equal alignments the one that matches first is read off forwards.
    let first = |at: usize| at.saturating_sub(reach).min(width + 1 - across);
    let mut scores = vec![i32::MIN / 2; (height + 1) * across];
    let cell = |at: usize, other: usize| -> Option<usize> {
        let column = other.checked_sub(first(at)).filter(|&column| column < across && other <= width)?;
        Some(at * across + column)
    };
    let score = |scores: &[i32], at: usize, other: usize| cell(at, other).map_or(i32::MIN / 2, |cell| scores[cell]);
    for at in (0..=height).rev() {
        for other in (first(at)..first(at) + across).rev() {
            let best = if at == height && other == width {
                0
            } else {
                let below = if at < height { score(&scores, at + 1, other) + ALONE } else { i32::MIN / 2 };
                let beside = if other < width { score(&scores, at, other + 1) + ALONE } else { i32::MIN / 2 };
                let both = if at < height && other < width {
                    pair(at, other).map_or(i32::MIN / 2, |gain| score(&scores, at + 1, other + 1) + gain)
                } else {
                    i32::MIN / 2
                };
                below.max(beside).max(both)
            };
            if let Some(cell) = cell(at, other) {
                scores[cell] = best;
            }
        }
    }
    let mut pairs = Vec::new();
    let (mut at, mut other) = (0, 0);
    while at < height && other < width {
        let here = score(&scores, at, other);
        if pair(at, other).is_some_and(|gain| score(&scores, at + 1, other + 1) + gain == here) {
            pairs.push((at, other));
            (at, other) = (at + 1, other + 1);
        } else if score(&scores, at + 1, other) + ALONE == here {
            at += 1;
        } else {
            other += 1;
        }
    }
    (score(&scores, 0, 0), pairs)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(own: &[u8], lent: &[u8]) -> (i32, Pairs) {
        let names: Vec<String> = (0..=255_u8).map(|name| format!("k{name}")).collect();
        let own: Vec<(&str, Family)> = own.iter().map(|&name| (&names[name as usize][..], Family::Elementwise)).collect();
        let lent: Vec<Lent> = lent
            .iter()
            .map(|&name| Lent { kernel: Arc::from(&names[name as usize][..]), family: Family::Elementwise, role: None })
            .collect();
        align(&own, &lent, &mut { MOST_CELLS })
    }

    #[test]
    fn inserted_kernels_stay_alone() {
        assert_eq!(pairs(b"abxycd", b"abcd").1, [(0, 0), (1, 1), (4, 2), (5, 3)]);
        assert_eq!(pairs(b"abcd", b"abxycd").1, [(0, 0), (1, 1), (2, 4), (3, 5)]);
        assert_eq!(pairs(b"", b"ab"), (-2, Vec::new()));
        assert_eq!(pairs(b"abc", b""), (-3, Vec::new()));
    }

    #[test]
    fn a_telling_family_stands_in_for_a_name() {
        let lent = |kernel: &str, family| Lent { kernel: Arc::from(kernel), family, role: None };
        let own = [("tile 1", Family::Gemm), ("add", Family::Elementwise), ("tile 2", Family::Gemm)];
        let others = [lent("tile 3", Family::Gemm), lent("mul", Family::Elementwise), lent("tile 2", Family::Gemm)];
        assert_eq!(align(&own, &others, &mut 1_000).1, [(0, 0), (2, 2)]);
    }

    #[test]
    fn long_parts_are_bounded() {
        let own = vec![7_u8; 30_000];
        assert_eq!(pairs(&own, &own[..20_000]), (i32::MIN, Vec::new()));
        assert_eq!(pairs(&own[..20_000], &own[..20_000]).1.len(), 20_000);
    }

    /// The score by the plain recursion over the whole table.
    fn naive(own: &[u8], lent: &[u8]) -> i32 {
        let mut scores = vec![vec![0; lent.len() + 1]; own.len() + 1];
        for at in (0..=own.len()).rev() {
            for other in (0..=lent.len()).rev() {
                let mut best = if at == own.len() && other == lent.len() { 0 } else { i32::MIN };
                if at < own.len() {
                    best = best.max(scores[at + 1][other] + ALONE);
                }
                if other < lent.len() {
                    best = best.max(scores[at][other + 1] + ALONE);
                }
                if at < own.len() && other < lent.len() && own[at] == lent[other] {
                    best = best.max(scores[at + 1][other + 1] + SAME_NAME);
                }
                scores[at][other] = best;
            }
        }
        scores[0][0]
    }

    proptest! {
        #[test]
        fn alignments_are_the_best(own in proptest::collection::vec(0_u8..5, 0..40), lent in proptest::collection::vec(0_u8..5, 0..40)) {
            let (score, pairs) = pairs(&own, &lent);
            prop_assert_eq!(score, naive(&own, &lent));
            prop_assert!(pairs.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
            prop_assert!(pairs.iter().all(|&(at, other)| own[at] == lent[other]));
            let alone = own.len() + lent.len() - 2 * pairs.len();
            prop_assert_eq!(score, pairs.len() as i32 * SAME_NAME + alone as i32 * ALONE);
        }
    }
}
