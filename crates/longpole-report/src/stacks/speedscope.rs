//! speedscope's file format: <https://www.speedscope.app/file-format-schema.json>.
//!
//! A profile a thread or device, of type `sampled`: a sample a stack, its weight the time of that stack. The sums are exact. What is lost is
//! the order of time: samples are in the order in which stacks first occurred.

use std::io::{self, Write};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_analysis::StackTree;
use longpole_trace::{Ns, Trace};

use super::{StackSummary, shown};

/// Stacks to show, and what their time is.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// What the times are, e.g. `host time`.
    pub what: &'static str,
    /// The stacks.
    pub stacks: &'a StackTree,
}

struct Counted<'w> {
    out: io::BufWriter<&'w mut dyn Write>,
    bytes: u64,
}

impl Counted<'_> {
    fn text(&mut self, text: &str) -> io::Result<()> {
        self.bytes += text.len() as u64;
        self.out.write_all(text.as_bytes())
    }

    /// A text as JSON; `<` as an escape, so that no page that holds the document is ended by a name.
    fn string(&mut self, text: &str) -> io::Result<()> {
        let json = serde_json::to_string(text)?.replace('<', "\\u003c");
        self.text(&json)
    }
}

/// Writes profiles of stacks: one for each thread or device of each. `name` is what the document is called.
pub fn speedscope(profiles: &[Profile<'_>], trace: &Trace, name: &str, exporter: &str, out: &mut dyn Write) -> io::Result<StackSummary> {
    let mut out = Counted { out: io::BufWriter::with_capacity(1 << 16, out), bytes: 0 };
    let mut summary = StackSummary::default();
    out.text("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":")?;
    out.string(&shown(name))?;
    out.text(",\"exporter\":")?;
    out.string(exporter)?;
    out.text(",\"activeProfileIndex\":0,\"shared\":{\"frames\":[")?;
    let mut frames = Frames::default();
    for profile in profiles {
        frames.collect(profile.stacks, trace, &mut out)?;
    }
    out.text("]},\n\"profiles\":[")?;
    for (numbers, profile) in frames.of_profile.iter().zip(profiles) {
        for (root, stacks) in by_root(profile.stacks) {
            if summary.profiles > 0 {
                out.text(",\n")?;
            }
            let total: Ns = stacks.iter().map(|&(_, value)| value).sum();
            out.text("{\"type\":\"sampled\",\"name\":")?;
            out.string(&format!("{}: {}", profile.what, shown(profile.stacks.text(trace, profile.stacks.label(root)))))?;
            out.text(&format!(",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":{},\"samples\":[", total.get()))?;
            let mut path = Vec::new();
            for (at, &(node, _)) in stacks.iter().enumerate() {
                profile.stacks.path(node, &mut path);
                let line: Vec<String> = path.iter().map(|&frame| numbers[profile.stacks.label(frame)].to_string()).collect();
                out.text(&format!("{}[{}]", if at > 0 { "," } else { "" }, line.join(",")))?;
            }
            out.text("],\"weights\":[")?;
            for (at, (_, value)) in stacks.iter().enumerate() {
                out.text(&format!("{}{}", if at > 0 { "," } else { "" }, value.get()))?;
            }
            out.text("]}")?;
            summary.profiles += 1;
            summary.stacks += stacks.len() as u64;
        }
    }
    out.text("]}\n")?;
    out.out.flush()?;
    summary.bytes = out.bytes;
    Ok(summary)
}

/// Stacks of each thread or device, in order of first occurrence.
fn by_root(tree: &StackTree) -> Vec<(usize, Vec<(usize, Ns)>)> {
    let mut numbers: HashMap<usize, usize, FixedState> = HashMap::default();
    let mut found: Vec<(usize, Vec<(usize, Ns)>)> = Vec::new();
    let mut path = Vec::new();
    for (node, value) in tree.stacks() {
        tree.path(node, &mut path);
        let root = path.first().copied().unwrap_or(node);
        let number = *numbers.entry(root).or_insert_with(|| {
            found.push((root, Vec::new()));
            found.len() - 1
        });
        found[number].1.push((node, value));
    }
    found
}

/// Names that are used, each written once.
#[derive(Default)]
struct Frames {
    numbers: HashMap<String, u32, FixedState>,
    /// For each profile, the number of each label that is used.
    of_profile: Vec<Vec<u32>>,
}

impl Frames {
    fn collect(&mut self, stacks: &StackTree, trace: &Trace, out: &mut Counted<'_>) -> io::Result<()> {
        const NOT_YET: u32 = u32::MAX;
        let mut of_label = vec![NOT_YET; stacks.labels()];
        let mut path = Vec::new();
        for (node, _) in stacks.stacks() {
            stacks.path(node, &mut path);
            for &frame in &path {
                let label = stacks.label(frame);
                if of_label[label] != NOT_YET {
                    continue;
                }
                let text = shown(stacks.text(trace, label));
                let next = self.numbers.len() as u32;
                of_label[label] = if let Some(&known) = self.numbers.get(text.as_ref()) {
                    known
                } else {
                    out.text(if next > 0 { ",\n{\"name\":" } else { "\n{\"name\":" })?;
                    out.string(&text)?;
                    out.text("}")?;
                    self.numbers.insert(text.into_owned(), next);
                    next
                };
            }
        }
        self.of_profile.push(of_label);
        Ok(())
    }
}
