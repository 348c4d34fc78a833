//! Telling the two formats from event lists, which begin with the same bytes.
//!
//! A Chrome trace may be a bare array of events, so the first bracket says nothing. The first members do: no event begins with `children`,
//! `frame` or `metrics` that hold a container, or consists of a `count` alone. Only the first bytes are looked at, and a few of them.

/// What a head is read by: no value is kept, strings are passed over.
struct Head<'a>(&'a [u8]);

impl<'a> Head<'a> {
    fn new(head: &'a [u8]) -> Self {
        Self(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head))
    }

    fn peek(&mut self) -> Option<u8> {
        self.0 = self.0.trim_ascii_start();
        self.0.first().copied()
    }

    /// Takes a byte behind white space, if it is that one.
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.0 = &self.0[1..])
    }

    /// Takes a string; one that is longer than the head ends with it.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let mut end = 0;
        while let Some(&byte) = self.0.get(end) {
            match byte {
                b'"' => {
                    let text = &self.0[..end];
                    self.0 = &self.0[end + 1..];
                    return Some(text);
                }
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        None
    }

    /// Takes a key and its colon.
    fn key(&mut self) -> Option<&'a [u8]> {
        let key = self.string()?;
        self.take(b':')?;
        Some(key)
    }

    /// Takes a number.
    fn number(&mut self) -> Option<()> {
        self.peek()?;
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E')).count();
        self.0 = &self.0[digits..];
        (digits > 0).then_some(())
    }
}

/// A tree of Proton: `[{"children": [` with the members of a node in any order.
pub(crate) fn looks_like_proton(head: &[u8]) -> bool {
    let mut head = Head::new(head);
    let found = (|| {
        head.take(b'[')?;
        head.take(b'{')?;
        let (key, value) = (head.key()?, head.peek()?);
        Some(matches!((key, value), (b"children", b'[') | (b"frame" | b"metrics", b'{')))
    })();
    found == Some(true)
}

/// A layer profile of TensorRT: `[{"count": 100}, {"name": "conv", ...`, or without the count.
pub(crate) fn looks_like_tensorrt(head: &[u8]) -> bool {
    let mut head = Head::new(head);
    let found = (|| {
        head.take(b'[')?;
        head.take(b'{')?;
        let mut key = head.key()?;
        if key == b"count" {
            head.number()?;
            head.take(b'}')?;
            if head.take(b']').is_some() {
                return Some(true);
            }
            head.take(b',')?;
            head.take(b'{')?;
            key = head.key()?;
            // The names of fused layers can be longer than a head.
            return Some(key == b"name");
        }
        head.string().filter(|_| key == b"name")?;
        head.take(b',')?;
        Some(head.key()? == b"timeMs")
    })();
    found == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_members_decide() {
        for tree in ["[{\"children\": [", "\u{feff} [ {\n \"frame\" : {\"name\"", "[{\"metrics\":{", "[{\"children\":[],\"frame\""] {
            assert!(looks_like_proton(tree.as_bytes()) && !looks_like_tensorrt(tree.as_bytes()), "{tree}");
        }
        let long = format!("[{{\"count\": 7}}, {{\"name\": \"{}", "x".repeat(5000));
        for list in ["[ { \"count\" : 6610 }\n, { \"name\" : \"Conv\"", "[{\"count\":1}]", "[{\"name\":\"a\\\"b\",\"timeMs\":1", &long] {
            assert!(looks_like_tensorrt(list.as_bytes()) && !looks_like_proton(list.as_bytes()), "{list}");
        }
    }

    #[test]
    fn event_lists_are_neither() {
        for events in [
            "",
            "[",
            "{\"traceEvents\": [",
            "[{\"ph\":\"X\",\"name\":\"a\"",
            "[{\"name\":\"a\",\"ph\":\"X\",\"ts\":1",
            "[{\"args\":{\"frame\":{\"name\":\"x\"}}",
            "[{\"count\":1,\"ph\":\"X\"",
            "[{\"count\":{\"a\":1}}",
            "[{\"frame\":1,\"ph\":\"X\"}",
            "[{\"children\":3}",
            "[{\"name\":\"timeMs\",\"cat\":\"x\"",
            "[[{\"children\":[",
            "[{\"name\":\"never closed",
        ] {
            assert!(!looks_like_proton(events.as_bytes()) && !looks_like_tensorrt(events.as_bytes()), "{events}");
        }
    }
}
