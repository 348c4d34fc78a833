//! Recordings of longpole's own recorder: `.lprec` of one process, `.longpole` of a program with its children.
//!
//! [`longpole_recording`] finds pages and texts; pages are read, unpacked and made into rows on several threads ([`rows`], [`order`]), which
//! [`crate::nsys::feed`] adds to the trace as it does those of an Nsight Systems export: both are what CUPTI and NVTX say. [`ranges`] pairs NVTX
//! calls, [`captures`] says where nodes of graphs come from, [`state`] what was lost, refused, and what recording cost. Which process is a recording of its own is decided as there: those
//! that work on GPUs of their own.

mod captures;
mod demangle;
mod observed;
mod order;
mod ranges;
mod rows;
mod state;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use longpole_recording::{
    Api, Family, GraphNode, Kernel, Memcpy, Memset, Nvtx, Overhead, PeerCopy, RandomAccess, RangeState, Recording, StringId, Sync, Thread,
};
use longpole_trace::{EventWindow, Interval, IntervalSet, Ns, ProblemCode, Problems, RankInfo, TraceBuilder, Unobserved};

use crate::formats::{Reading, Report};
use crate::kineto::FileFacts;
use crate::nsys::feed::{Batch, Feed, ProcessKey, ranks};
use crate::unobserved::without_events;
use captures::Nodes;
use order::in_order;
use ranges::Ranges;
use rows::{Context, IntoRow, Origin, text_of};
pub use state::explain_refusal;
use state::{About, note_faults};

/// What to do with a recording that holds no work.
const RECORD: &str = "record a program that uses the GPU with `longpole record -- PROGRAM`";

/// Pages of a process that are looked at to see which GPU it works on.
const PAGES_FOR_GPU: usize = 4;

/// Whether the first bytes may be a recording.
pub(crate) fn looks_like_recording(head: &[u8]) -> bool {
    longpole_recording::is_recording(head)
}

/// A process's recording on its way into the trace.
struct Part<'a> {
    recording: Recording<'a>,
    about: About,
    origin: Origin,
    /// When it was recorded, where that is windows of it.
    windows: Option<Vec<Interval>>,
}

/// Reads recordings of a file into `builder`, as its recording `rank`; processes with GPUs of their own become recordings that follow.
/// The file is gone through once to find its pages, and those are read again as they are needed.
pub(crate) fn read(
    file: &dyn RandomAccess,
    reading: Reading,
    builder: &mut TraceBuilder,
    rank: u32,
    report: Report<'_>,
) -> io::Result<Vec<FileFacts>> {
    let found = longpole_recording::read_file(file, &mut |at| report(at));
    let mut problems = Problems::default();
    match found.error {
        Some(error) if found.recordings.is_empty() => return Err(error),
        Some(error) => problems.add(ProblemCode::UnreadBytes, None, || Some(error.to_string())),
        None => {}
    }
    note_faults(&found.faults, None, &mut problems);
    Ok(feed(found.recordings, file.length(), problems, reading, builder, rank))
}

/// Reads recordings that cannot be gone through twice: packed ones, and those that come through a pipe.
pub(crate) fn read_stream(
    input: &mut dyn Read,
    consumed: &AtomicU64,
    reading: Reading,
    builder: &mut TraceBuilder,
    rank: u32,
    report: Report<'_>,
) -> io::Result<Vec<FileFacts>> {
    let (bytes, cut) = read_all(input, consumed, report)?;
    let mut problems = Problems::default();
    if let Some(cause) = cut {
        problems.add(ProblemCode::DamagedCompression, None, || Some(cause));
    }
    let (recordings, faults) = longpole_recording::read(&bytes);
    note_faults(&faults, None, &mut problems);
    Ok(feed(recordings, bytes.len() as u64, problems, reading, builder, rank))
}

/// Adds recordings to the trace.
fn feed(
    recordings: Vec<Recording<'_>>,
    bytes: u64,
    mut problems: Problems,
    reading: Reading,
    builder: &mut TraceBuilder,
    rank: u32,
) -> Vec<FileFacts> {
    let mut parts = parts(recordings, &mut problems);
    let own = separate(builder, rank, &parts);
    let mut feed = Feed::new(builder, &own, rank);
    let threads = reading.threads.max(1);
    let mut closed_only = 0;
    for part in &mut parts {
        closed_only += take(part, threads, &mut feed);
    }
    for part in &parts {
        note_faults(&part.recording.faults, Some((part.about.pid, part.about.name.as_deref())), feed.problems());
    }
    feed.problems().add_many(ProblemCode::RangeOpenedBefore, closed_only, None, || None);
    if feed.problems().get(ProblemCode::MissingName).is_some() {
        feed.problems().note_hint(ProblemCode::MissingName, "the parts of the recording that held them were lost: record again");
    }
    let fed = feed.finish();
    problems.extend(fed.problems);
    let mut recordings: Vec<u32> = own.values().copied().chain([rank]).collect();
    recordings.sort_unstable();
    recordings.dedup();
    let mut unobserved = Unobserved::default();
    for &recording in &recordings {
        let of_it = || parts.iter().filter(|part| own.get(&part.origin.process).copied().unwrap_or(rank) == recording);
        // A process that was recorded all the time leaves no time in which nothing was.
        if of_it().all(|part| part.windows.is_some()) {
            let windows = of_it().filter_map(|part| part.windows.as_deref()).flatten().copied().collect();
            let between = IntervalSet::from_unsorted(windows).gaps();
            unobserved.set(recording as usize, without_events(builder.trace_mut(), recording, &between));
        }
    }
    if let (Some(_), Some((first, last))) = (problems.get(ProblemCode::RecorderCost), fed.window.bounds()) {
        let unobserved = unobserved.of_all(recordings.iter().map(|&recording| recording as usize));
        let wall = last - first - unobserved.time_within(Interval { start: first, end: last });
        problems.note_time_out_of(ProblemCode::RecorderCost, wall.max(Ns::ZERO));
    }
    let mut documents: Vec<FileFacts> = recordings
        .into_iter()
        .map(|recording| {
            let of_it = parts.iter().filter(|part| own.get(&part.origin.process).copied().unwrap_or(rank) == recording);
            let process = of_it.clone().find(|part| part.about.process.rank.is_some() || part.recording.count(Family::Kernel) > 0);
            let devices = fed.devices.keys().filter(|(of, _)| *of == recording).filter_map(|&(_, ordinal)| {
                let known = of_it.clone().flat_map(|part| &part.about.devices).find(|(number, ..)| *number == ordinal)?;
                Some((ordinal, known.1.clone()))
            });
            FileFacts {
                recording,
                marks: fed.marks,
                base_ns: Some(0),
                devices: devices.collect(),
                rank: process.and_then(|part| part.about.process.rank),
                world_size: process.and_then(|part| part.about.process.world_size),
                unobserved: unobserved.of_rank(recording as usize).intervals().to_vec(),
                versions: process.or_else(|| of_it.clone().next()).map(|part| part.about.versions()).unwrap_or_default(),
                ..FileFacts::default()
            }
        })
        .collect();
    let unusable = nothing_in(&parts, bytes);
    if let Some(first) = documents.first_mut() {
        (first.window, first.events, first.bytes) = (fed.window, fed.events, bytes);
        first.problems = problems;
        first.unusable = Some(unusable);
    }
    for other in documents.iter_mut().skip(1) {
        other.window = EventWindow::default();
    }
    documents
}

/// All bytes of the input, and what kept the rest from being read; an error if there are none.
fn read_all(input: &mut dyn Read, consumed: &AtomicU64, report: Report<'_>) -> io::Result<(Vec<u8>, Option<String>)> {
    let mut bytes = Vec::new();
    loop {
        match input.take(8 << 20).read_to_end(&mut bytes) {
            Ok(0) => return Ok((bytes, None)),
            Ok(_) => report(consumed.load(Ordering::Relaxed)),
            Err(error) if bytes.is_empty() => return Err(error),
            Err(error) => return Ok((bytes, Some(error.to_string()))),
        }
    }
}

/// Recordings with what they say of themselves, told apart where a process wrote several.
fn parts<'a>(recordings: Vec<Recording<'a>>, problems: &mut Problems) -> Vec<Part<'a>> {
    let mut generations: HashMap<ProcessKey, u16, FixedState> = HashMap::default();
    let mut parts = Vec::with_capacity(recordings.len());
    for mut recording in recordings {
        let about = About::read(&mut recording, problems);
        let process = ProcessKey::new(about.pid);
        let next = generations.entry(process).or_default();
        let origin = Origin { process, generation: *next, number: parts.len() as u32, shift: about.shift };
        *next = next.wrapping_add(1);
        let switches = recording.records::<RangeState>();
        let windows = observed::windows(recording.strings.get(about.process.range), about.process.delay_ms.is_some(), switches, &origin);
        parts.push(Part { recording, about, origin, windows });
    }
    parts
}

/// Gives processes that work on GPUs of their own a recording each, the first that of the file.
fn separate(builder: &mut TraceBuilder, rank: u32, parts: &[Part<'_>]) -> HashMap<ProcessKey, u32, FixedState> {
    let mut own = HashMap::default();
    let with_work = |part: &&Part<'_>| part.recording.count(Family::Kernel) + part.recording.count(Family::Memcpy) > 0;
    if parts.iter().filter(with_work).count() < 2 {
        return own;
    }
    let mut work: HashMap<(ProcessKey, i64), u64, FixedState> = HashMap::default();
    for part in parts {
        let mut count = |device: u32| *work.entry((part.origin.process, i64::from(device))).or_default() += 1;
        let kernels = part.recording.pages::<Kernel>().take(PAGES_FOR_GPU).filter_map(|page| page().ok()).flatten();
        kernels.for_each(|kernel| count(kernel.device));
        let copies = part.recording.pages::<Memcpy>().take(PAGES_FOR_GPU).filter_map(|page| page().ok()).flatten();
        copies.for_each(|copy| count(copy.device));
    }
    // A process that sees one GPU calls it 0, whichever it is.
    let mut uuids: Vec<u128> = parts.iter().flat_map(|part| &part.about.devices).filter_map(|(_, _, uuid)| *uuid).collect();
    uuids.sort_unstable();
    uuids.dedup();
    let mut gpus: HashMap<(ProcessKey, i64), i64, FixedState> = HashMap::default();
    for part in parts {
        for (ordinal, _, uuid) in &part.about.devices {
            if let Some(at) = uuid.and_then(|uuid| uuids.binary_search(&uuid).ok()) {
                gpus.insert((part.origin.process, *ordinal), at as i64);
            }
        }
    }
    let mut processes = ranks(&work, |process, device| gpus.get(&(process, device)).copied().unwrap_or(device));
    let told: BTreeMap<ProcessKey, u32> = parts.iter().filter_map(|part| Some((part.origin.process, part.about.process.rank?))).collect();
    processes.sort_by_key(|process| told.get(process).copied().unwrap_or(u32::MAX));
    let label = builder.trace_mut().ranks.get(rank as usize).map_or_else(String::new, |info| info.label.clone());
    for (at, process) in processes.into_iter().enumerate() {
        let label = format!("{label} (process {})", process.pid());
        let recording = if at == 0 {
            if let Some(info) = builder.trace_mut().ranks.get_mut(rank as usize) {
                info.label = label;
            }
            rank
        } else {
            builder.add_rank(RankInfo { label, ..RankInfo::default() })
        };
        own.insert(process, recording);
    }
    own
}

/// What a page becomes.
type Job<'j> = Box<dyn FnOnce() -> Result<Batch, longpole_recording::Fault> + Send + 'j>;

/// Adds a recording to the trace; the number of ranges that were open when it began.
fn take(part: &mut Part<'_>, threads: usize, feed: &mut Feed<'_>) -> u64 {
    let Part { recording, origin, about, .. } = part;
    let origin = *origin;
    let context = Context::read(recording);
    let names = recording.records::<Thread>();
    let mut faults = Vec::new();
    let strings = &recording.strings;
    let text = |id: i64| -> Option<Cow<'_, [u8]>> { text_of(if id < 0 { id } else { id & i64::from(u32::MAX) }, strings) };
    for (event, stream, correlation) in context.event_records() {
        let event = (event.0, event.1 | i64::from(origin.generation) << 32);
        feed.event_record(origin.process, event, stream, origin.correlation(correlation));
    }
    let mut jobs: Vec<Job<'_>> = Vec::new();
    add_pages::<Kernel>(recording, origin, &context, &mut jobs);
    add_pages::<Memcpy>(recording, origin, &context, &mut jobs);
    add_pages::<Memset>(recording, origin, &context, &mut jobs);
    add_pages::<PeerCopy>(recording, origin, &context, &mut jobs);
    add_pages::<Api>(recording, origin, &context, &mut jobs);
    add_pages::<Sync>(recording, origin, &context, &mut jobs);
    add_pages::<Overhead>(recording, origin, &context, &mut jobs);
    in_order(
        threads,
        jobs.into_iter(),
        |job| job(),
        |result| match result {
            Ok(batch) => feed.take(batch, &text),
            Err(fault) => faults.push(fault),
        },
    );
    let mut open = Ranges::default();
    let mut domains: HashSet<StringId, FixedState> = HashSet::default();
    in_order(
        threads,
        recording.pages::<Nvtx>(),
        |page| page(),
        |result| match result {
            Ok(calls) => {
                for domain in calls.iter().map(|call| call.domain).filter(|domain| domain.is_some()) {
                    if let (true, Some(id), Some(name)) = (domains.insert(domain), origin.text(domain), strings.get(domain)) {
                        feed.name_domain(origin.process, id, name);
                    }
                }
                let mut batch = Batch::new(origin.process);
                open.take(calls, &origin, strings, &mut batch);
                feed.take(batch, &text);
            }
            Err(fault) => faults.push(fault),
        },
    );
    let mut batch = Batch::new(origin.process);
    let closed_only = open.finish(&origin, strings, &mut batch);
    feed.take(batch, &text);
    let mut nodes = Nodes::default();
    for page in recording.pages::<GraphNode>() {
        match page() {
            Ok(made) => nodes.take(made),
            Err(fault) => faults.push(fault),
        }
    }
    nodes.add(&origin, feed);
    for thread in names {
        if let Some(name) = origin.text(thread.name) {
            feed.name_thread(origin.process, thread.tid, name, &text);
        }
    }
    if let Some(name) = &about.name {
        feed.name_process(origin.process, name.as_bytes());
    }
    recording.faults.extend(faults);
    closed_only
}

/// Adds the pages of a family to the jobs.
fn add_pages<'j, R: IntoRow + 'j>(recording: &Recording<'j>, origin: Origin, context: &'j Context, jobs: &mut Vec<Job<'j>>) {
    jobs.extend(recording.pages::<R>().map(|page| {
        Box::new(move || {
            let mut batch = Batch::new(origin.process);
            for record in page()? {
                record.add(&origin, context, &mut batch);
            }
            Ok(batch)
        }) as Job<'j>
    }));
}

/// What recordings without any work are, and what to do.
fn nothing_in(parts: &[Part<'_>], bytes: u64) -> (String, &'static str) {
    if let Some((why, hint)) = parts.iter().find_map(|part| part.about.refused.clone()) {
        return (format!("a recording of nothing: {why}"), hint);
    }
    match parts.len() {
        0 => (format!("{bytes} bytes that begin like a recording and hold none that can be read"), "copy the file again, or record again"),
        1 => ("a recording without calls, ranges or device work: the process used no CUDA".to_owned(), RECORD),
        several => (format!("recordings of {several} processes without calls, ranges or device work: none used CUDA"), RECORD),
    }
}
