//! The ranges around a range, shared by all that lie in them.
//!
//! A row for every one of hundreds of thousands of nested ranges would hold up to 64 names each. Here a row holds one link: a path is its
//! innermost name and the path around that, so a table takes one node a range that has others inside.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::FixedState;

/// Names of ranges inside each other, outermost first; empty for what lies in none. Cheap to clone.
#[derive(Clone, Default)]
pub struct RangePath(Option<Arc<Node>>);

struct Node {
    name: Box<str>,
    around: RangePath,
    depth: u32,
    /// Of all names, so that nobody walks a path to look it up.
    hash: u64,
}

impl RangePath {
    /// The path of a range of this name inside this path.
    #[must_use]
    pub fn inside(&self, name: &str) -> Self {
        let (depth, around) = self.0.as_ref().map_or((0, 0), |node| (node.depth, node.hash));
        let hash = FixedState::default().hash_one((around, name));
        Self(Some(Arc::new(Node { name: name.into(), around: self.clone(), depth: depth + 1, hash })))
    }

    /// How many ranges it is.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |node| node.depth as usize)
    }

    /// Whether it is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The innermost name, and the path around it.
    pub fn split_last(&self) -> Option<(&str, &Self)> {
        self.0.as_ref().map(|node| (&*node.name, &node.around))
    }

    /// The paths that it begins with, itself first, the outermost range alone last.
    pub fn and_around(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |path| path.split_last().map(|(_, around)| around)).filter(|path| !path.is_empty())
    }

    /// Its names, outermost first.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.and_around().filter_map(Self::split_last).map(|(name, _)| name).collect();
        names.reverse();
        names
    }
}

impl<'n> FromIterator<&'n str> for RangePath {
    fn from_iter<I: IntoIterator<Item = &'n str>>(names: I) -> Self {
        names.into_iter().fold(Self::default(), |path, name| path.inside(name))
    }
}

impl PartialEq for RangePath {
    fn eq(&self, other: &Self) -> bool {
        let (mut a, mut b) = (self, other);
        loop {
            match (&a.0, &b.0) {
                (None, None) => return true,
                (Some(of_a), Some(of_b)) if Arc::ptr_eq(of_a, of_b) => return true,
                (Some(of_a), Some(of_b)) if of_a.hash == of_b.hash && of_a.name == of_b.name => (a, b) = (&of_a.around, &of_b.around),
                _ => return false,
            }
        }
    }
}

impl Eq for RangePath {}

impl Hash for RangePath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.as_ref().map_or(0, |node| node.hash));
    }
}

/// By the names, outermost first.
impl Ord for RangePath {
    fn cmp(&self, other: &Self) -> Ordering {
        if self == other { Ordering::Equal } else { self.names().cmp(&other.names()) }
    }
}

impl PartialOrd for RangePath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for RangePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_equal_and_in_order_by_their_names() {
        let of = |names: &[&str]| names.iter().copied().collect::<RangePath>();
        let (deep, again) = (of(&["run", "step", "layer"]), of(&["run", "step"]).inside("layer"));
        let hash = |path: &RangePath| FixedState::default().hash_one(path);
        assert_eq!((&deep, hash(&deep)), (&again, hash(&again)));
        assert_eq!((deep.len(), deep.names()), (3, vec!["run", "step", "layer"]));
        assert_eq!(deep.split_last(), Some(("layer", &of(&["run", "step"]))));
        assert_eq!(deep.and_around().map(RangePath::len).collect::<Vec<_>>(), [3, 2, 1]);
        assert_ne!(deep, of(&["run", "loop", "layer"]));
        assert_eq!(format!("{deep:?}"), r#"["run", "step", "layer"]"#);
        let none = RangePath::default();
        assert!(none.is_empty() && none.split_last().is_none() && none.and_around().next().is_none());
        let mut paths = vec![of(&["b"]), of(&["a", "z"]), none.clone(), of(&["a"])];
        paths.sort();
        assert_eq!(paths, [none, of(&["a"]), of(&["a", "z"]), of(&["b"])]);
    }
}
