//! Secrets and identities, taken out of every string before it can reach an output.
//!
//! Traces hold what programs put into them: tokens in environment dumps and command lines, home folders in Python frames, host
//! names in file names. [`redact`] replaces credential-looking values, user names in paths, e-mail addresses and host names;
//! everything else passes unchanged, kernel names and their hashes above all. It is applied to a whole trace before it is
//! analysed ([`redact_trace`]), because analyses shorten names and half a secret is no longer recognisable, and to everything
//! that does not come from the trace: the path of the source, messages, and what the user typed.
//!
//! One pass looks at the few bytes at which a secret shows itself (`=`, `@`, `hf_`, ...), a second one, in strides of 32 bytes, at
//! long random runs. Every rule looks a bounded way back and either fails within a bounded way ahead or consumes what it read,
//! so the time is linear in the text whatever it holds. Text with nothing to hide is returned as it is.
//!
//! To add a rule, add a line to a table in `rules`, or a function and its anchor byte in [`rules::at`].

mod random;
mod report;
mod rules;
#[cfg(test)]
mod tests;

pub use report::{
    redact_comparison, redact_launches, redact_metrics, redact_report_source, redact_source_view, redact_summary, redact_troubles,
};

use std::borrow::Cow;

use longpole_trace::{Problems, Trace};

/// What stands for a hidden value.
pub(crate) const REDACTED: &str = "[redacted]";

/// A part of a text to replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hidden {
    start: usize,
    end: usize,
    with: &'static str,
}

impl Hidden {
    fn secret(start: usize, end: usize) -> Self {
        Self { start, end, with: REDACTED }
    }
}

/// `text` with credentials, user names in paths, e-mail addresses and host names replaced. Applying it again changes nothing.
pub fn redact(text: &str) -> Cow<'_, str> {
    match replace(text, rules::next) {
        None => replace(text, random::next).map_or(Cow::Borrowed(text), Cow::Owned),
        Some(once) => Cow::Owned(replace(&once, random::next).unwrap_or(once)),
    }
}

/// Redacts a string in place.
pub fn redact_string(text: &mut String) {
    if let Cow::Owned(redacted) = redact(text) {
        *text = redacted;
    }
}

/// Redacts every string of a trace: names, shapes, frames, labels, device and thread names.
pub fn redact_trace(trace: &mut Trace) {
    trace.rewrite_text(redact);
}

/// Redacts the examples of problems.
pub fn redact_problems(problems: &mut Problems) {
    problems.rewrite_examples(redact_string);
}

/// Replaces what `next` finds from left to right. `next` is given the text and where to look on from, before which nothing may
/// be replaced any more.
fn replace(text: &str, next: impl Fn(&[u8], usize) -> Option<Hidden>) -> Option<String> {
    let mut out = String::new();
    let mut done = 0;
    while let Some(Hidden { start, end, with }) = next(text.as_bytes(), done) {
        // Rules begin and end at ASCII bytes or the ends of the text, so these slices exist; if one did not, the rest of the text
        // would be hidden rather than shown.
        let Some(kept) = text.get(done..start).filter(|_| text.is_char_boundary(end)) else {
            out.push_str(REDACTED);
            return Some(out);
        };
        out.reserve(text.len() - done);
        out.push_str(kept);
        out.push_str(with);
        done = end;
    }
    if done == 0 {
        return None;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Some(out)
}
