//! Who wrote a Chrome trace, told from its first bytes, and what each writer does differently.
//!
//! Every dialect goes through the same pipeline; only the members of `args` and what an event becomes differ. To add one: a variant, its
//! mark in [`Dialect::of`], and a file beside [`super::jax`].

use super::arguments::Args;
use super::category::Category;
use super::{jax, onnx};
use crate::json::Tokens;

/// Who wrote the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// PyTorch, or who writes like it.
    #[default]
    Kineto,
    /// XLA's profiler, for JAX and TensorFlow.
    Jax,
    /// ONNX Runtime.
    Onnx,
    /// Anybody else. Categories of PyTorch keep their meaning; other events are ranges.
    Chrome,
}

/// Members that only the envelope of a PyTorch trace (or a part that longpole made of one) has.
const KINETO_KEYS: [&[u8]; 12] = [
    b"\"schemaVersion\"",
    b"\"deviceProperties\"",
    b"\"computeProperties\"",
    b"\"distributedInfo\"",
    b"\"baseTimeNanoseconds\"",
    b"\"traceName\"",
    b"\"record_shapes\"",
    b"\"with_stack\"",
    b"\"profile_memory\"",
    b"\"cupti_version\"",
    b"\"trace_id\"",
    b"\"longpole\"",
];

impl Dialect {
    /// Who wrote the document that begins with `head`. What shows PyTorch's hand anywhere in it decides; a document of which nothing
    /// is known is taken as PyTorch's, whose reader says what it is if it is no trace.
    pub(crate) fn of(head: &[u8]) -> Self {
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        if !matches!(text.first(), Some(b'{' | b'[')) || KINETO_KEYS.iter().any(|key| has_key(head, key)) {
            return Self::Kineto;
        }
        let is_onnx = text[0] == b'[' && onnx::begins(head);
        // ONNX Runtime calls device work `Kernel`, as PyTorch did in 2021.
        let shows_kineto = |cat: &[u8]| Category::of(cat) != Category::Unknown && !(is_onnx && cat == b"Kernel");
        if values_of(head, b"\"cat\"").any(shows_kineto) {
            return Self::Kineto;
        }
        if is_onnx {
            return Self::Onnx;
        }
        if jax::begins(head) {
            return Self::Jax;
        }
        // A profile of another kind has no phases at all.
        if values_of(head, b"\"ph\"").next().is_some() { Self::Chrome } else { Self::Kineto }
    }

    /// Whether arguments have other names than PyTorch's.
    pub(super) fn has_own_arguments(self) -> bool {
        matches!(self, Self::Jax | Self::Onnx)
    }

    /// Takes one argument of a writer with names of its own.
    pub(super) fn read_arg<'a>(self, tokens: &mut Tokens<'a>, colon: usize, key_end: usize, args: &mut Args<'a>, extras: &mut Extras<'a>) {
        match self {
            Self::Jax => jax::read_arg(tokens, colon, key_end, args, extras),
            Self::Onnx => onnx::read_arg(tokens, colon, key_end, args, extras),
            Self::Kineto | Self::Chrome => {}
        }
    }
}

/// What only other writers than PyTorch write. Texts are raw.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extras<'a> {
    /// `id` or `id2` of an asynchronous event, quotes and braces included, and its scope.
    pub(super) id: &'a [u8],
    pub(super) scope: &'a [u8],
    pub(super) jax: jax::Extras<'a>,
    pub(super) onnx: onnx::Extras<'a>,
}

/// Where `key` stands as a key: a colon follows.
fn has_key(head: &[u8], key: &[u8]) -> bool {
    memchr::memmem::find_iter(head, key).any(|at| head[at + key.len()..].trim_ascii_start().first() == Some(&b':'))
}

/// The string values of a key, wherever it stands, escapes unresolved.
pub(super) fn values_of<'h>(head: &'h [u8], key: &'static [u8]) -> impl Iterator<Item = &'h [u8]> {
    memchr::memmem::find_iter(head, key).filter_map(move |at| {
        let value = head[at + key.len()..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
        value.get(..memchr::memchr(b'"', value)?)
    })
}

#[cfg(test)]
mod tests {
    use super::Dialect;

    #[test]
    fn the_first_bytes_tell_the_writer() {
        let kineto = [
            "",
            "{\"a\": 1}",
            "{\"shared\": {}, \"profiles\": []}",
            "{\"schemaVersion\": 1, \"deviceProperties\": []",
            "[{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\"",
            "[{\"ph\": \"X\", \"cat\": \"mine\"}, {\"cat\":\"python_function\", \"ph\": \"X\"",
            "[{\"ph\": \"X\", \"cat\": \"Kernel\", \"name\": \"k\"",
            "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"Operator\"",
            // The name of a process proves nothing beside an envelope or a category of PyTorch's.
            "{\"schemaVersion\": 1, \"traceEvents\": [{\"ph\": \"M\", \"args\": {\"name\": \"/host:CPU\"}}",
            "[{\"ph\": \"M\", \"args\": {\"name\": \"/device:GPU:0\"}}, {\"ph\": \"X\", \"cat\": \"cuda_runtime\"",
            "[{\"ph\": \"X\", \"cat\": \"Node\", \"args\": {\"op_name\": \"Add\"}}, {\"ph\": \"X\", \"cat\": \"gpu_memcpy\"",
        ];
        let jax = [
            "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},\"traceEvents\":[",
            "\u{feff} {\"traceEvents\": [{\"ph\": \"M\", \"name\": \"process_name\", \"args\": {\"name\": \"/device:GPU:1\"}}",
        ];
        let onnx = [
            "[\n{\"cat\" : \"Session\",\"pid\" :1,\"ph\" : \"X\",\"name\" :\"model_loading_uri\",\"args\" : {}},",
            "[{\"cat\" : \"Node\",\"ph\" : \"X\",\"name\" :\"n_kernel_time\",\"args\" : {\"op_name\" : \"Add\"}},{\"cat\" : \"Kernel\",\"ph\" : \"X\"",
        ];
        let chrome = [
            "[{\"ph\": \"B\", \"name\": \"f\"",
            "{\"traceEvents\": [{\"cat\": \"Node\", \"ph\": \"X\", \"args\": {\"op_name\": \"Add\"}}",
            "[{\"name\": \"schemaVersion\", \"ph\": \"X\", \"cat\": \"toplevel\"",
            "[{\"cat\": \"Session\", \"ph\": \"X\", \"name\": \"login\"",
        ];
        let all = [(Dialect::Kineto, &kineto[..]), (Dialect::Jax, &jax), (Dialect::Onnx, &onnx), (Dialect::Chrome, &chrome)];
        for (dialect, heads) in all {
            for head in heads {
                assert_eq!(Dialect::of(head.as_bytes()), dialect, "{head}");
            }
        }
    }
}
