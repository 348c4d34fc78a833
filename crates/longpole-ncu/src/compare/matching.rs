//! Which kernel of one report is which of the other.
//!
//! Four passes, each over what the one before left: whole name, function name, launch shape, and a lone rest between two
//! matched neighbours. Within a pass the n-th launch of a key goes with the n-th; where a key has several launch shapes, launches of
//! the same shape go together first. A pass looks at every launch once, so that two reports of any size are matched in time
//! that grows with their sum.

use std::collections::HashMap;
use std::hash::Hash;

use super::types::MatchedBy;
use crate::container::EntryKind;

/// What matching needs of a result, and some more that is read along with it.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) id: usize,
    pub(super) kind: EntryKind,
    pub(super) name: String,
    pub(super) function: String,
    pub(super) grid: Option<[u64; 3]>,
    pub(super) block: Option<[u64; 3]>,
    pub(super) duration_ns: Option<u64>,
    pub(super) clocks_locked: Option<bool>,
}

/// Two places in the lists of heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Matched {
    pub(super) before: usize,
    pub(super) after: usize,
    pub(super) by: MatchedBy,
}

/// All pairs in the order of the first list, and what is left of both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matching {
    pub(super) pairs: Vec<Matched>,
    pub(super) only_before: Vec<usize>,
    pub(super) only_after: Vec<usize>,
}

/// Matches two lists of launches, each in the order of its report.
pub(super) fn matching(before: &[Head], after: &[Head]) -> Matching {
    let mut state = State { before, after, partner_of_before: vec![None; before.len()], is_taken: vec![false; after.len()] };
    state.pass(MatchedBy::Name, |head| (head.kind, head.name.as_str(), head.grid, head.block));
    state.pass(MatchedBy::Name, |head| (head.kind, head.name.as_str()));
    state.pass(MatchedBy::Function, |head| (head.kind, head.function.as_str(), head.grid, head.block));
    state.pass(MatchedBy::Function, |head| (head.kind, head.function.as_str()));
    state.pass(MatchedBy::OrderAndShape, |head| (head.kind, head.grid, head.block));
    state.lone_rests();
    state.finish()
}

struct State<'a> {
    before: &'a [Head],
    after: &'a [Head],
    partner_of_before: Vec<Option<(usize, MatchedBy)>>,
    is_taken: Vec<bool>,
}

impl<'a> State<'a> {
    /// Pairs the n-th of what is left with a key with the n-th of what is left with the same key.
    fn pass<K: Eq + Hash>(&mut self, by: MatchedBy, key: impl Fn(&'a Head) -> K) {
        let mut waiting: HashMap<K, std::collections::VecDeque<usize>> = HashMap::new();
        for (place, head) in self.after.iter().enumerate().filter(|(place, _)| !self.is_taken[*place]) {
            waiting.entry(key(head)).or_default().push_back(place);
        }
        for (head, partner) in self.before.iter().zip(&mut self.partner_of_before) {
            if partner.is_none()
                && let Some(after) = waiting.get_mut(&key(head)).and_then(std::collections::VecDeque::pop_front)
            {
                self.is_taken[after] = true;
                *partner = Some((after, by));
            }
        }
    }

    /// Between two matched launches that follow each other in both lists (or an end of both), one launch that is left on each
    /// side is the same place in the program: it is paired by nothing but that.
    fn lone_rests(&mut self) {
        let mut rest_before: Vec<usize> = Vec::new();
        let mut last_after = None;
        for place in 0..=self.before.len() {
            let partner = self.partner_of_before.get(place).map(|partner| partner.map(|(after, _)| after));
            let next_after = match partner {
                Some(None) => {
                    rest_before.push(place);
                    continue;
                }
                Some(Some(after)) => after,
                None => self.after.len(),
            };
            let from = last_after.map_or(0, |last| last + 1);
            // Launches that are matched across others have no gap between them that belongs to both.
            if let &[lone] = rest_before.as_slice()
                && next_after == from + 1
                && !self.is_taken[from]
                && self.before[lone].kind == self.after[from].kind
            {
                self.is_taken[from] = true;
                self.partner_of_before[lone] = Some((from, MatchedBy::Order));
            }
            rest_before.clear();
            last_after = Some(next_after);
        }
        self.last_two();
    }

    /// The only launch that is left on both sides goes with the other wherever the two stand.
    fn last_two(&mut self) {
        let mut before = self.partner_of_before.iter().enumerate().filter(|(_, partner)| partner.is_none()).map(|(place, _)| place);
        let mut after = self.is_taken.iter().enumerate().filter(|(_, is_taken)| !**is_taken).map(|(place, _)| place);
        if let (Some(first), None, Some(second), None) = (before.next(), before.next(), after.next(), after.next())
            && self.before[first].kind == self.after[second].kind
        {
            self.is_taken[second] = true;
            self.partner_of_before[first] = Some((second, MatchedBy::Order));
        }
    }

    fn finish(self) -> Matching {
        let mut found = Matching::default();
        for (before, partner) in self.partner_of_before.into_iter().enumerate() {
            match partner {
                Some((after, by)) => found.pairs.push(Matched { before, after, by }),
                None => found.only_before.push(before),
            }
        }
        found.only_after = self.is_taken.iter().enumerate().filter(|(_, is_taken)| !**is_taken).map(|(place, _)| place).collect();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MatchedBy::{Function, Name, Order, OrderAndShape};

    fn head(name: &str, blocks: u64) -> Head {
        Head {
            id: 0,
            kind: EntryKind::Kernel,
            name: name.to_owned(),
            function: name.split('<').next().unwrap().to_owned(),
            grid: Some([blocks, 1, 1]),
            block: Some([128, 1, 1]),
            duration_ns: None,
            clocks_locked: None,
        }
    }

    /// Pairs, and what is left on both sides.
    type Found = (Vec<(usize, usize, MatchedBy)>, Vec<usize>, Vec<usize>);

    fn found(before: &[(&str, u64)], after: &[(&str, u64)]) -> Found {
        let heads = |list: &[(&str, u64)]| list.iter().map(|(name, blocks)| head(name, *blocks)).collect::<Vec<_>>();
        let matching = matching(&heads(before), &heads(after));
        (matching.pairs.iter().map(|pair| (pair.before, pair.after, pair.by)).collect(), matching.only_before, matching.only_after)
    }

    #[test]
    fn launches_of_a_name_go_by_shape_and_then_by_order() {
        let (pairs, before, after) = found(&[("a", 1), ("a", 2), ("a", 1), ("a", 3)], &[("a", 2), ("a", 1), ("a", 1), ("a", 9), ("a", 9)]);
        assert_eq!(pairs, [(0, 1, Name), (1, 0, Name), (2, 2, Name), (3, 3, Name)]);
        assert_eq!((before, after), (vec![], vec![4]));
    }

    #[test]
    fn other_template_arguments_are_the_same_function() {
        let (pairs, ..) = found(&[("f<1>", 1), ("f<2>", 1)], &[("f<2>", 1), ("f<3>", 5)]);
        assert_eq!(pairs, [(0, 1, Function), (1, 0, Name)]);
    }

    #[test]
    fn a_renamed_kernel_goes_by_order_and_shape() {
        let (pairs, before, after) = found(&[("x", 7), ("k", 1), ("y", 8)], &[("k", 1), ("p", 8), ("q", 7), ("r", 9)]);
        assert_eq!(pairs, [(0, 2, OrderAndShape), (1, 0, Name), (2, 1, OrderAndShape)]);
        assert_eq!((before, after), (vec![], vec![3]));
    }

    #[test]
    fn a_lone_rest_between_the_same_neighbours_goes_by_order() {
        let before = [("a", 1), ("old", 5), ("b", 1), ("a", 1), ("old", 5), ("b", 1)];
        let after = [("a", 1), ("new", 6), ("b", 1), ("a", 1), ("new", 6), ("b", 1)];
        let (pairs, ..) = found(&before, &after);
        assert_eq!(pairs[1], (1, 1, Order));
        assert_eq!(pairs[4], (4, 4, Order));
        // At both ends too, and where it is all there is.
        assert_eq!(found(&[("old", 5), ("b", 1)], &[("new", 6), ("b", 1)]).0, [(0, 0, Order), (1, 1, Name)]);
        assert_eq!(found(&[("old", 5)], &[("new", 6)]).0, [(0, 0, Order)]);
        // The last two that are left, wherever they stand.
        assert_eq!(found(&[("old", 5), ("b", 1)], &[("b", 1), ("new", 6)]).0, [(0, 1, Order), (1, 0, Name)]);
    }

    #[test]
    fn several_that_are_left_are_not_guessed() {
        let (pairs, before, after) = found(&[("a", 1), ("o1", 5), ("o2", 6)], &[("a", 1), ("n1", 7), ("n2", 8)]);
        assert_eq!((pairs.len(), before, after), (1, vec![1, 2], vec![1, 2]));
        let (pairs, before, after) = found(&[("o1", 5)], &[("n1", 7), ("n2", 8)]);
        assert_eq!((pairs.len(), before.len(), after.len()), (0, 1, 2));
    }

    #[test]
    fn kinds_do_not_mix() {
        let mut range = head("old", 1);
        range.kind = EntryKind::Range;
        assert_eq!(matching(&[range], &[head("old", 1)]).pairs, []);
    }

    #[test]
    fn everything_is_in_one_place_whatever_comes() {
        // A small generator of numbers, so that the lists are the same in every run.
        let mut seed = 7_u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let mut list = |names: u64| {
                let length = next(12);
                (0..length).map(|_| head(&format!("k{}<{}>", next(names), next(2)), next(3))).collect::<Vec<_>>()
            };
            let (before, after) = (list(4), list(5));
            let matching = matching(&before, &after);
            let mut firsts: Vec<usize> =
                matching.pairs.iter().map(|pair| pair.before).chain(matching.only_before.iter().copied()).collect();
            let mut seconds: Vec<usize> = matching.pairs.iter().map(|pair| pair.after).chain(matching.only_after.iter().copied()).collect();
            firsts.sort_unstable();
            seconds.sort_unstable();
            assert_eq!(firsts, (0..before.len()).collect::<Vec<_>>());
            assert_eq!(seconds, (0..after.len()).collect::<Vec<_>>());
        }
    }
}
