//! Interning on a worker: strings, threads, streams and launch shapes get small local numbers, and only what is new since
//! the worker's last segment travels to the merging thread.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use longpole_trace::{Detail, GraphNode, Tid};

/// Raw byte strings, appended to an arena. The arena holds only what was added since the last [`Bytes::take_new`], plus
/// everything before (the table must compare against it), so it lives as long as the worker.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    arena: Vec<u8>,
    spans: Vec<(u32, u32)>,
    table: HashTable<(u32, u32)>,
    sent: usize,
}

/// A fixed seed: results must not differ from run to run.
const HASHER: FixedState = FixedState::with_seed(0x6b69_6e65_746f);

impl Bytes {
    /// The local number of `raw`.
    #[inline]
    pub(super) fn intern(&mut self, raw: &[u8]) -> u32 {
        let hash = HASHER.hash_one(raw);
        let tag = (hash >> 16) as u32;
        let (arena, spans) = (&self.arena, &self.spans);
        let same = |&(index, other): &(u32, u32)| {
            let (start, len) = spans[index as usize];
            other == tag && len as usize == raw.len() && &arena[start as usize..start as usize + raw.len()] == raw
        };
        if let Some(&(index, _)) = self.table.find(hash, same) {
            return index;
        }
        self.add(raw, hash, tag)
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, raw: &[u8], hash: u64, tag: u32) -> u32 {
        let index = self.spans.len() as u32;
        self.spans.push((self.arena.len() as u32, raw.len() as u32));
        self.arena.extend_from_slice(raw);
        let (arena, spans) = (&self.arena, &self.spans);
        self.table.insert_unique(hash, (index, tag), |&(other, _)| {
            let (start, len) = spans[other as usize];
            HASHER.hash_one(&arena[start as usize..(start + len) as usize])
        });
        index
    }

    /// The bytes of a local number.
    #[inline]
    fn get(&self, index: u32) -> Option<&[u8]> {
        let &(start, len) = self.spans.get(index as usize)?;
        self.arena.get(start as usize..start as usize + len as usize)
    }

    /// True when the arena is so full that its 32-bit offsets could overflow soon.
    pub(super) fn is_full(&self) -> bool {
        self.arena.len() > 1 << 30
    }

    fn take_new(&mut self, into: &mut NewBytes) {
        into.clear();
        for &(start, len) in &self.spans[self.sent..] {
            into.arena.extend_from_slice(&self.arena[start as usize..(start + len) as usize]);
            into.ends.push(into.arena.len());
        }
        self.sent = self.spans.len();
    }
}

/// Byte strings that a worker interned since its last segment, in order.
#[derive(Debug, Default)]
pub(super) struct NewBytes {
    arena: Vec<u8>,
    ends: Vec<usize>,
}

impl NewBytes {
    fn clear(&mut self) {
        self.arena.clear();
        self.ends.clear();
    }

    /// The strings, in the order of their local numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|i| &self.arena[if i == 0 { 0 } else { self.ends[i - 1] }..self.ends[i]])
    }
}

/// A stream as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RawLane {
    /// Device number.
    pub(super) ordinal: i64,
    /// Context, if said.
    pub(super) context: Option<i64>,
    /// Stream number.
    pub(super) stream: i64,
}

/// Small values, with the last one used remembered: neighbouring events mostly share it.
#[derive(Debug)]
pub(super) struct Values<K> {
    list: Vec<K>,
    map: HashMap<K, u32, FixedState>,
    last: u32,
    sent: usize,
}

impl<K: Clone + Eq + Hash> Values<K> {
    fn new() -> Self {
        Self { list: Vec::new(), map: HashMap::with_hasher(HASHER), last: 0, sent: 0 }
    }

    /// The local number of `key`.
    #[inline]
    pub(super) fn intern(&mut self, key: K) -> u32 {
        if self.list.get(self.last as usize) == Some(&key) {
            return self.last;
        }
        let next = self.list.len() as u32;
        let list = &mut self.list;
        self.last = *self.map.entry(key).or_insert_with_key(|key| {
            list.push(key.clone());
            next
        });
        self.last
    }

    fn take_new(&mut self, into: &mut Vec<K>) {
        into.clear();
        into.extend_from_slice(&self.list[self.sent..]);
        self.sent = self.list.len();
    }
}

/// Which number came in which place the last time. A trace is one loop, so what came last time mostly comes again, and looking whether it
/// does is cheaper than finding a text's end, hashing it and looking it up.
#[derive(Debug)]
struct Guesses {
    slots: Box<[u32; 1 << Self::BITS]>,
}

impl Guesses {
    /// Places told apart: more than the texts of a step, few enough for the first-level cache. Places that collide guess wrong.
    const BITS: u32 = 10;

    fn new() -> Self {
        Self { slots: Box::new([u32::MAX; 1 << Self::BITS]) }
    }

    #[inline]
    fn slot(&self, place: (u32, u32)) -> usize {
        let both = (u64::from(place.0) << 32) | u64::from(place.1);
        (both.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - Self::BITS)) as usize % self.slots.len()
    }
}

/// Everything a worker interns.
#[derive(Debug)]
pub(super) struct Locals {
    /// String bodies, escapes unresolved.
    pub(super) texts: Bytes,
    /// Raw JSON values (shapes, types, strides and plain arguments).
    pub(super) values: Bytes,
    /// (pid, tid) of host threads.
    pub(super) threads: Values<(i64, Tid)>,
    /// Device streams.
    pub(super) lanes: Values<RawLane>,
    /// Launch shapes and transfers.
    pub(super) details: Values<Detail>,
    /// Graph nodes.
    pub(super) graph_nodes: Values<GraphNode>,
    /// Names by the two before; shapes and types by the operator's name and the shapes before.
    names: Guesses,
    shapes: Guesses,
    types: Guesses,
    last_names: (u32, u32),
    last_shapes: u32,
}

/// A raw value, if there is one, and its number, if it was guessed.
type Value<'a> = (Option<&'a [u8]>, Option<u32>);

/// A text or value that was guessed: its number, and its bytes, which must be compared.
pub(super) type Guess<'l> = Option<(u32, &'l [u8])>;

impl Default for Locals {
    fn default() -> Self {
        Self {
            texts: Bytes::default(),
            values: Bytes::default(),
            threads: Values::new(),
            lanes: Values::new(),
            details: Values::new(),
            graph_nodes: Values::new(),
            names: Guesses::new(),
            shapes: Guesses::new(),
            types: Guesses::new(),
            last_names: (0, 0),
            last_shapes: 0,
        }
    }
}

/// What a worker interned since its last segment.
#[derive(Debug, Default)]
pub(super) struct NewLocals {
    pub(super) texts: NewBytes,
    pub(super) values: NewBytes,
    pub(super) threads: Vec<(i64, Tid)>,
    pub(super) lanes: Vec<RawLane>,
    pub(super) details: Vec<Detail>,
    pub(super) graph_nodes: Vec<GraphNode>,
}

impl Locals {
    /// The name that the next event may have.
    #[inline]
    pub(super) fn guess_name(&self) -> Guess<'_> {
        let number = self.names.slots[self.names.slot(self.last_names)];
        self.texts.get(number).map(|text| (number, text))
    }

    /// The shapes that the operator with this name may have.
    #[inline]
    pub(super) fn guess_shapes(&self, name: u32) -> Guess<'_> {
        let number = self.shapes.slots[self.shapes.slot((name, self.last_shapes))];
        self.values.get(number).map(|text| (number, text))
    }

    /// The types that the operator with this name may have.
    #[inline]
    pub(super) fn guess_types(&self, name: u32) -> Guess<'_> {
        let number = self.types.slots[self.types.slot((name, self.last_shapes))];
        self.values.get(number).map(|text| (number, text))
    }

    /// The number of an event's name, which was guessed already or is looked up.
    #[inline]
    pub(super) fn name(&mut self, raw: &[u8], known: Option<u32>) -> u32 {
        let number = known.unwrap_or_else(|| self.texts.intern(raw));
        let slot = self.names.slot(self.last_names);
        self.names.slots[slot] = number;
        self.last_names = (number, self.last_names.0);
        number
    }

    /// The numbers of the shapes and types of the operator with this name, which were guessed already or are looked up.
    #[inline]
    pub(super) fn shapes_and_types(&mut self, name: u32, shapes: Value<'_>, types: Value<'_>) -> [Option<u32>; 2] {
        let place = (name, self.last_shapes);
        let [shapes, types] = [shapes, types].map(|(raw, known)| known.or_else(|| raw.map(|raw| self.values.intern(raw))));
        if let Some(number) = shapes {
            let slot = self.shapes.slot(place);
            self.shapes.slots[slot] = number;
            self.last_shapes = number;
        }
        if let Some(number) = types {
            let slot = self.types.slot(place);
            self.types.slots[slot] = number;
        }
        [shapes, types]
    }

    /// Moves out what is new.
    pub(super) fn take_new(&mut self, into: &mut NewLocals) {
        self.texts.take_new(&mut into.texts);
        self.values.take_new(&mut into.values);
        self.threads.take_new(&mut into.threads);
        self.lanes.take_new(&mut into.lanes);
        self.details.take_new(&mut into.details);
        self.graph_nodes.take_new(&mut into.graph_nodes);
    }
}
