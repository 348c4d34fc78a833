//! Layer profiles of TensorRT: what `trtexec --exportProfile=FILE` writes.
//!
//! An array of objects. The first says how often the network ran (`count`), each other one what a layer took in all (`timeMs`), on average
//! and in the middle (`averageMs`, `medianMs`; older versions have no median), and as a share (`percentage`). The mean follows from time
//! and count, and the share from all times, so neither is read. Milliseconds are decimal text and are read as such.

use longpole_trace::{Aggregate, AggregateDetail, AggregateKind, Ns, ProblemCode, Problems, TraceBuilder};

use super::{Document, Item, Member, Walk, number};
use crate::formats::{Reading, Report, Source};
use crate::json::{Damage, ValueKind, unescape};
use crate::kineto::FileFacts;

const RECORD: &str = "write one with `trtexec --loadEngine=ENGINE --exportProfile=profile.json --separateProfileRun`";

/// Milliseconds to nanoseconds: that many decimal places.
const MS: i64 = 6;

#[derive(Default)]
struct Layers {
    count: Option<u64>,
    rows: Vec<(String, Option<Ns>, Option<Ns>)>,
    problems: Problems,
}

/// Reads a layer profile into `builder`, as its recording `rank`.
pub(crate) fn read(
    source: Source<'_>,
    _reading: Reading,
    builder: &mut TraceBuilder,
    rank: u32,
    report: Report<'_>,
) -> std::io::Result<Vec<FileFacts>> {
    let Document { bytes, problems } = Document::read(source, report)?;
    let mut layers = Layers { problems, ..Layers::default() };
    if let Err(damage) = layers.walk(&bytes) {
        Document::note(&mut layers.problems, damage, bytes.len());
    }
    let marks = builder.marks();
    let device = (!layers.rows.is_empty()).then(|| builder.device(rank, 0));
    let events = layers.rows.len() as u64;
    for (name, time, median) in layers.rows {
        let name = builder.trace_mut().strings.intern(&name);
        let detail = AggregateDetail { median_ns: median, ..AggregateDetail::default() };
        let kind = AggregateKind::Layer;
        builder.push_aggregate(Aggregate { kind, name, rank, parent: None, count: layers.count, device_ns: time, device, detail });
    }
    let unusable = Some(("a TensorRT layer profile without a readable layer".to_owned(), RECORD));
    Ok(vec![FileFacts {
        recording: rank,
        marks,
        events,
        bytes: bytes.len() as u64,
        problems: layers.problems,
        unusable,
        ..FileFacts::default()
    }])
}

impl Layers {
    fn walk(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        let mut walk = Walk::new(bytes)?;
        loop {
            match walk.item()? {
                Item::Object => self.layer(&mut walk)?,
                Item::End => break,
                Item::Array => {
                    walk.skip()?;
                    self.unreadable();
                }
                Item::Text => self.unreadable(),
            }
        }
        walk.finish(&mut self.problems);
        if self.count.is_none() {
            self.problems.add(ProblemCode::UnreadableMetric, None, || Some("the number of runs (`count`) is not in the file".to_owned()));
        }
        Ok(())
    }

    fn unreadable(&mut self) {
        self.problems.add(ProblemCode::UnreadableMetric, None, || None);
    }

    fn layer(&mut self, walk: &mut Walk<'_>) -> Result<(), Damage> {
        let (mut name, mut time, mut median, mut count, mut has_time) = (None, None, None, None, false);
        while let Some((key, after)) = walk.key()? {
            let value = walk.member(after)?;
            match (key, &value) {
                (_, Member::Object | Member::Array) => walk.skip()?,
                (b"name", Member::Value(text)) if text.kind == ValueKind::String => {
                    let (text, replaced) = unescape(text.raw);
                    if replaced {
                        self.problems.add(ProblemCode::BadUtf8, None, || None);
                    }
                    name = Some(text.into_owned());
                }
                (b"timeMs", _) => (time, has_time) = (number(&value, MS, &mut self.problems).map(ns), true),
                (b"medianMs", _) => median = number(&value, MS, &mut self.problems).map(ns),
                (b"count", _) => count = number(&value, 0, &mut self.problems),
                _ => {}
            }
        }
        match name {
            Some(name) => {
                if !has_time {
                    self.unreadable();
                }
                self.rows.push((name, time, median));
            }
            None if count.is_some() && !has_time => self.count = self.count.or(count),
            None => self.unreadable(),
        }
        Ok(())
    }
}

fn ns(value: u64) -> Ns {
    Ns(i64::try_from(value).unwrap_or(i64::MAX))
}
