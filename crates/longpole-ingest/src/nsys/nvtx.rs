//! NVTX events: which are ranges, and what PyTorch wrote into their names.
//!
//! Under `torch.autograd.profiler.emit_nvtx` every operator opens a range whose text is the operator's name, then
//! `, seq = N`, `, op_id = N`, `, sizes = [...]`, as far as each is known. Such ranges are the operators that a Kineto trace would hold, so
//! they become operators here, without the numbers that differ from call to call.

/// What an NVTX event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Opened and closed on one thread, nested.
    PushPop,
    /// Opened and closed anywhere.
    StartEnd,
    /// A point in time.
    Mark,
    /// The name of a domain.
    Domain,
    /// Categories, names of threads, destroyed domains.
    Other,
}

impl Kind {
    /// By `eventType`, as `ENUM_NSYS_EVENT_TYPE` lists them.
    pub(super) fn of(event_type: Option<i64>) -> Self {
        match event_type {
            // Without the column, an event can be told by its times only; most are nested ranges.
            None | Some(35 | 59 | 70) => Self::PushPop,
            Some(37 | 60 | 71) => Self::StartEnd,
            Some(34) => Self::Mark,
            Some(75) => Self::Domain,
            Some(_) => Self::Other,
        }
    }
}

/// A name without what PyTorch appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parsed<'t> {
    pub(super) name: &'t [u8],
    /// It is an operator that PyTorch announced.
    pub(super) is_operator: bool,
    /// Sizes of its inputs, as written.
    pub(super) sizes: Option<&'t [u8]>,
}

/// What a range's text says.
pub(super) fn parse(text: &[u8]) -> Parsed<'_> {
    let find = |needle: &str| memchr::memmem::find(text, needle.as_bytes());
    let end = [", seq = ", ", op_id = ", ", sizes = ["].iter().filter_map(|mark| find(mark)).min();
    let Some(end) = end.filter(|end| is_torch(&text[*end..])) else { return Parsed { name: text, is_operator: false, sizes: None } };
    let name = &text[..end];
    let sizes = find(", sizes = [").and_then(|at| brackets(&text[at + ", sizes = ".len()..]));
    // Only operators and functions of autograd have a sequence number.
    Parsed { name, is_operator: text[end..].starts_with(b", seq = ") || is_operator(name), sizes }
}

/// Whether the rest of a text is made of PyTorch's parts; others may write `, seq = ` too, but not all like this.
fn is_torch(rest: &[u8]) -> bool {
    let mut rest = rest;
    for mark in [", seq = ", ", op_id = "] {
        if let Some(number) = rest.strip_prefix(mark.as_bytes()) {
            let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            rest = &number[digits..];
        }
    }
    rest.is_empty() || rest.starts_with(b", sizes = [") || rest.starts_with(b", input_op_ids = [")
}

/// Operators have a namespace (`aten::mm`), are a step of autograd (`AddmmBackward0`) or one of few others. Other names are ranges of the
/// user's or of libraries, which PyTorch writes the same way.
fn is_operator(name: &[u8]) -> bool {
    const OTHERS: [&[u8]; 3] = [b"detach", b"detach_", b"record_param_comms"];
    let has = |needle: &[u8]| memchr::memmem::find(name, needle).is_some();
    let trimmed = &name[..name.len() - name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count()];
    (has(b"::") && !has(b" ")) || trimmed.ends_with(b"Backward") || name.starts_with(b"autograd::engine::") || OTHERS.contains(&name)
}

/// A bracketed list at the beginning of a text, brackets included.
fn brackets(text: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_usize;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(&text[..=at]);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_pytorch_are_operators_without_their_numbers() {
        let name = |text: &'static str| {
            let found = parse(text.as_bytes());
            (std::str::from_utf8(found.name).unwrap_or_default(), found.is_operator, found.sizes.map(<[u8]>::len))
        };
        assert_eq!(name("aten::to, op_id = 317177"), ("aten::to", true, None));
        assert_eq!(name("aten::mm, seq = 12, op_id = 3, sizes = [[2, 3], [3]]"), ("aten::mm", true, Some(13)));
        assert_eq!(name("AddmmBackward0, seq = 12, op_id = 3"), ("AddmmBackward0", true, None));
        assert_eq!(name("AllToAll4D, seq = 45440, op_id = 990760"), ("AllToAll4D", true, None));
        assert_eq!(name("detach_, op_id = 7"), ("detach_", true, None));
        assert_eq!(name("FSDP::pre_forward (blocks.3), op_id = 7"), ("FSDP::pre_forward (blocks.3)", false, None));
        assert_eq!(name("decode, op_id = 7"), ("decode", false, None));
        assert_eq!(name("decode, seq = many"), ("decode, seq = many", false, None));
        assert_eq!(name("step 3"), ("step 3", false, None));
        assert_eq!(name("a, sizes = [[1]"), ("a", false, None));
    }
}
