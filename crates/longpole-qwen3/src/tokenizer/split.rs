//! Cutting a text into the pieces that are encoded one by one, as the expression of Qwen's `tokenizer.json` does.
//!
//! That expression ends in `\s+(?!\S)|\s+`, which looks ahead, and the engine used here does not: it is linear on any text. What the lookahead does
//! is leave the last of several spaces to the word behind them, so that is done by hand.

use regex::Regex;

/// The expression without its lookahead. Letters, numbers and spaces are those of Unicode.
const PIECES: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+";

/// The expression as `tokenizer.json` writes it.
pub(super) const EXPECTED: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Cuts texts.
#[derive(Debug)]
pub(super) struct Splitter(Regex);

impl Splitter {
    pub(super) fn new() -> Option<Self> {
        Regex::new(PIECES).ok().map(Self)
    }

    /// The pieces, which are the whole text.
    pub(super) fn pieces<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(found) = self.0.find_at(text, at) {
            if found.start() > at {
                pieces.push(&text[at..found.start()]);
            }
            let piece = found.as_str();
            let mut end = found.end();
            let blank = piece.chars().all(char::is_whitespace) && !piece.ends_with(['\r', '\n']);
            // Several spaces ahead of something: the last of them is that one's.
            if blank
                && end < text.len()
                && let Some((last, _)) = piece.char_indices().next_back()
                && last > 0
            {
                end = found.start() + last;
            }
            pieces.push(&text[found.start()..end]);
            at = end;
        }
        if at < text.len() {
            pieces.push(&text[at..]);
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_those_of_the_expression() {
        let splitter = Splitter::new().unwrap();
        for (text, expected) in [
            ("Hello world", &["Hello", " world"][..]),
            ("I'll say: it's 42!", &["I", "'ll", " say", ":", " it", "'s", " ", "4", "2", "!"]),
            ("a   b", &["a", "  ", " b"]),
            ("a  \n\n  b ", &["a", "  \n\n", " ", " b", " "]),
            ("x = (y);\r\nz", &["x", " =", " (", "y", ");\r\n", "z"]),
            ("  ", &["  "]),
            ("a  1", &["a", " ", " ", "1"]),
            ("日本語 text", &["日本語", " text"]),
            ("", &[]),
        ] {
            assert_eq!(splitter.pieces(text), expected, "{text:?}");
        }
    }

    #[test]
    fn pieces_are_the_whole_text() {
        let splitter = Splitter::new().unwrap();
        let alphabet = ["a", " ", "\n", "1", "é", "'s", "!", "\u{a0}", "\t", "漢", "\u{301}", "\r"];
        let mut state = 1u32;
        for _ in 0..2000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = crate::random::mixed(state.wrapping_add(0x9E37_79B9));
                text.push_str(alphabet[state as usize % alphabet.len()]);
            }
            assert_eq!(splitter.pieces(&text).concat(), text);
        }
    }
}
