//! Input shapes of an operator, read from their recorded text.

/// Text beyond this is not read: a list of thousands of tensors tells nothing of a role.
const LONGEST_TEXT: usize = 4_096;
/// Arguments, tensors of a list, and sizes of a tensor that are read at most.
const MOST_ARGUMENTS: usize = 24;
const MOST_TENSORS: usize = 64;
const MOST_SIZES: usize = 8;

/// One argument of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// A number, nothing, or what could not be read.
    Other,
    /// A tensor by its sizes; at least one.
    Tensor(Vec<u64>),
    /// A list of tensors.
    List(Vec<Vec<u64>>),
}

impl Argument {
    /// The sizes of a tensor.
    pub(super) fn sizes(&self) -> Option<&[u64]> {
        match self {
            Self::Tensor(sizes) => Some(sizes),
            Self::Other | Self::List(_) => None,
        }
    }
}

/// The arguments of an operator from text such as `[[1, 1024], [], [[1, 2], [3, 4]]]`. What is not like that is [`Argument::Other`].
pub(super) fn arguments(text: &str) -> Vec<Argument> {
    if text.len() > LONGEST_TEXT {
        return Vec::new();
    }
    let Some(inner) = brackets(text) else { return Vec::new() };
    items(inner, MOST_ARGUMENTS).into_iter().map(argument).collect()
}

fn argument(text: &str) -> Argument {
    let Some(inner) = brackets(text) else { return Argument::Other };
    if inner.contains('[') {
        let tensors: Option<Vec<Vec<u64>>> = items(inner, MOST_TENSORS).into_iter().map(|item| sizes(brackets(item)?)).collect();
        return tensors.filter(|tensors| !tensors.is_empty()).map_or(Argument::Other, Argument::List);
    }
    sizes(inner).filter(|sizes| !sizes.is_empty()).map_or(Argument::Other, Argument::Tensor)
}

fn brackets(text: &str) -> Option<&str> {
    text.trim().strip_prefix('[')?.strip_suffix(']')
}

fn sizes(inner: &str) -> Option<Vec<u64>> {
    if inner.trim().is_empty() {
        return Some(Vec::new());
    }
    let sizes: Option<Vec<u64>> = inner.split(',').take(MOST_SIZES + 1).map(|size| size.trim().parse().ok()).collect();
    sizes.filter(|sizes| sizes.len() <= MOST_SIZES)
}

/// The items of a list, cut at the commas outside inner brackets.
fn items(inner: &str, most: usize) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut depth, mut begin) = (0_usize, 0);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                items.push(&inner[begin..at]);
                begin = at + 1;
                if items.len() == most {
                    return items;
                }
            }
            _ => {}
        }
    }
    if !inner.trim().is_empty() {
        items.push(&inner[begin..]);
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_lists_and_the_rest() {
        let tensor = |sizes: &[u64]| Argument::Tensor(sizes.to_vec());
        assert_eq!(arguments("[[1, 1024], [], [3]]"), [tensor(&[1, 1024]), Argument::Other, tensor(&[3])]);
        assert_eq!(arguments("[[[1, 2], [3]], []]"), [Argument::List(vec![vec![1, 2], vec![3]]), Argument::Other]);
        assert_eq!(arguments("[[], 5, \"\"]"), [Argument::Other, Argument::Other, Argument::Other]);
    }

    #[test]
    fn hostile_text_is_nothing() {
        for text in ["", "[", "]", "[[", "]][[", "[[-1, 2]]", "[[99999999999999999999]]", "[[1, é]]", "[[[[1]]]]", "[[1,,2]]"] {
            assert!(arguments(text).iter().all(|argument| *argument == Argument::Other), "{text}");
        }
        assert!(arguments(&format!("[{}]", "[1, 2], ".repeat(1_000))).is_empty());
        assert_eq!(arguments(&format!("[{}]", "[1], ".repeat(100))).len(), MOST_ARGUMENTS);
        assert_eq!(arguments("[[1,1,1,1,1,1,1,1,1]]"), [Argument::Other]);
    }
}
