//! A report, opened: indexed at once, decoded as asked.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use crate::container::{EntryKind, Index, MAGIC, Names, Process, Storage, is_zstd, spool, unpack};
use crate::csv;
use crate::error::Error;
use crate::result::{self, ProfiledResult, Selection};
use crate::session::Session;
use crate::source_data::SourceData;
use crate::trouble::{Trouble, TroubleCode, Troubles};

/// Largest result or piece of source data that is read into memory.
const LARGEST_ENTRY: u32 = 1 << 30;

/// Bytes looked at to say what an input is. The header of a table may stand behind what the profiled program printed.
const SNIFFED: usize = 1 << 16;

/// A report.
#[derive(Debug)]
pub struct Report {
    pub(crate) path: String,
    pub(crate) format: &'static str,
    pub(crate) bytes: u64,
    pub(crate) session: Session,
    pub(crate) processes: Vec<Process>,
    pub(crate) troubles: Troubles,
    pub(crate) names: Arc<Names>,
    pub(crate) page: Page,
    pub(crate) backing: Backing,
}

/// How much of a report an input can hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// Everything: it is a report.
    #[default]
    Whole,
    /// ncu's raw page: all metrics without what they are broken down into, and no rules.
    Raw,
    /// ncu's details page: the metrics in the headers of sections, and what the rules said.
    Details,
}

/// Where results come from.
#[derive(Debug)]
pub(crate) enum Backing {
    /// The container, decoded on demand.
    Container {
        /// The bytes.
        storage: Storage,
        /// Where everything is in them.
        index: Box<Index>,
    },
    /// A table export, read whole: it is small.
    Table(Vec<ProfiledResult>),
}

impl Report {
    /// Opens a report file: `.ncu-rep`, `.ncu-repz` or one of ncu's own CSV exports, told apart by content.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let fail = |source| Error::Io { path: name.clone(), source };
        let mut file = File::open(path).map_err(fail)?;
        let start = read_start(&mut file).map_err(fail)?;
        if !file.metadata().map_err(fail)?.is_file() {
            // A pipe by name cannot be read at positions.
            return Self::read(start.chain_with(file), &name);
        }
        if start.bytes.starts_with(MAGIC) {
            let storage = Storage::of_file(file).map_err(fail)?;
            return Ok(Self::of_container(storage, "ncu-rep", name, Troubles::default()));
        }
        Self::read(start.chain_with(file), &name)
    }

    /// Reads a report from a stream, e.g. standard input. `name` is what messages call it.
    pub fn read(mut input: impl Read, name: &str) -> Result<Self, Error> {
        let fail = |source| Error::Io { path: name.to_owned(), source };
        let start = read_start(&mut input).map_err(fail)?;
        let input = start.clone().chain_with(input);
        if start.bytes.starts_with(MAGIC) {
            return Ok(Self::of_container(spool(input).map_err(fail)?, "ncu-rep", name.to_owned(), Troubles::default()));
        }
        if is_zstd(&start.bytes) {
            let unpacked = unpack(input).map_err(fail)?;
            let troubles = Troubles::default();
            let mut magic = [0; 4];
            if unpacked.storage.read_at(0, &mut magic).is_err() || magic != *MAGIC {
                return Err(Error::Unusable {
                    path: name.to_owned(),
                    expected: "a report inside the zstd stream",
                    found: unpacked.damage.unwrap_or_else(|| describe(&magic)),
                    hint: "give the file that ncu wrote",
                });
            }
            if let Some(damage) = unpacked.damage {
                troubles.add(TroubleCode::DamagedReportCompression, Some(unpacked.storage.len()), || Some(damage));
            }
            return Ok(Self::of_container(unpacked.storage, "ncu-repz", name.to_owned(), troubles));
        }
        if csv::may_start(&start.bytes) {
            return csv::read(input, name);
        }
        Err(Error::Unusable {
            path: name.to_owned(),
            expected: "a .ncu-rep or .ncu-repz file, or ncu's own CSV",
            found: describe(&start.bytes),
            hint: "profile with `ncu -o report -- PROGRAM` and give report.ncu-rep",
        })
    }

    fn of_container(storage: Storage, format: &'static str, path: String, troubles: Troubles) -> Self {
        let mut index = Index::of(&storage, &troubles);
        Self {
            path,
            format,
            bytes: storage.len(),
            session: Session::of(&index.session),
            processes: std::mem::take(&mut index.processes),
            troubles,
            names: Arc::new(std::mem::take(&mut index.names)),
            page: Page::Whole,
            backing: Backing::Container { storage, index: Box::new(index) },
        }
    }

    /// What the user called it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// `ncu-rep`, `ncu-repz` or `ncu-csv`.
    pub const fn format(&self) -> &'static str {
        self.format
    }

    /// How much of a report this can hold.
    pub const fn page(&self) -> Page {
        self.page
    }

    /// Its size, uncompressed, in bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Facts about the recording as a whole.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// The profiled processes.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// How many results there are.
    pub fn len(&self) -> usize {
        match &self.backing {
            Backing::Container { index, .. } => index.entries.len(),
            Backing::Table(results) => results.len(),
        }
    }

    /// True if nothing was profiled, or nothing of it could be found.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was counted so far. Decoding may add to it.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.troubles.list()
    }

    /// A selection of nothing, to be added to.
    pub fn select(&self) -> Selection {
        Selection::none(&self.names)
    }

    /// Decodes one result; `None` if it cannot be read, which is counted.
    pub fn decode(&self, id: usize, wanted: &Selection) -> Option<ProfiledResult> {
        match &self.backing {
            Backing::Table(results) => results.get(id).map(|result| wanted.of_whole(result)),
            Backing::Container { storage, index } => {
                let entry = index.entries.get(id)?;
                let bytes = self.entry(storage, entry.offset, entry.length)?;
                let (result, damage) = result::decode(id, entry.kind, entry.process.map(|process| process as usize), &bytes, wanted);
                for _ in 0..damage.malformed.min(1) {
                    self.troubles.add(TroubleCode::DamagedResult, Some(entry.offset), || Some(format!("result {id}")));
                }
                if damage.unnamed > 0 {
                    self.troubles.add(TroubleCode::UnnamedMetric, Some(entry.offset), || Some(format!("result {id}")));
                }
                Some(result)
            }
        }
    }

    /// Decodes the results of these numbers, in this order, on all threads. Results that cannot be read are left out.
    pub fn decode_each(&self, ids: &[usize], wanted: &Selection) -> Vec<ProfiledResult> {
        ids.par_iter().filter_map(|&id| self.decode(id, wanted)).collect()
    }

    /// Decodes every result.
    pub fn decode_all(&self, wanted: &Selection) -> Vec<ProfiledResult> {
        (0..self.len()).into_par_iter().filter_map(|id| self.decode(id, wanted)).collect()
    }

    /// The source data that a result was built from; `None` if the report has none. A result has one reference at most; a
    /// range may have several, of which the first with a cubin counts.
    pub fn source_of(&self, result: &ProfiledResult) -> Option<SourceData> {
        let mut without_code = None;
        for &reference in &result.sources {
            match self.source(result.process, reference) {
                Some(data) if data.cubin.is_some() => return Some(data),
                Some(data) => without_code = without_code.or(Some(data)),
                None => {}
            }
        }
        without_code
    }

    fn source(&self, process: Option<usize>, reference: u64) -> Option<SourceData> {
        let Backing::Container { storage, index } = &self.backing else { return None };
        let process = process.map(|process| process as u32);
        let mut data = None;
        for entry in index.sources.iter().filter(|entry| entry.reference == reference && entry.process == process) {
            let Some(bytes) = self.entry(storage, entry.offset, entry.length) else { continue };
            if data.get_or_insert_with(SourceData::default).merge(&bytes).is_err() {
                self.troubles.add(TroubleCode::DamagedResult, Some(entry.offset), || Some("source data".to_owned()));
            }
        }
        data
    }

    /// How many results are of a kind.
    pub fn count_of(&self, kind: EntryKind) -> usize {
        match &self.backing {
            Backing::Container { index, .. } => index.entries.iter().filter(|entry| entry.kind == kind).count(),
            Backing::Table(results) => results.iter().filter(|result| result.kind == kind).count(),
        }
    }

    fn entry(&self, storage: &Storage, offset: u64, length: u32) -> Option<Vec<u8>> {
        if length > LARGEST_ENTRY {
            self.troubles.add(TroubleCode::DamagedResult, Some(offset), || Some("more than 1 GiB long".to_owned()));
            return None;
        }
        let mut bytes = vec![0; length as usize];
        match storage.read_at(offset, &mut bytes) {
            Ok(()) => Some(bytes),
            Err(error) => {
                self.troubles.add(TroubleCode::DamagedResult, Some(offset), || Some(error.to_string()));
                None
            }
        }
    }
}

/// The first bytes of an input, taken off it to be looked at.
#[derive(Clone)]
struct Start {
    bytes: Vec<u8>,
}

impl Start {
    fn chain_with<R: Read>(self, rest: R) -> io::Chain<io::Cursor<Vec<u8>>, R> {
        io::Cursor::new(self.bytes).chain(rest)
    }
}

fn read_start(input: &mut impl Read) -> io::Result<Start> {
    let mut bytes = Vec::new();
    input.take(SNIFFED as u64).read_to_end(&mut bytes)?;
    Ok(Start { bytes })
}

/// A few words on what an input is instead.
fn describe(start: &[u8]) -> String {
    let known: &[(&[u8], &str)] = &[
        (b"SQLite format 3\0", "an SQLite file (Nsight Systems writes such)"),
        (b"\x1f\x8b", "a gzip stream: unpack it first (gunzip)"),
        (b"\xfd7zXZ", "an xz stream: unpack it first"),
        (b"PK\x03\x04", "a zip archive"),
        (b"{", "JSON: a trace is read by `longpole triage`"),
        (b"[{", "JSON: a trace is read by `longpole triage`"),
        (b"[\n", "JSON: a trace is read by `longpole triage`"),
        (b"\x7fELF", "an ELF file"),
        (b"\xff\xfe", "UTF-16 text (PowerShell's `>` writes it): save it as UTF-8"),
    ];
    if start.is_empty() {
        return "an empty file".to_owned();
    }
    let text = start.trim_ascii_start();
    if let Some((_, name)) =
        known.iter().find(|(magic, _)| start.starts_with(magic) || (magic[0].is_ascii_punctuation() && text.starts_with(magic)))
    {
        return (*name).to_owned();
    }
    let shown: Vec<String> = start.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("bytes that begin with {}", shown.join(" "))
}
