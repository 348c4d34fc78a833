//! Version numbers as NVIDIA's programs write them.

use std::fmt;

/// Numbers with dots between them; `12.8` comes before `12.8.1`, and `12.10` after `12.9`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(Vec<u32>);

impl Version {
    /// A version of known numbers.
    pub fn of(parts: &[u32]) -> Self {
        Self(parts.to_vec())
    }

    /// Reads the version that `text` begins with: `13.0.88` of `13.0.88, cuda_13.0`. A version has at least one number, and at most five
    /// are kept.
    pub fn leading(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let parts: Vec<u32> = text[..end].split('.').map_while(|part| part.parse().ok()).take(5).collect();
        (!parts.is_empty()).then_some(Self(parts))
    }

    /// The first word of `text` that is a version with at least `parts` numbers, a `v` or `V` before it allowed.
    pub fn find(text: &str, parts: usize) -> Option<Self> {
        let words = text.split(|c: char| c.is_whitespace() || c == ',');
        let versions = words.filter_map(|word| Self::leading(word.trim_start_matches(['v', 'V'])));
        versions.into_iter().find(|version| version.0.len() >= parts)
    }

    /// The first number.
    pub fn major(&self) -> u32 {
        self.0[0]
    }

    /// The second number, 0 if there is none.
    pub fn minor(&self) -> u32 {
        self.0.get(1).copied().unwrap_or(0)
    }

    /// The first two numbers, which is how CUDA is called.
    #[must_use]
    pub fn short(&self) -> Self {
        Self(vec![self.major(), self.minor()])
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A driver's last number has two digits: 580.95.05.
        for (at, part) in self.0.iter().enumerate() {
            match at {
                0 => write!(f, "{part}")?,
                2 if self.major() >= 100 && self.major() < 1_000 => write!(f, ".{part:02}")?,
                _ => write!(f, ".{part}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_compared_and_written() {
        let read = |text: &str| Version::leading(text).map(|version| version.to_string());
        assert_eq!(read("13.0.88, x").as_deref(), Some("13.0.88"));
        assert_eq!(read("580.95.05").as_deref(), Some("580.95.05"));
        assert_eq!(read("2025.3.1.0").as_deref(), Some("2025.3.1.0"));
        assert_eq!(read("9.").as_deref(), Some("9"));
        assert_eq!((read("x"), read(""), read("99999999999")), (None, None, None));
        let at = |text: &str| Version::leading(text).unwrap();
        assert!(at("12.8") < at("12.8.1") && at("12.9") < at("12.10") && at("580") < at("580.1"));
        assert_eq!((at("13").minor(), at("13").short().to_string().as_str()), (0, "13.0"));
    }

    #[test]
    fn versions_are_found_in_sentences() {
        let find = |text: &str, parts| Version::find(text, parts).map(|version| version.to_string());
        assert_eq!(find("NVIDIA Nsight Systems version 2025.3.2.474-253v0", 3).as_deref(), Some("2025.3.2.474"));
        assert_eq!(find("release 13.0, V13.0.85", 3).as_deref(), Some("13.0.85"));
        assert_eq!(find("Kernel Module for x86_64  580.95.05  Release", 2).as_deref(), Some("580.95.05"));
        assert_eq!(find("nothing 7", 2), None);
    }
}
