//! Profiles of ONNX Runtime: a bare list, times in whole microseconds since the session began.
//!
//! Facts: `Session` events are phases of the session; a `Node` event whose name ends in `_kernel_time` is one run of one node, with the
//! kind of operator in `op_name`; `_fence_before` and `_fence_after` (until 2022) are waits around it. With a GPU provider, device work
//! has category `Kernel`, process -1 and no correlation number: it follows the node event whose name is its `parent_name`. Copies of
//! memory are `Kernel` events named `Memcpy...` with a grid of -1. `Api` events are calls of the HIP runtime. Numbers in arguments may be
//! strings.

use super::arguments::Args;
use crate::json::{Cursor, Key, Tokens, ValueKind};

/// Whether a list that begins so is of ONNX Runtime.
pub(super) fn begins(head: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"model_loading", b"session_initialization", b"model_run", b"SequentialExecutor"];
    let has = |category: &[u8]| super::dialect::values_of(head, b"\"cat\"").any(|cat| cat == category);
    let is_session = |name: &[u8]| NAMES.iter().any(|known| name.starts_with(known));
    (has(b"Node") && memchr::memmem::find(head, b"\"op_name\"").is_some())
        || (has(b"Session") && super::dialect::values_of(head, b"\"name\"").any(is_session))
}

/// ONNX Runtime stops recording after this many events of the host.
pub(super) const EVENT_LIMIT: u64 = 1_000_000;

/// What the events of ONNX Runtime say. Texts are raw.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extras<'a> {
    pub(super) op_name: Option<&'a [u8]>,
    pub(super) parent_name: Option<&'a [u8]>,
    /// A list of objects, each of one type and its sizes.
    pub(super) inputs: Option<&'a [u8]>,
    pub(super) grid: [Option<u32>; 3],
    pub(super) block: [Option<u32>; 3],
}

/// Takes one argument.
pub(super) fn read_arg<'a>(
    tokens: &mut Tokens<'a>,
    colon: usize,
    key_end: usize,
    args: &mut Args<'a>,
    extras: &mut super::dialect::Extras<'a>,
) {
    macro_rules! is {
        ($key:literal) => {
            tokens.is_key(key_end, $key)
        };
    }
    let onnx = &mut extras.onnx;
    if is!(b"\"op_name\"") {
        onnx.op_name = tokens.string(colon).filter(|name| !name.is_empty());
    } else if is!(b"\"parent_name\"") {
        onnx.parent_name = tokens.string(colon);
    } else if is!(b"\"input_type_shape\"") {
        onnx.inputs = tokens.value(colon);
    } else if is!(b"\"stream\"") {
        args.stream = tokens.i64(colon);
    } else if is!(b"\"name\"") {
        args.label = tokens.string(colon);
    } else {
        for (axis, (grid, block)) in
            [(b"\"grid_x\"", b"\"block_x\""), (b"\"grid_y\"", b"\"block_y\""), (b"\"grid_z\"", b"\"block_z\"")].into_iter().enumerate()
        {
            if tokens.is_key(key_end, grid) {
                onnx.grid[axis] = tokens.u32(colon);
            } else if tokens.is_key(key_end, block) {
                onnx.block[axis] = tokens.u32(colon);
            }
        }
    }
}

/// What an event of category `Node` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node<'a> {
    /// A run of the node with this name, which may be empty.
    Run(&'a [u8]),
    /// A wait before or after it.
    FenceBefore,
    FenceAfter,
    /// Anything else.
    Other,
}

impl<'a> Node<'a> {
    pub(super) fn of(name: &'a [u8]) -> Self {
        if let Some(node) = name.strip_suffix(b"_kernel_time") {
            Self::Run(node)
        } else if name.ends_with(b"_fence_before") {
            Self::FenceBefore
        } else if name.ends_with(b"_fence_after") {
            Self::FenceAfter
        } else {
            Self::Other
        }
    }
}

/// Inputs described at most; a node has a few.
const MAX_INPUTS: usize = 1024;

/// Sizes and types of inputs as other profilers list them: `[{"float":[1,3]},{"int64":[]}]` is `[[1,3],[]]` and `["float","int64"]`.
pub(super) fn shapes_and_types(inputs: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut cursor = Cursor::new(inputs, Vec::new());
    let (mut shapes, mut types) = (vec![b'['], vec![b'[']);
    if !matches!(cursor.take_structural(), Some((_, b'['))) {
        return None;
    }
    for _ in 0..MAX_INPUTS {
        match cursor.take_structural()? {
            (_, b'{') => {}
            // Structure alone does not show scalars.
            (at, b']') if types.len() > 1 || inputs[..at].trim_ascii_end().ends_with(b"[") => {
                shapes.push(b']');
                types.push(b']');
                return Some((shapes, types));
            }
            _ => return None,
        }
        let Ok(Key::Member(of_type, after)) = cursor.key() else { return None };
        let sizes = cursor.value(after).ok().filter(|value| value.kind == ValueKind::Array)?;
        if shapes.len() > 1 {
            shapes.push(b',');
            types.push(b',');
        }
        shapes.extend_from_slice(sizes.raw);
        types.push(b'"');
        types.extend_from_slice(of_type);
        types.push(b'"');
        if !matches!(cursor.key(), Ok(Key::End(_))) {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_become_shapes_and_types() {
        let read = |text: &str| {
            shapes_and_types(text.as_bytes()).map(|(shapes, types)| [shapes, types].map(|text| String::from_utf8(text).unwrap()))
        };
        assert_eq!(read(r#"[{"float":[1,3,224]},{"int64":[]}]"#), Some(["[[1,3,224],[]]".to_owned(), r#"["float","int64"]"#.to_owned()]));
        assert_eq!(read("[]"), Some(["[]".to_owned(), "[]".to_owned()]));
        for bad in ["", "7", "[7]", "[[1]]", r#"[{"float":7}]"#, r#"[{"float":[1],"int":[2]}]"#, r#"[{"float":[1]}"#] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
