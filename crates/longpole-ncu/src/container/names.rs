//! The table of names: one for the whole file, appended to by every block.

use std::collections::HashMap;
use std::sync::Arc;

/// Names of metrics by their number in the file. The same text under two numbers counts as one name.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The text behind a number of the file.
    texts: Vec<Arc<str>>,
    /// For each number the first number with the same text.
    canonical: Vec<u32>,
    by_text: HashMap<Arc<str>, u32>,
}

impl Names {
    /// Appends a name; its number is the count of names before it.
    pub(crate) fn push(&mut self, text: &str) -> u32 {
        let number = self.texts.len() as u32;
        if let Some((known, &first)) = self.by_text.get_key_value(text) {
            self.texts.push(Arc::clone(known));
            self.canonical.push(first);
            return first;
        }
        let shared: Arc<str> = Arc::from(text);
        self.texts.push(Arc::clone(&shared));
        self.canonical.push(number);
        self.by_text.insert(shared, number);
        number
    }

    /// The number that stands for the text of `number`.
    pub(crate) fn canonical(&self, number: u64) -> Option<u32> {
        self.canonical.get(usize::try_from(number).ok()?).copied()
    }

    /// The number of a text.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        self.by_text.get(text).copied()
    }

    /// The number of a text, which is added if it is new.
    pub(crate) fn intern(&mut self, text: &str) -> u32 {
        match self.find(text) {
            Some(number) => number,
            None => self.push(text),
        }
    }

    /// The text of a canonical number.
    pub(crate) fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", AsRef::as_ref)
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_listed_twice_is_one_name() {
        let mut names = Names::default();
        for text in ["a", "b", "a", "c"] {
            names.push(text);
        }
        assert_eq!([0, 1, 2, 3, 4].map(|number| names.canonical(number)), [Some(0), Some(1), Some(0), Some(3), None]);
        assert_eq!(names.find("c"), Some(3));
        assert_eq!(names.text(3), "c");
    }
}
