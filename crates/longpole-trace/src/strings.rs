//! The string interner: each distinct string is stored once and named by a [`StrId`].
//!
//! One arena and an offset column instead of a `String` each: a trace has hundreds of distinct kernel names of up to a
//! kilobyte, and millions of references to them.

use std::borrow::Cow;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::ids::StrId;

/// An append-only set of strings.
#[derive(Debug, Default)]
pub struct Strings {
    arena: String,
    /// End offset of each string in the arena; string `i` starts where `i - 1` ends.
    ends: Vec<usize>,
    table: HashTable<u32>,
}

/// A fixed seed: the tables below are bounded by the input's size, and results must not differ from run to run.
const HASHER: FixedState = FixedState::with_seed(0x6c6f_6e67_706f_6c65);

fn slice<'a>(arena: &'a str, ends: &[usize], index: u32) -> &'a str {
    let index = index as usize;
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &arena[start..ends[index]]
}

impl Strings {
    /// The id of `text`, stored now if it is new.
    pub fn intern(&mut self, text: &str) -> StrId {
        let hash = HASHER.hash_one(text);
        let (arena, ends) = (&mut self.arena, &mut self.ends);
        let found = self.table.entry(hash, |&i| slice(arena, ends, i) == text, |&i| HASHER.hash_one(slice(arena, ends, i)));
        match found {
            hashbrown::hash_table::Entry::Occupied(entry) => StrId(*entry.get()),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let id = ends.len() as u32;
                entry.insert(id);
                arena.push_str(text);
                ends.push(arena.len());
                StrId(id)
            }
        }
    }

    /// Replaces every string by what `rewrite` makes of it, and returns the new id of each old one; `None` when nothing changed.
    /// Strings that become equal become one.
    pub(crate) fn rewrite(&mut self, rewrite: impl Fn(&str) -> Cow<'_, str>) -> Option<Vec<StrId>> {
        let first = self.iter().position(|(_, text)| matches!(rewrite(text), Cow::Owned(_)))?;
        let mut rewritten = Self::default();
        let moved = self
            .iter()
            .enumerate()
            .map(|(at, (_, text))| rewritten.intern(&if at < first { Cow::Borrowed(text) } else { rewrite(text) }))
            .collect();
        *self = rewritten;
        Some(moved)
    }

    /// The id of `text`, if it was interned.
    pub fn find(&self, text: &str) -> Option<StrId> {
        let hash = HASHER.hash_one(text);
        self.table.find(hash, |&i| slice(&self.arena, &self.ends, i) == text).map(|&i| StrId(i))
    }

    /// The text of an id made by this interner.
    pub fn get(&self, id: StrId) -> &str {
        slice(&self.arena, &self.ends, id.0)
    }

    /// How many distinct strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when nothing was interned.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All strings with their ids, in the order they were first seen.
    pub fn iter(&self) -> impl Iterator<Item = (StrId, &str)> {
        (0..self.ends.len() as u32).map(|i| (StrId(i), slice(&self.arena, &self.ends, i)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_an_id_and_the_empty_string_is_one() {
        let mut strings = Strings::default();
        let a = strings.intern("aten::mm");
        let empty = strings.intern("");
        assert_eq!(strings.intern("aten::mm"), a);
        assert_eq!(strings.get(empty), "");
        assert_eq!(strings.find("aten::mm"), Some(a));
        assert_eq!(strings.find("aten::m"), None);
        assert_eq!(strings.len(), 2);
    }
}
