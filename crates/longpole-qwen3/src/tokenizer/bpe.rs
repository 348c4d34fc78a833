//! Byte-pair encoding of one piece: neighbours are merged, the earliest merge of the list first, until none is left.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Merges by their two sides: how early they come, and what they make.
pub(super) type Merges = HashMap<(u32, u32), (u32, u32)>;

/// Merges what can be merged. The heap holds every pair that was neighbours at some time; one that is no longer is passed over, so the work grows
/// as n log n with the length of the piece.
pub(super) fn merged(mut tokens: Vec<u32>, merges: &Merges) -> Vec<u32> {
    const NONE: usize = usize::MAX;
    let count = tokens.len();
    let mut next: Vec<usize> = (1..=count).map(|at| if at == count { NONE } else { at }).collect();
    let mut before: Vec<usize> = (0..count).map(|at| at.checked_sub(1).unwrap_or(NONE)).collect();
    let mut gone = vec![false; count];
    let mut heap = BinaryHeap::new();
    let offer = |heap: &mut BinaryHeap<_>, tokens: &[u32], left: usize, right: usize| {
        if let Some((rank, _)) = merges.get(&(tokens[left], tokens[right])) {
            heap.push(Reverse((*rank, left, right, tokens[left], tokens[right])));
        }
    };
    for right in 1..count {
        offer(&mut heap, &tokens, right - 1, right);
    }
    while let Some(Reverse((_, left, right, a, b))) = heap.pop() {
        let still = !gone[left] && !gone[right] && next[left] == right && tokens[left] == a && tokens[right] == b;
        let Some((_, made)) = merges.get(&(a, b)).filter(|_| still) else { continue };
        tokens[left] = *made;
        gone[right] = true;
        next[left] = next[right];
        if next[right] != NONE {
            before[next[right]] = left;
            offer(&mut heap, &tokens, left, next[right]);
        }
        if before[left] != NONE {
            offer(&mut heap, &tokens, before[left], left);
        }
    }
    tokens.into_iter().zip(gone).filter(|(_, gone)| !gone).map(|(token, _)| token).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by looking at every pair each time.
    fn plain(mut tokens: Vec<u32>, merges: &Merges) -> Vec<u32> {
        loop {
            let best =
                (1..tokens.len()).filter_map(|at| merges.get(&(tokens[at - 1], tokens[at])).map(|merge| (merge.0, at, merge.1))).min();
            let Some((_, at, made)) = best else { return tokens };
            tokens[at - 1] = made;
            tokens.remove(at);
        }
    }

    #[test]
    fn the_heap_merges_as_the_plain_way_does() {
        let mut state = 5u32;
        let mut random = |below: u32| {
            state = crate::random::mixed(state.wrapping_add(0x9E37_79B9));
            state % below
        };
        for _ in 0..300 {
            let mut merges = Merges::new();
            for rank in 0..20 {
                let pair = (random(4 + rank), random(4 + rank));
                merges.entry(pair).or_insert((rank, 4 + rank));
            }
            let tokens: Vec<u32> = (0..random(30)).map(|_| random(4)).collect();
            assert_eq!(merged(tokens.clone(), &merges), plain(tokens, &merges));
        }
    }
}
