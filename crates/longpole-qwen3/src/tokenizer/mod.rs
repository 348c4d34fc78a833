//! Text to tokens and back: the byte-level byte-pair encoding that Qwen's `tokenizer.json` describes.
//!
//! Our own, since the general library needs some forty crates for what is two hundred lines here: a fixed expression, one model, one decoder. What a
//! file asks for beyond that is an error, not a guess.

mod bpe;
mod split;
mod stream;

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use unicode_normalization::UnicodeNormalization as _;

use crate::error::Error;
use crate::files;
use bpe::{Merges, merged};
use split::Splitter;
pub use stream::Stream;

/// Tokens at most: a bound for files that are wrong.
const MAX_TOKENS: usize = 1 << 22;

/// Bytes of a file at most. Qwen's has 11 million.
const MAX_BYTES: u64 = 64_000_000;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Vec<Added>,
    normalizer: Option<serde_json::Value>,
    pre_tokenizer: Option<serde_json::Value>,
    model: Model,
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    vocab: HashMap<String, u32>,
    merges: Vec<serde_json::Value>,
}

/// The two sides of a merge. Older files write both in one text.
fn sides(merge: &serde_json::Value) -> Option<(&str, &str)> {
    match merge {
        serde_json::Value::String(text) => text.split_once(' '),
        serde_json::Value::Array(sides) => match sides.as_slice() {
            [left, right] => left.as_str().zip(right.as_str()),
            _ => None,
        },
        _ => None,
    }
}

/// Encodes and decodes.
#[derive(Debug)]
pub struct Tokenizer {
    splitter: Splitter,
    nfc: bool,
    merges: Merges,
    /// Tokens of single bytes.
    bytes: Vec<u32>,
    /// What each token stands for.
    content: Vec<Vec<u8>>,
    /// Whole texts that are tokens, the longest first.
    added: Vec<(String, u32)>,
}

impl Tokenizer {
    /// Reads `tokenizer.json` of a folder.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("tokenizer.json");
        let text = files::text(&path, MAX_BYTES)?;
        Self::parse(&text).map_err(|what| Error::content(&path, what))
    }

    /// Takes the content of such a file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| format!("no tokenizer: {error}"))?;
        if file.model.kind.as_deref().is_some_and(|kind| kind != "BPE") {
            return Err("its model is not BPE".to_owned());
        }
        let kind = |value: &serde_json::Value| value.get("type").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        let nfc = match file.normalizer.as_ref().filter(|value| !value.is_null()).map(kind).as_deref() {
            None => false,
            Some("NFC") => true,
            Some("") => return Err("its normalizer has no type".to_owned()),
            Some(other) => return Err(format!("the normalizer {other} is not known here")),
        };
        let expression = file.pre_tokenizer.as_ref().and_then(|value| find_text(value, "Regex"));
        if expression != Some(split::EXPECTED) {
            return Err("it cuts texts by another expression than Qwen's".to_owned());
        }
        let splitter = Splitter::new().ok_or("the expression cannot be compiled")?;
        let largest = file.model.vocab.values().copied().chain(file.added_tokens.iter().map(|added| added.id)).max().unwrap_or(0) as usize;
        if largest >= MAX_TOKENS {
            return Err(format!("a token has the number {largest}"));
        }
        let (from, to) = byte_letters();
        let mut content = vec![Vec::new(); largest + 1];
        for (text, id) in &file.model.vocab {
            content[*id as usize] = text.chars().filter_map(|letter| from.get(&letter).copied()).collect();
        }
        let bytes: Option<Vec<u32>> = to.iter().map(|letter| file.model.vocab.get(&letter.to_string()).copied()).collect();
        let bytes = bytes.ok_or("some bytes have no token")?;
        let mut merges = Merges::with_capacity(file.model.merges.len());
        for (rank, merge) in file.model.merges.iter().enumerate() {
            let (left, right) =
                sides(merge).ok_or_else(|| format!("model.merges[{rank}] is neither two texts nor one with a space between them"))?;
            let id = |text: &str| file.model.vocab.get(text).copied();
            let found = id(left).zip(id(right)).zip(id(&format!("{left}{right}")));
            let (pair, made) = found.ok_or_else(|| format!("model.merges[{rank}] is of tokens that do not exist"))?;
            merges.entry(pair).or_insert((rank as u32, made));
        }
        let mut added: Vec<(String, u32)> = file.added_tokens.into_iter().map(|added| (added.content, added.id)).collect();
        added.retain(|(text, _)| !text.is_empty());
        added.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        for (text, id) in &added {
            content[*id as usize] = text.clone().into_bytes();
        }
        Ok(Self { splitter, nfc, merges, bytes, content, added })
    }

    /// The tokens of a text. Texts of added tokens, such as `<|im_end|>`, become those.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let found = self.added.iter().filter_map(|(text, id)| rest.find(text.as_str()).map(|at| (at, text.len(), *id)));
            let first = found.min_by_key(|(at, length, _)| (*at, std::cmp::Reverse(*length)));
            let (plain, id, behind) = match first {
                Some((at, length, id)) => (&rest[..at], Some(id), &rest[at + length..]),
                None => (rest, None, ""),
            };
            self.encode_plain(plain, &mut tokens);
            tokens.extend(id);
            rest = behind;
        }
        tokens
    }

    fn encode_plain(&self, text: &str, tokens: &mut Vec<u32>) {
        let normal: String = if self.nfc { text.nfc().collect() } else { text.to_owned() };
        for piece in self.splitter.pieces(&normal) {
            let bytes = piece.bytes().filter_map(|byte| self.bytes.get(usize::from(byte)).copied());
            tokens.extend(merged(bytes.collect(), &self.merges));
        }
    }

    /// The bytes that a token stands for, which need not be whole characters. None of a token that does not exist.
    pub fn bytes_of(&self, token: u32) -> &[u8] {
        self.content.get(token as usize).map_or(&[], Vec::as_slice)
    }

    /// The text of tokens; bytes that are no text are replaced.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| self.bytes_of(*token)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The first text under a key, however deep; the depth is bounded by the JSON reader.
fn find_text<'a>(value: &'a serde_json::Value, key: &str) -> Option<&'a str> {
    match value {
        serde_json::Value::Object(map) => {
            map.get(key).and_then(serde_json::Value::as_str).or_else(|| map.values().find_map(|value| find_text(value, key)))
        }
        serde_json::Value::Array(list) => list.iter().find_map(|value| find_text(value, key)),
        _ => None,
    }
}

/// How files write bytes as letters: printable ones of Latin-1 as themselves, all others as the letters from U+0100 on, in order. (GPT-2's
/// `bytes_to_unicode`.)
fn byte_letters() -> (HashMap<char, u8>, Vec<char>) {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut strange = 0x100u32..;
    let letters: Vec<char> = (0..=255u8)
        .map(|byte| if printable(byte) { char::from(byte) } else { strange.next().and_then(char::from_u32).unwrap_or_default() })
        .collect();
    (letters.iter().zip(0..=255u8).map(|(letter, byte)| (*letter, byte)).collect(), letters)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A tokenizer of single bytes and a few merges.
    pub(crate) fn small() -> serde_json::Value {
        let (_, letters) = byte_letters();
        let mut vocab = serde_json::Map::new();
        for (byte, letter) in letters.iter().enumerate() {
            vocab.insert(letter.to_string(), byte.into());
        }
        for (id, text) in [(256, "he"), (257, "ll"), (258, "hell"), (259, "hello"), (260, "Ġw"), (261, "Ã©")] {
            vocab.insert(text.to_owned(), id.into());
        }
        serde_json::json!({
            "added_tokens": [{"id": 262, "content": "<|im_end|>", "special": true}, {"id": 263, "content": "<|im"}],
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": split::EXPECTED}, "behavior": "Isolated", "invert": false},
                {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]},
            "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": vocab, "merges": ["h e", ["l", "l"], "he ll", "hell o", "Ġ w", "Ã ©"]}
        })
    }

    #[test]
    fn texts_go_there_and_back() {
        let tokenizer = Tokenizer::parse(&small().to_string()).unwrap();
        let tokens = tokenizer.encode("hello world<|im_end|>\n");
        assert_eq!(tokens, [259, 260, u32::from(b'o'), u32::from(b'r'), u32::from(b'l'), u32::from(b'd'), 262, u32::from(b'\n')]);
        for text in ["hello world<|im_end|>\n", "日本語 \u{1F600}\t é", "", "  <|im x"] {
            assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text);
        }
        // A decomposed letter is composed first.
        assert_eq!(tokenizer.encode("e\u{301}"), [261]);
        assert_eq!(tokenizer.decode(&[259, 99_999]), "hello");
    }

    #[test]
    fn other_tokenizers_are_refused() {
        let with = |change: fn(&mut serde_json::Value)| {
            let mut value = small();
            change(&mut value);
            Tokenizer::parse(&value.to_string()).unwrap_err()
        };
        assert!(with(|value| value["model"]["type"] = "Unigram".into()).contains("not BPE"));
        assert!(with(|value| value["normalizer"]["type"] = "NFKC".into()).contains("NFKC"));
        assert!(with(|value| value["pre_tokenizer"] = serde_json::Value::Null).contains("expression"));
        assert!(with(|value| value["model"]["merges"] = serde_json::json!(["x zz"])).contains("model.merges[0] is of tokens"));
        for merge in [serde_json::json!(7), serde_json::json!(["a"]), serde_json::json!(["a", 1]), serde_json::json!("ab")] {
            let mut value = small();
            value["model"]["merges"] = serde_json::json!(["h e", merge]);
            assert!(Tokenizer::parse(&value.to_string()).unwrap_err().contains("model.merges[1] is neither"), "{merge}");
        }
        for normalizer in [serde_json::json!({}), serde_json::json!("NFC"), serde_json::json!({"type": 3})] {
            let mut value = small();
            value["normalizer"] = normalizer;
            assert!(Tokenizer::parse(&value.to_string()).unwrap_err().contains("normalizer has no type"));
        }
        assert!(with(|value| value["added_tokens"][0]["id"] = u32::MAX.into()).contains("4294967295"));
        assert!(with(|value| value["model"]["vocab"] = serde_json::json!({"a": 1})).contains("bytes have no token"));
        assert!(Tokenizer::parse("{").unwrap_err().contains("no tokenizer"));
    }
}
