//! Input shapes as torch groups by them.

/// The text that torch groups by: one list an argument, tensors as their sizes, everything else (numbers, lists of tensors, absent
/// arguments) as `[]`. A trace may say more of a list of tensors, `[[[1, 2], [3, 4]], []]`, which torch gives as `[[], []]`.
pub(super) fn torch_shapes(text: &str) -> String {
    let inner = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or_default();
    let mut arguments: Vec<&str> = Vec::new();
    let (mut depth, mut begin) = (0_usize, 0);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                arguments.push(inner[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    if !inner.trim().is_empty() {
        arguments.push(inner[begin..].trim());
    }
    let sizes = |argument: &&str| argument.starts_with('[') && !argument[1..].contains('[');
    let shown: Vec<&str> = arguments.iter().map(|argument| if sizes(argument) { argument } else { "[]" }).collect();
    format!("[{}]", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::torch_shapes;

    #[test]
    fn only_tensors_keep_their_sizes() {
        for (text, want) in [
            ("[]", "[]"),
            ("[[1, 1024], []]", "[[1, 1024], []]"),
            ("[[[1, 2], [3, 4]], []]", "[[], []]"),
            ("[5, [0], \"\"]", "[[], [0], []]"),
            ("[[]]", "[[]]"),
            ("", "[]"),
            ("[[[]], [7]]", "[[], [7]]"),
        ] {
            assert_eq!(torch_shapes(text), want, "{text}");
        }
    }
}
