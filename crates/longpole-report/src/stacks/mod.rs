//! Time by stack for viewers of flame graphs: [`speedscope()`] and the lines of [`collapsed()`].
//!
//! Frames are made printable, and cut where a name is longer than anyone reads: a name stands in every stack that it is part of.

mod speedscope;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use longpole_analysis::StackTree;
use longpole_trace::Trace;

use crate::names::{ellipsis, printable};
pub use speedscope::{Profile, speedscope};

/// Columns of the name of a frame at most. The longest kernel names are half as long.
const MAX_NAME: usize = 4096;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackSummary {
    /// Stacks with time of their own.
    pub stacks: u64,
    /// Profiles they are in: threads and devices.
    pub profiles: u64,
    /// Bytes of text.
    pub bytes: u64,
}

/// The name of a frame as a viewer may show it.
fn shown(text: &str) -> Cow<'_, str> {
    if text.is_empty() {
        return Cow::Borrowed("(no name)");
    }
    // An escape takes more columns than what it stands for, so the text is cut before and after.
    let end = text.char_indices().nth(MAX_NAME).map_or(text.len(), |(at, _)| at);
    match printable(&text[..end]) {
        Cow::Borrowed(_) => ellipsis(text, MAX_NAME),
        Cow::Owned(escaped) => Cow::Owned(ellipsis(&escaped, MAX_NAME).into_owned()),
    }
}

/// Writes a line a stack, `outermost;...;innermost NANOSECONDS`, as flame graph programs read them. A semicolon in a name is written
/// `\u{3b}`: it would end the frame.
pub fn collapsed(stacks: &StackTree, trace: &Trace, out: &mut dyn Write) -> io::Result<StackSummary> {
    let mut texts: Vec<Option<Box<str>>> = vec![None; stacks.labels()];
    let mut summary = StackSummary::default();
    let (mut path, mut lines) = (Vec::new(), String::new());
    let mut roots = vec![];
    for (node, value) in stacks.stacks() {
        stacks.path(node, &mut path);
        if path.first() != roots.last() {
            roots.extend(path.first().copied());
        }
        for (depth, &frame) in path.iter().enumerate() {
            let label = stacks.label(frame);
            let text = texts[label].get_or_insert_with(|| shown(stacks.text(trace, label)).replace(';', "\\u{3b}").into());
            if depth > 0 {
                lines.push(';');
            }
            lines.push_str(text);
        }
        // Writing to a String cannot fail.
        let _ = writeln!(lines, " {}", value.get());
        summary.stacks += 1;
        if lines.len() >= 1 << 16 {
            summary.bytes += lines.len() as u64;
            out.write_all(lines.as_bytes())?;
            lines.clear();
        }
    }
    roots.sort_unstable();
    roots.dedup();
    summary.profiles = roots.len() as u64;
    summary.bytes += lines.len() as u64;
    out.write_all(lines.as_bytes())?;
    out.flush()?;
    Ok(summary)
}
