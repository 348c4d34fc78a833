//! Text as tokens arrive: a character of several tokens is shown when its last is there, never in halves.

/// Holds back the bytes of an unfinished character.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    held: Vec<u8>,
}

impl Stream {
    /// Takes the bytes of a token and gives what can be shown: whole characters, and U+FFFD for bytes that can no longer become one.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::new();
        let mut at = 0;
        loop {
            match std::str::from_utf8(&self.held[at..]) {
                Ok(rest) => {
                    text.push_str(rest);
                    at = self.held.len();
                    break;
                }
                Err(error) => {
                    let sound = at + error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&self.held[at..sound]));
                    at = sound;
                    // An unfinished character at the end has no length yet: it may go on with the next token.
                    let Some(bad) = error.error_len() else { break };
                    text.push(char::REPLACEMENT_CHARACTER);
                    at += bad;
                }
            }
        }
        self.held.drain(..at);
        text
    }

    /// What is left when no more comes.
    pub fn finish(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.held).into_owned();
        self.held.clear();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_whole() {
        let text = "aé漢😀\u{301}b";
        for size in 1..6 {
            let (mut stream, mut shown) = (Stream::default(), String::new());
            for bytes in text.as_bytes().chunks(size) {
                let part = stream.push(bytes);
                assert!(!part.contains(char::REPLACEMENT_CHARACTER), "{part:?}");
                shown += &part;
            }
            assert_eq!(shown + &stream.finish(), text);
        }
    }

    #[test]
    fn bytes_that_are_no_text_hold_nothing_up() {
        let mut stream = Stream::default();
        assert_eq!(stream.push(b"a\xFFb\xE6\xBC"), "a\u{FFFD}b");
        assert_eq!(stream.push(b"c"), "\u{FFFD}c");
        assert_eq!(stream.push(b"\xF0\x9F"), "");
        assert_eq!(stream.finish(), "\u{FFFD}");
        assert_eq!(stream.finish(), "");
    }
}
