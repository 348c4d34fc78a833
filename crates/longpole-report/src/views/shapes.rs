//! Recorded input shapes in fewer characters: `[[1, 1024], [1024, 3072], []]` reads `1x1024, 1024x3072`.

/// Lists inside lists deeper than this are left as they are.
const DEEPEST: usize = 4;

/// A list of shapes.
enum Node<'a> {
    /// Not a list.
    Leaf(&'a str),
    /// A list.
    List(Vec<Self>),
}

/// Reads one value from the start of `text`; gives the rest behind it.
fn read(text: &str, depth: usize) -> Option<(Node<'_>, &str)> {
    let Some(mut rest) = text.strip_prefix('[') else {
        let end = text.find([',', ']', '[']).unwrap_or(text.len());
        let leaf = text[..end].trim();
        return (!leaf.is_empty()).then_some((Node::Leaf(leaf), &text[end..]));
    };
    let mut items = Vec::new();
    if depth == 0 {
        return None;
    }
    rest = rest.trim_start();
    if let Some(rest) = rest.strip_prefix(']') {
        return Some((Node::List(items), rest));
    }
    loop {
        let (item, after) = read(rest.trim_start(), depth - 1)?;
        items.push(item);
        rest = after.trim_start();
        if let Some(after) = rest.strip_prefix(',') {
            rest = after;
        } else {
            return rest.strip_prefix(']').map(|rest| (Node::List(items), rest));
        }
    }
}

fn write(node: &Node<'_>) -> String {
    match node {
        Node::Leaf(leaf) => (*leaf).to_owned(),
        Node::List(items) if items.iter().all(|item| matches!(item, Node::Leaf(_))) => {
            items.iter().map(write).collect::<Vec<_>>().join("x")
        }
        Node::List(items) => format!("({})", all(items)),
    }
}

/// What has a shape; scalars and absent inputs have none.
fn all(items: &[Node<'_>]) -> String {
    let has_shape = |item: &&Node<'_>| !matches!(item, Node::List(items) if items.is_empty());
    items.iter().filter(has_shape).map(write).collect::<Vec<_>>().join(", ")
}

/// Shapes as people write them; what is no list of shapes stays as it is.
pub(super) fn compact_shapes(shapes: &str) -> String {
    match read(shapes.trim(), DEEPEST) {
        Some((Node::List(items), "")) => {
            let said = all(&items);
            if said.is_empty() { "scalars".to_owned() } else { said }
        }
        _ => shapes.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_written_as_people_write_them() {
        for (shapes, said) in [
            ("[[1, 1024], [1024, 3072], []]", "1x1024, 1024x3072"),
            ("[[[0], [1, 8, 1024, 128]], []]", "(0, 1x8x1024x128)"),
            ("[[], []]", "scalars"),
            ("[]", "scalars"),
            ("[[1,2],[3]]", "1x2, 3"),
            ("[[7], [], [3, 4]]", "7, 3x4"),
            ("not shapes", "not shapes"),
            ("[[1, 2]", "[[1, 2]"),
            ("[[[[[1]]]]]", "[[[[[1]]]]]"),
            ("[,]", "[,]"),
            ("", ""),
        ] {
            assert_eq!(compact_shapes(shapes), said, "{shapes}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(compact_shapes(&deep), deep);
    }
}
