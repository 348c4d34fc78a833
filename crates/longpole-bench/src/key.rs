//! The names of benchmarks, and how some of them are chosen.
//!
//! A key says what is measured, from the general to the special, so that a prefix is a meaningful group:
//!
//! | form | example | what it is |
//! |---|---|---|
//! | `<model>/<group>/<name>/<phase>/<variant>` | `Qwen3-4B/ops/linear_down/decode/tile` | one operation of a model in one phase |
//! | `<model>/model/<name>/<variant>` | `Qwen3-0.6B/model/decode_step_ctx1024/tile` | a whole step of a model |
//!
//! The parts consist of ASCII letters, digits, `.`, `_` and `-`, so that a key is a path on every file system and a word in every shell.

use std::fmt;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// Bytes of the longest key. File systems allow 255 for one name, and keys become parts of names of reports.
pub const MAX_KEY_BYTES: usize = 200;

/// The second part of a key that stands for a whole step.
const WHOLE_MODEL: &str = "model";

/// Bytes that a compiled expression may take; one that needs more is no sensible choice of keys.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// Why a text is no key or no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Longer than [`MAX_KEY_BYTES`].
    #[error("a key has at most {MAX_KEY_BYTES} bytes, this one {0}")]
    TooLong(usize),
    /// A part is empty or holds a character that does not belong into a key.
    #[error("`{0}` is no part of a key: letters, digits, `.`, `_` and `-` are")]
    Part(String),
    /// Neither four nor five parts, or `model` in the wrong place.
    #[error("`{0}` is no key: <model>/<group>/<name>/<phase>/<variant> or <model>/model/<name>/<variant>")]
    Form(String),
    /// No usable regular expression.
    #[error("`{text}` is neither a key, nor parts of one, nor a regular expression: {cause}")]
    Regex {
        /// What was given.
        text: String,
        /// What the expression's compiler says.
        cause: String,
    },
}

/// The name of a benchmark; see the module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(String);

impl Key {
    /// Takes a text as a key.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if text.len() > MAX_KEY_BYTES {
            return Err(KeyError::TooLong(text.len()));
        }
        if let Some(bad) = text.split('/').find(|part| !is_part(part)) {
            return Err(KeyError::Part(bad.to_owned()));
        }
        let parts: Vec<&str> = text.split('/').collect();
        let whole_model = parts.get(1) == Some(&WHOLE_MODEL);
        match parts.len() {
            4 if whole_model => Ok(Self(text.to_owned())),
            5 if !whole_model => Ok(Self(text.to_owned())),
            _ => Err(KeyError::Form(text.to_owned())),
        }
    }

    /// The key as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The model: the first part.
    pub fn model(&self) -> &str {
        self.part(0)
    }

    /// The group, `model` for a whole step.
    pub fn group(&self) -> &str {
        self.part(1)
    }

    /// What is measured: the third part.
    pub fn name(&self) -> &str {
        self.part(2)
    }

    /// The phase, as `prefill` or `decode`; a whole step has none, its name says it.
    pub fn phase(&self) -> Option<&str> {
        (!self.is_whole_model()).then(|| self.part(3))
    }

    /// The variant: the last part.
    pub fn variant(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it stands for a whole step of a model, not for one operation.
    pub fn is_whole_model(&self) -> bool {
        self.group() == WHOLE_MODEL
    }

    /// The key as one name of a file: parts joined by `+`, which no part holds, so different keys have different names.
    pub fn file_name(&self) -> String {
        self.0.replace('/', "+")
    }

    fn part(&self, at: usize) -> &str {
        self.0.split('/').nth(at).unwrap_or_default()
    }
}

fn is_part(part: &str) -> bool {
    // `.` and `..` would be steps in a path.
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) && !part.bytes().all(|b| b == b'.')
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl TryFrom<String> for Key {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        Self::parse(&text)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0
    }
}

impl std::str::FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text)
    }
}

/// A choice of keys.
///
/// A text of nothing but parts of keys chooses the keys in which these parts stand in a row: a whole key, the beginning of keys (`Qwen3-4B/ops`
/// chooses `Qwen3-4B/ops/...` and not `Qwen3-4B/ops2/...`), or any parts of it (`gemv`, `decode/warp_row`). A `/` at its end changes nothing.
/// Any other text, such as `decode/.*row$`, is a regular expression that may match anywhere in a key.
#[derive(Clone, Debug)]
pub struct Selector {
    text: String,
    choice: Choice,
}

#[derive(Clone, Debug)]
enum Choice {
    /// Parts of keys, without a `/` at the end.
    Parts(String),
    Regex(Regex),
}

impl Selector {
    /// Takes a text as a choice.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if text.len() > 4 * MAX_KEY_BYTES {
            return Err(KeyError::TooLong(text.len()));
        }
        let parts = text.strip_suffix('/').unwrap_or(text);
        let choice = if parts.split('/').all(is_part) {
            Choice::Parts(parts.to_owned())
        } else {
            let compiled = RegexBuilder::new(text).size_limit(MAX_REGEX_BYTES).build();
            // The last line of the message holds the cause, those before it the expression with a mark below.
            let cause = |error: regex::Error| error.to_string().lines().last().unwrap_or_default().trim().to_owned();
            Choice::Regex(compiled.map_err(|error| KeyError::Regex { text: text.to_owned(), cause: cause(error) })?)
        };
        Ok(Self { text: text.to_owned(), choice })
    }

    /// The choice as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is a whole key, which chooses one benchmark at most.
    pub fn is_exact(&self) -> bool {
        matches!(&self.choice, Choice::Parts(parts) if Key::parse(parts).is_ok())
    }

    /// Whether it chooses the key.
    pub fn matches(&self, key: &Key) -> bool {
        match &self.choice {
            Choice::Parts(parts) => key.0.match_indices(parts.as_str()).any(|(at, found)| {
                let (before, after) = (&key.0[..at], &key.0[at + found.len()..]);
                (before.is_empty() || before.ends_with('/')) && (after.is_empty() || after.starts_with('/'))
            }),
            Choice::Regex(regex) => regex.is_match(&key.0),
        }
    }
}

/// Places in `keys` of those that any selector chooses and that belong to `model`, in their order; all of the model without a selector.
///
/// # Errors
///
/// The text of the first selector that chooses nothing: a mistyped one must not make a shorter run look complete.
pub fn select(keys: &[Key], selectors: &[Selector], model: Option<&str>) -> Result<Vec<usize>, String> {
    let of_model = |key: &Key| model.is_none_or(|model| key.model() == model);
    if let Some(idle) = selectors.iter().find(|selector| !keys.iter().any(|key| of_model(key) && selector.matches(key))) {
        return Err(idle.text.clone());
    }
    let chosen = |key: &Key| of_model(key) && (selectors.is_empty() || selectors.iter().any(|selector| selector.matches(key)));
    Ok(keys.iter().enumerate().filter(|(_, key)| chosen(key)).map(|(at, _)| at).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = [
        "Qwen3-0.6B/ops/gemv/decode/thread_row",
        "Qwen3-0.6B/ops/gemv/decode/warp_row",
        "Qwen3-0.6B/ops2/gemv/decode/warp_row",
        "Qwen3-0.6B/model/decode_step_ctx1024/tile",
        "Qwen3-4B/ops/linear_down/decode/tile",
    ];

    fn chosen(selectors: &[&str], model: Option<&str>) -> Result<Vec<usize>, String> {
        let keys = KEYS.map(|key| Key::parse(key).unwrap());
        let selectors: Vec<Selector> = selectors.iter().map(|text| Selector::parse(text).unwrap()).collect();
        select(&keys, &selectors, model)
    }

    #[test]
    fn a_key_has_parts() {
        let key = Key::parse("Qwen3-4B/ops/linear_down/decode/tile").unwrap();
        assert_eq!(
            (key.model(), key.group(), key.name(), key.phase(), key.variant()),
            ("Qwen3-4B", "ops", "linear_down", Some("decode"), "tile")
        );
        assert!(!key.is_whole_model());
        assert_eq!(key.file_name(), "Qwen3-4B+ops+linear_down+decode+tile");
        let step = Key::parse("Qwen3-0.6B/model/decode_step_ctx1024/tile").unwrap();
        assert_eq!((step.name(), step.phase(), step.variant()), ("decode_step_ctx1024", None, "tile"));
        assert!(step.is_whole_model());
    }

    #[test]
    fn other_texts_are_no_keys() {
        for bad in ["", "a", "a/b/c/d", "a/model/c/d/e", "a/b/c/d/e/f", "a/b/c/d/", "a//c/d/e", "a/b/c/d/e f", "a/b/../d/e", "ä/b/c/d/e"] {
            assert!(Key::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Key::parse(&"a/".repeat(150)), Err(KeyError::TooLong(300)));
        let long = format!("a/b/c/d/{}", "e".repeat(MAX_KEY_BYTES - 8));
        assert!(Key::parse(&long).is_ok());
        assert!(serde_json::from_str::<Key>("\"a/b\"").unwrap_err().to_string().contains("is no key"));
    }

    #[test]
    fn parts_are_whole_parts() {
        assert_eq!(chosen(&["Qwen3-0.6B/ops"], None), Ok(vec![0, 1]));
        assert_eq!(chosen(&["Qwen3-0.6B/ops/"], None), Ok(vec![0, 1]));
        assert_eq!(chosen(&["Qwen3-0.6B"], None), Ok(vec![0, 1, 2, 3]));
        assert_eq!(chosen(&[KEYS[1]], None), Ok(vec![1]));
        assert!(Selector::parse(KEYS[1]).unwrap().is_exact());
        assert!(!Selector::parse("Qwen3-0.6B/ops").unwrap().is_exact());
        // The point of a name stands for itself: this is no expression.
        assert_eq!(chosen(&["Qwen3-0x6B"], None), Err("Qwen3-0x6B".to_owned()));
    }

    #[test]
    fn parts_may_stand_anywhere() {
        assert_eq!(chosen(&["warp_row"], None), Ok(vec![1, 2]));
        assert_eq!(chosen(&["gemv/decode"], None), Ok(vec![0, 1, 2]));
        assert_eq!(chosen(&["model/"], None), Ok(vec![3]));
        assert_eq!(chosen(&["row"], None), Err("row".to_owned()));
        assert_eq!(chosen(&["gemv/warp_row"], None), Err("gemv/warp_row".to_owned()));
    }

    #[test]
    fn anything_else_is_an_expression() {
        assert_eq!(chosen(&["/gemv/"], None), Ok(vec![0, 1, 2]));
        assert_eq!(chosen(&["warp_row$"], None), Ok(vec![1, 2]));
        assert_eq!(chosen(&["^Qwen3-4B", "ctx[0-9]+/"], None), Ok(vec![3, 4]));
        let error = Selector::parse("a(b").unwrap_err().to_string();
        assert!(error.contains("a(b") && error.contains("unclosed group"), "{error}");
        assert!(Selector::parse("(a{1000}){1000}").is_err());
    }

    #[test]
    fn a_model_and_selectors_both_have_to_agree() {
        assert_eq!(chosen(&[], None), Ok(vec![0, 1, 2, 3, 4]));
        assert_eq!(chosen(&[], Some("Qwen3-4B")), Ok(vec![4]));
        assert_eq!(chosen(&["decode"], Some("Qwen3-4B")), Ok(vec![4]));
        assert_eq!(chosen(&["gemv"], Some("Qwen3-4B")), Err("gemv".to_owned()));
        assert_eq!(chosen(&[], Some("none")), Ok(vec![]));
        assert_eq!(chosen(&["/gemv/", "nothing"], None), Err("nothing".to_owned()));
    }
}
