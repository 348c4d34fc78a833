//! Collectives: the calls of several ranks that are one, and the communicators that they show where none is named.

use super::align::{Alignment, align};
use super::calls::{Call, GroupKey, MemberCalls, NamedGroup};
use super::clocks::{Comparison, compare};
use super::types::MatchedBy;

/// Comparisons of calls at most: this many a call and as many at least. Only hostile or hopeless traces need more.
const WORK_A_CALL: u64 = 256;
const LEAST_WORK: u64 = 16_000_000;

/// A communicator whose collectives were found.
#[derive(Debug)]
pub(super) struct Matched {
    pub(super) key: GroupKey,
    pub(super) size: Option<u32>,
    pub(super) members: Vec<MemberCalls>,
    pub(super) by: MatchedBy,
    /// Collectives in order, each with the calls of at least two members: (member, call).
    pub(super) collectives: Vec<Vec<(u32, u32)>>,
    pub(super) unmatched: u64,
}

/// Matches the calls of every group, and compares the clocks of its members.
pub(super) fn matched(groups: Vec<NamedGroup>) -> (Vec<Matched>, Vec<Comparison>) {
    let calls: usize = groups.iter().flat_map(|group| &group.members).map(|member| member.calls.len()).sum();
    let limit = LEAST_WORK.saturating_add(WORK_A_CALL.saturating_mul(calls as u64));
    let (mut found, mut comparisons, mut work) = (Vec::new(), Vec::new(), 0);
    for group in groups {
        let is_named = group.key.name.is_some();
        let mut rest = group.members;
        while rest.len() > 1 && work < limit {
            let reference = longest(&rest);
            let reference = rest.swap_remove(reference);
            let mut joined = vec![(reference, None)];
            let mut others = Vec::new();
            for member in std::mem::take(&mut rest) {
                let alignment = align(&joined[0].0.calls, &member.calls, &mut work);
                // Ranks of unnamed communicators may be of different ones: only common ends show that they are of one.
                if is_named || belongs(&alignment, joined[0].0.calls.len().min(member.calls.len())) {
                    joined.push((member, Some(alignment)));
                } else {
                    others.push(member);
                }
            }
            others.sort_by_key(|member| member.rank);
            rest = others;
            if joined.len() > 1 {
                found.push(join(group.key, group.size, joined, &mut comparisons));
            }
        }
    }
    (found, comparisons)
}

fn longest(members: &[MemberCalls]) -> usize {
    (0..members.len()).max_by_key(|&at| (members[at].calls.len(), std::cmp::Reverse(members[at].rank))).unwrap_or(0)
}

fn belongs(alignment: &Alignment, fewer: usize) -> bool {
    alignment.by != MatchedBy::Order && alignment.pairs.len() * 2 >= fewer && !alignment.pairs.is_empty()
}

fn join(key: GroupKey, size: Option<u32>, joined: Vec<(MemberCalls, Option<Alignment>)>, comparisons: &mut Vec<Comparison>) -> Matched {
    let reference = (joined[0].0.rank, &joined[0].0.calls[..]);
    let mut collectives: Vec<Vec<(u32, u32)>> = (0..reference.1.len() as u32).map(|call| vec![(0, call)]).collect();
    let mut by = MatchedBy::Sequence;
    for (at, (member, alignment)) in joined.iter().enumerate() {
        let Some(alignment) = alignment else { continue };
        by = by.max(alignment.by);
        for &(call, other) in &alignment.pairs {
            collectives[call as usize].push((at as u32, other));
        }
        if alignment.by != MatchedBy::Order {
            comparisons.extend(compare(reference, (member.rank, &member.calls), &alignment.pairs));
        }
    }
    collectives.retain(|entries| entries.len() > 1);
    let matched: usize = collectives.iter().map(Vec::len).sum();
    let members: Vec<MemberCalls> = joined.into_iter().map(|(member, _)| member).collect();
    let all: usize = members.iter().map(|member| member.calls.len()).sum();
    Matched { key, size, by, collectives, unmatched: (all - matched) as u64, members }
}

impl Matched {
    /// A call and its rank.
    pub(super) fn call(&self, (member, call): (u32, u32)) -> (usize, &Call) {
        let member = &self.members[member as usize];
        (member.rank, &member.calls[call as usize])
    }
}
