//! Reads what a trace recorded of an operator's inputs: sizes, types, strides and the values of plain arguments.
//!
//! The texts are JSON lists with one item an argument, in the order of the operator's signature:
//!
//! - sizes: `[[1, 1024], [], [[2, 3], [4]]]`: a tensor's sizes, `[]` for everything else and for a tensor without dimensions, a list of
//!   sizes for a list of tensors;
//! - types: `["float", "Scalar", "TensorList", ""]`;
//! - strides: like sizes;
//! - values: `["", "[-1]", "True", "0.5"]`, empty for tensors.
//!
//! They come from files, so nothing in them is trusted: numbers are checked, lists are bounded, and what does not fit is an error of the
//! one operator.

use super::dtype::Dtype;
use super::work::{UnknownWork, product};

/// Arguments and tensors of one operator that are read. Real ones have some hundred (optimisers on lists of tensors).
const MOST_ITEMS: usize = 1 << 16;

/// Dimensions of a tensor that are read; torch allows 64.
const MOST_DIMS: usize = 64;

/// One tensor of an operator's inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tensor {
    pub(super) dims: Vec<u64>,
    pub(super) dtype: Dtype,
    strides: Option<Vec<i64>>,
}

impl Tensor {
    /// Number of elements.
    pub(super) fn elements(&self) -> Result<u128, UnknownWork> {
        product(&self.dims)
    }

    /// Bytes of memory its elements are spread over: an expanded dimension (stride 0) is stored once, and elements of overlapping windows
    /// are stored once.
    pub(super) fn stored_bytes(&self) -> Result<u128, UnknownWork> {
        let elements = self.elements()?;
        let Some(strides) = self.strides.as_ref().filter(|_| elements > 0) else { return Ok(elements * u128::from(self.dtype.bytes())) };
        let mut distinct = 1_u128;
        let mut reach = 1_u128;
        for (&size, &stride) in self.dims.iter().zip(strides) {
            if stride != 0 {
                distinct = distinct.saturating_mul(u128::from(size));
                reach = reach.saturating_add(u128::from(size - 1).saturating_mul(u128::from(stride.unsigned_abs())));
            }
        }
        Ok(distinct.min(reach).saturating_mul(u128::from(self.dtype.bytes())))
    }

    /// The size of a dimension, counted from the end for negative numbers.
    pub(super) fn dim(&self, at: i64) -> Result<u64, UnknownWork> {
        let rank = self.dims.len() as i64;
        let at = if at < 0 { at + rank } else { at };
        usize::try_from(at).ok().and_then(|at| self.dims.get(at)).copied().ok_or(UnknownWork::UnreadableShapes)
    }
}

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    Tensor(Tensor),
    /// Sizes of a list of tensors, whose types are not recorded, with their strides if those are.
    Tensors(Vec<(Vec<u64>, Option<Vec<i64>>)>),
    /// A plain value or an absent argument.
    Plain,
    /// A tensor of a type that is not known.
    UnknownType,
}

/// The inputs of one operator call.
#[derive(Clone, Debug, Default)]
pub(super) struct Inputs {
    pub(super) arguments: Vec<Argument>,
    values: Option<Vec<String>>,
    /// The name of a kernel that the operator launched.
    pub(super) kernel: Option<String>,
}

/// What a trace recorded, as text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordedInputs<'a> {
    pub(super) shapes: Option<&'a str>,
    pub(super) types: Option<&'a str>,
    pub(super) strides: Option<&'a str>,
    pub(super) values: Option<&'a str>,
    pub(super) kernel: Option<&'a str>,
}

impl Inputs {
    pub(super) fn read(recorded: RecordedInputs<'_>) -> Result<Self, UnknownWork> {
        let shapes = recorded.shapes.ok_or(UnknownWork::NoShapes)?;
        // PyTorch's NVTX ranges have sizes and no types.
        let types = recorded.types.ok_or(UnknownWork::UnknownType)?;
        let sizes = parse_sizes(shapes).ok_or(UnknownWork::UnreadableShapes)?;
        let types = parse_strings(types).ok_or(UnknownWork::UnreadableShapes)?;
        if sizes.len() != types.len() {
            return Err(UnknownWork::UnreadableShapes);
        }
        // Strides only sharpen the count of bytes; ones that do not fit are as good as none.
        let strides = recorded.strides.and_then(parse_sizes).filter(|strides| strides.len() == sizes.len());
        let mut strides = strides.map_or_else(Vec::new, |strides| strides.into_iter().map(Some).collect());
        strides.resize_with(sizes.len(), || None);
        let arguments = sizes.into_iter().zip(&types).zip(strides).map(|((sizes, name), strides)| argument(sizes, name, strides)).collect();
        let values = recorded.values.and_then(parse_strings);
        Ok(Self { arguments, values, kernel: recorded.kernel.map(str::to_owned) })
    }

    /// The tensor at a position of the signature.
    pub(super) fn tensor(&self, at: usize) -> Result<&Tensor, UnknownWork> {
        match self.arguments.get(at) {
            Some(Argument::Tensor(tensor)) => Ok(tensor),
            Some(Argument::UnknownType) => Err(UnknownWork::UnknownType),
            _ => Err(UnknownWork::UnreadableShapes),
        }
    }

    /// The tensor at a position where one may be absent.
    pub(super) fn optional_tensor(&self, at: usize) -> Result<Option<&Tensor>, UnknownWork> {
        match self.arguments.get(at) {
            Some(Argument::Plain) | None => Ok(None),
            _ => self.tensor(at).map(Some),
        }
    }

    /// All tensors that are arguments of their own, in order.
    pub(super) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.arguments.iter().filter_map(|argument| if let Argument::Tensor(tensor) = argument { Some(tensor) } else { None })
    }

    /// The list of tensors at a position, of the type that the kernel's name tells.
    pub(super) fn list(&self, at: usize) -> Result<Vec<Tensor>, UnknownWork> {
        let Some(Argument::Tensors(sizes)) = self.arguments.get(at) else { return Err(UnknownWork::UnreadableShapes) };
        // Older traces have a list of tensors as `[]`.
        if sizes.is_empty() {
            return Err(UnknownWork::MissingArgument);
        }
        let dtype = self.kernel.as_deref().and_then(Dtype::from_kernel_name).ok_or(UnknownWork::UnknownType)?;
        Ok(sizes.iter().map(|(dims, strides)| Tensor { dims: dims.clone(), dtype, strides: strides.clone() }).collect())
    }

    /// The value of a plain argument as text; absent when it was not recorded or is empty.
    pub(super) fn value(&self, at: usize) -> Option<&str> {
        self.values.as_ref()?.get(at).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    pub(super) fn flag(&self, at: usize) -> Option<bool> {
        match self.value(at)? {
            "True" | "true" | "1" => Some(true),
            "False" | "false" | "0" => Some(false),
            _ => None,
        }
    }

    pub(super) fn number(&self, at: usize) -> Option<i64> {
        self.value(at)?.parse().ok()
    }

    /// A list of whole numbers (`[1, 2]`); a lone number is a list of one.
    pub(super) fn numbers(&self, at: usize) -> Option<Vec<i64>> {
        let text = self.value(at)?;
        let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        if text.trim().is_empty() {
            return Some(Vec::new());
        }
        text.split(',').take(MOST_DIMS).map(|number| number.trim().parse().ok()).collect()
    }
}

fn argument(sizes: Sizes, name: &str, strides: Option<Sizes>) -> Argument {
    let strides_of = |dims: &[u64], strides: Option<&Vec<i64>>| strides.filter(|strides| strides.len() == dims.len()).cloned();
    match (name, sizes) {
        ("TensorList", Sizes::Nested(list)) => {
            let strides = match strides {
                Some(Sizes::Nested(strides)) if strides.len() == list.len() => strides,
                _ => Vec::new(),
            };
            let tensors = list.into_iter().enumerate().filter_map(|(at, dims)| {
                let dims = unsigned(&dims)?;
                let strides = strides_of(&dims, strides.get(at));
                Some((dims, strides))
            });
            Argument::Tensors(tensors.collect())
        }
        ("TensorList", Sizes::Flat(_)) => Argument::Tensors(Vec::new()),
        ("" | "Scalar" | "ScalarList" | "GenericList" | "Int" | "Bool" | "Double" | "String" | "Device" | "None", _) => Argument::Plain,
        (name, Sizes::Flat(dims)) => match (Dtype::from_type_name(name), unsigned(&dims)) {
            (Some(dtype), Some(dims)) => {
                let strides = if let Some(Sizes::Flat(strides)) = &strides { strides_of(&dims, Some(strides)) } else { None };
                Argument::Tensor(Tensor { dims, dtype, strides })
            }
            _ => Argument::UnknownType,
        },
        (_, Sizes::Nested(_)) => Argument::UnknownType,
    }
}

fn unsigned(dims: &[i64]) -> Option<Vec<u64>> {
    dims.iter().map(|&size| u64::try_from(size).ok()).collect()
}

/// Sizes or strides of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sizes {
    Flat(Vec<i64>),
    Nested(Vec<Vec<i64>>),
}

/// A list of lists of numbers, one list deeper for lists of tensors. Anything else at the place of an argument counts as `[]`.
fn parse_sizes(text: &str) -> Option<Vec<Sizes>> {
    let mut cursor = Cursor { rest: text.trim() };
    let (mut arguments, mut items) = (Vec::new(), 0_usize);
    cursor.list(&mut |cursor: &mut Cursor<'_>| {
        items += 1;
        if items > MOST_ITEMS {
            return None;
        }
        if !cursor.rest.starts_with('[') {
            cursor.plain()?;
            arguments.push(Sizes::Flat(Vec::new()));
            return Some(());
        }
        let (mut numbers, mut nested) = (Vec::new(), Vec::new());
        cursor.list(&mut |cursor: &mut Cursor<'_>| {
            items += 1;
            if items > MOST_ITEMS {
                return None;
            }
            if cursor.rest.starts_with('[') {
                let mut inner = Vec::new();
                cursor.list(&mut |cursor: &mut Cursor<'_>| {
                    if inner.len() == MOST_DIMS {
                        return None;
                    }
                    inner.push(cursor.number()?);
                    Some(())
                })?;
                nested.push(inner);
            } else {
                numbers.push(cursor.number()?);
            }
            Some(())
        })?;
        arguments.push(match (numbers.is_empty(), nested.is_empty()) {
            (_, true) if numbers.len() <= MOST_DIMS => Sizes::Flat(numbers),
            (true, false) => Sizes::Nested(nested),
            _ => return None,
        });
        Some(())
    })?;
    cursor.rest.is_empty().then_some(arguments)
}

/// A list of JSON strings. Escapes are kept but for quotes: no type or number has any.
fn parse_strings(text: &str) -> Option<Vec<String>> {
    let mut cursor = Cursor { rest: text.trim() };
    let mut strings = Vec::new();
    cursor.list(&mut |cursor: &mut Cursor<'_>| {
        if strings.len() == MOST_ITEMS {
            return None;
        }
        strings.push(if cursor.rest.starts_with('"') { cursor.string()? } else { cursor.plain()?.to_owned() });
        Some(())
    })?;
    cursor.rest.is_empty().then_some(strings)
}

struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn eat(&mut self, expected: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?.trim_start();
        Some(())
    }

    /// A bracketed list, its items read by `item`.
    fn list(&mut self, item: &mut dyn FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.eat('[')?;
        if self.eat(']').is_some() {
            return Some(());
        }
        loop {
            item(self)?;
            self.rest = self.rest.trim_start();
            if self.eat(',').is_none() {
                return self.eat(']');
            }
        }
    }

    /// Everything up to the next comma or bracket.
    fn plain(&mut self) -> Option<&'a str> {
        if self.rest.starts_with('"') {
            let before = self.rest;
            self.string()?;
            return Some(&before[..before.len() - self.rest.len()]);
        }
        let end = self.rest.find([',', ']', '['])?;
        let (plain, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(plain.trim())
    }

    fn number(&mut self) -> Option<i64> {
        self.plain()?.parse().ok()
    }

    fn string(&mut self) -> Option<String> {
        let body = self.rest.strip_prefix('"')?;
        let mut escaped = false;
        let end = body.bytes().position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })?;
        self.rest = &body[end + 1..];
        Some(body[..end].replace("\\\"", "\""))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(shapes: &str, types: &str) -> Result<Inputs, UnknownWork> {
        Inputs::read(RecordedInputs { shapes: Some(shapes), types: Some(types), ..RecordedInputs::default() })
    }

    #[test]
    fn tensors_lists_and_plain_arguments_are_told_apart() {
        let inputs = Inputs::read(RecordedInputs {
            shapes: Some("[[1, 8], [[0], [1, 8]], [], [], 5, [2]]"),
            types: Some(r#"["c10::BFloat16", "TensorList", "Scalar", "float", "", "c10::Strange"]"#),
            strides: Some("[[8, 1], [[1], [8, 1]], [], [], [], [1]]"),
            values: Some(r#"["", "", "[-1, 2]", "", "", ""]"#),
            kernel: Some("k<float>"),
        })
        .unwrap();
        assert_eq!(inputs.tensor(0).unwrap().dims, [1, 8]);
        assert_eq!(inputs.list(1).unwrap().iter().map(|tensor| tensor.dims.clone()).collect::<Vec<_>>(), [vec![0], vec![1, 8]]);
        assert_eq!(inputs.numbers(2), Some(vec![-1, 2]));
        assert_eq!(inputs.tensor(3).unwrap().elements(), Ok(1), "a tensor without dimensions has one element");
        assert_eq!(inputs.optional_tensor(4), Ok(None));
        assert_eq!(inputs.tensor(5), Err(UnknownWork::UnknownType));
        assert_eq!(inputs.optional_tensor(9), Ok(None));
    }

    #[test]
    fn sizes_without_types_are_told_from_no_sizes() {
        let read = |shapes| Inputs::read(RecordedInputs { shapes, ..RecordedInputs::default() }).err();
        assert_eq!((read(Some("[[2, 3]]")), read(None)), (Some(UnknownWork::UnknownType), Some(UnknownWork::NoShapes)));
    }

    #[test]
    fn expanded_and_overlapping_elements_are_stored_once() {
        let stored = |dims: &[u64], strides: &[i64]| {
            Tensor { dims: dims.to_vec(), dtype: Dtype::F32, strides: Some(strides.to_vec()) }.stored_bytes().unwrap()
        };
        assert_eq!(stored(&[8, 2, 16], &[16, 0, 1]), 4 * 8 * 16);
        assert_eq!(stored(&[6, 3], &[1, 1]), 4 * 8, "windows of three over eight elements");
        assert_eq!(stored(&[4, 4], &[100, 1]), 4 * 16, "rows of a wider matrix");
        assert_eq!(stored(&[0, 4], &[4, 1]), 0);
    }

    #[test]
    fn hostile_texts_are_refused() {
        for text in ["", "[", "[[1]", "[[1, ]]", "[[-1]]x", "[[[[1]]]]", "[[1, [2]]]", "[[99999999999999999999]]", "[[1.5]]", "]", "[[1]],"]
        {
            assert!(read(text, r#"["float"]"#).is_err(), "{text}");
        }
        assert_eq!(read("[[-1]]", r#"["float"]"#).unwrap().tensor(0), Err(UnknownWork::UnknownType));
        assert!(read(&format!("[[{}1]]", "1, ".repeat(200)), r#"["float"]"#).is_err());
        assert!(read(&"[".repeat(100_000), r#"["float"]"#).is_err());
        assert!(read("[[1], [2]]", r#"["float"]"#).is_err(), "lists of different length");
        let huge = read("[[4294967296, 4294967296, 4294967296, 4294967296, 4294967296]]", r#"["float"]"#).unwrap();
        assert_eq!(huge.tensor(0).unwrap().elements(), Err(UnknownWork::TooLarge));
    }

    proptest! {
        #[test]
        fn nothing_panics(shapes in "[\\[\\], 0-9\"a-]{0,40}", types in "[\\[\\], \"a-z\\\\]{0,40}", values in "[\\[\\], \"0-9\\\\]{0,40}") {
            let recorded = RecordedInputs {
                shapes: Some(&shapes), types: Some(&types), strides: Some(&shapes), values: Some(&values), kernel: Some(&types),
            };
            if let Ok(inputs) = Inputs::read(recorded) {
                for at in 0..4 {
                    let _ = (inputs.tensor(at).and_then(Tensor::stored_bytes), inputs.list(at), inputs.numbers(at), inputs.flag(at));
                }
            }
        }
    }
}
