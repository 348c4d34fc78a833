//! The first pass: headers, names, the session, and where every entry is. No payload is read beyond the size in front of it.

use std::collections::HashMap;

use prost::Message as _;

use super::messages::{BlockHeader, FileHeader, SessionDetails};
use super::names::Names;
use super::storage::Storage;
use super::wire::Fields;
use crate::trouble::{TroubleCode, Troubles};

/// What every report starts with.
pub(crate) const MAGIC: &[u8; 4] = b"NVR\0";

/// The only version of the layout there has been from 2020.3 to 2026.1.
const KNOWN_VERSION: u32 = 7;

/// Largest header that is read; real ones stay below one megabyte (the table of names).
const LARGEST_HEADER: u32 = 16 << 20;

/// Most names that are kept; real reports have a few thousand.
const MOST_NAMES: usize = 1 << 22;

/// Most bytes of facts about the session that are kept, over all blocks; real reports have a few ten thousand.
const MOST_SESSION_BYTES: usize = 8 << 20;

/// Most results and pieces of source data that are indexed: each costs memory in every table, however few bytes it has in the file.
const MOST_ENTRIES: usize = 1 << 20;

/// What kind of thing was profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// One kernel.
    Kernel,
    /// A range of kernels, replayed together.
    Range,
    /// A list of commands (OptiX and graphics interop).
    CommandList,
    /// A whole CUDA graph.
    Graph,
}

impl EntryKind {
    /// The word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Range => "range",
            Self::CommandList => "command_list",
            Self::Graph => "graph",
        }
    }
}

/// Where a result is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: EntryKind,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// Index into [`Index::processes`].
    pub(crate) process: Option<u32>,
}

/// Where a piece of source data is: a cubin, source files, addresses of functions. Several pieces may share a reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceEntry {
    /// Counts modules of one process: two processes use the same numbers for different code.
    pub(crate) reference: u64,
    /// Index into [`Index::processes`].
    pub(crate) process: Option<u32>,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// A profiled process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number on its machine.
    pub id: u32,
    /// The path of its program, as recorded.
    pub name: String,
    /// Its machine, as recorded.
    pub host: String,
}

/// Everything that the first pass learns.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) version: Option<u32>,
    pub(crate) names: Names,
    pub(crate) session: SessionDetails,
    pub(crate) processes: Vec<Process>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) sources: Vec<SourceEntry>,
}

impl Index {
    /// Reads the headers of all blocks. Damage ends the pass or a block, and is counted.
    pub(crate) fn of(storage: &Storage, troubles: &Troubles) -> Self {
        let mut reader = Reader { storage, troubles, position: 0, index: Self::default(), numbers: HashMap::new(), session_bytes: 0 };
        reader.file();
        reader.index
    }
}

struct Reader<'a> {
    storage: &'a Storage,
    troubles: &'a Troubles,
    position: u64,
    index: Index,
    /// The processes seen so far.
    numbers: HashMap<Process, u32>,
    session_bytes: usize,
}

impl Reader<'_> {
    fn file(&mut self) {
        self.position = MAGIC.len() as u64;
        let Some(header) = self.sized_message() else { return };
        if let Ok(header) = FileHeader::decode(&header[..]) {
            self.index.version = header.version;
        } else {
            self.damaged(0, "the file header");
        }
        if self.index.version != Some(KNOWN_VERSION) {
            let found = self.index.version.map_or_else(|| "no version".to_owned(), |version| format!("version {version}"));
            self.troubles.add(TroubleCode::UnknownReportVersion, Some(0), || Some(found));
        }
        while self.position < self.storage.len() && self.block().is_some() {}
    }

    /// Reads one block and moves behind it. `None` ends the file.
    fn block(&mut self) -> Option<()> {
        let start = self.position;
        let header = self.sized_message()?;
        if header.is_empty() {
            // Every block says something. A tail of zeros, as a crash may leave behind, would be as many blocks as it has words.
            self.damaged(start, "a block without a header");
            return None;
        }
        let Ok(header) = BlockHeader::decode(&header[..]) else {
            // Without its header the block has no known end, and what follows cannot be found.
            self.damaged(start, "a block header");
            return None;
        };
        for details in &header.session {
            self.session_bytes += details.len();
            // Merging is what the format asks for: lists grow, single values are replaced.
            if self.session_bytes > MOST_SESSION_BYTES || self.index.session.merge(&details[..]).is_err() {
                self.damaged(start, "facts about the session");
            }
        }
        for text in header.strings.iter().flat_map(|table| &table.strings) {
            if self.index.names.len() >= MOST_NAMES {
                self.damaged(start, "a table of more than four million names");
                break;
            }
            self.index.names.push(&String::from_utf8_lossy(text));
        }
        let process = header.process.as_ref().map(|process| self.process(process));
        let payload = self.position;
        let end = payload + u64::from(header.payload_size.unwrap_or(0));
        let readable = end.min(self.storage.len());
        if end > readable {
            self.cut(payload);
        }
        let counts = [
            (None, header.sources),
            (Some(EntryKind::Kernel), header.kernels),
            (Some(EntryKind::Range), header.ranges),
            (Some(EntryKind::CommandList), header.command_lists),
            (Some(EntryKind::Graph), header.graphs),
        ];
        for (kind, count) in counts {
            for _ in 0..count.unwrap_or(0) {
                if self.entry(kind, process, readable, end).is_none() {
                    self.position = readable;
                    return (end <= readable).then_some(());
                }
            }
        }
        self.position = readable;
        (end <= readable).then_some(())
    }

    /// Notes where an entry is and moves behind it. `None` when it does not fit into what is left of its block.
    fn entry(&mut self, kind: Option<EntryKind>, process: Option<u32>, readable: u64, end: u64) -> Option<()> {
        let start = self.position;
        let length = if readable.saturating_sub(start) < 4 { None } else { self.size() };
        let offset = start + 4;
        let Some(length) = length.filter(|&length| offset + u64::from(length) <= readable) else {
            // Of a cut file this is known already.
            if readable == end {
                self.damaged(start, "a result longer than its block");
            }
            return None;
        };
        self.position = offset + u64::from(length);
        if length == 0 {
            // A result has at least a name. Four bytes in the file must not become a row.
            self.troubles.add(TroubleCode::DamagedResult, Some(start), || Some("a result of no bytes".to_owned()));
            return Some(());
        }
        if self.index.entries.len() + self.index.sources.len() >= MOST_ENTRIES {
            self.troubles.add(TroubleCode::TooManyResults, Some(start), || None);
            return None;
        }
        match kind {
            Some(kind) => self.index.entries.push(Entry { kind, offset, length, process }),
            None => match self.reference(offset, length) {
                Some(reference) => self.index.sources.push(SourceEntry { reference, process, offset, length }),
                None => self.damaged(start, "source data without a reference"),
            },
        }
        Some(())
    }

    /// The reference of source data is its first field; the cubin behind it is not read.
    fn reference(&self, offset: u64, length: u32) -> Option<u64> {
        let mut start = [0; 16];
        let start = &mut start[..(length as usize).min(16)];
        self.storage.read_at(offset, start).ok()?;
        match Fields::of(start).next()? {
            Ok((1, field)) => field.varint(),
            _ => None,
        }
    }

    fn process(&mut self, process: &super::messages::Process) -> u32 {
        let text = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
        let process = Process { id: process.id.unwrap_or(0), name: text(&process.name), host: text(&process.host) };
        let next = self.index.processes.len() as u32;
        let number = *self.numbers.entry(process.clone()).or_insert(next);
        if number == next {
            self.index.processes.push(process);
        }
        number
    }

    fn size(&mut self) -> Option<u32> {
        let mut bytes = [0; 4];
        self.storage.read_at(self.position, &mut bytes).ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    /// A message with its size in front of it; moves behind it. Counts what is wrong.
    fn sized_message(&mut self) -> Option<Vec<u8>> {
        let start = self.position;
        let left = self.storage.len() - start;
        let size = if left < 4 { None } else { self.size() };
        match size {
            Some(size) if size > LARGEST_HEADER => {
                self.damaged(start, "a header of more than 16 MiB");
                None
            }
            Some(size) if u64::from(size) <= left - 4 => {
                let mut bytes = vec![0; size as usize];
                self.storage.read_at(start + 4, &mut bytes).ok()?;
                self.position = start + 4 + u64::from(size);
                Some(bytes)
            }
            _ => {
                self.cut(start);
                None
            }
        }
    }

    fn damaged(&self, offset: u64, what: &str) {
        self.troubles.add(TroubleCode::DamagedBlock, Some(offset), || Some(what.to_owned()));
    }

    fn cut(&self, offset: u64) {
        self.troubles.add(TroubleCode::CutReport, Some(offset), || None);
    }
}
