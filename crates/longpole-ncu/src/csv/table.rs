//! Rows become results.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use csv::ByteRecord;

use super::header::{Column, Header, is_header};
use super::numbers::{self, Decimals, Evidence};
use super::{cells, labels, text_of};
use crate::container::{EntryKind, Names, Process};
use crate::metrics::{Metric, Metrics, Value};
use crate::result::ProfiledResult;
use crate::rules::{Message, MessageKind, Rule, Scope};
use crate::sections::Section;
use crate::session::{Device, Session};
use crate::trouble::{TroubleCode, Troubles};
use crate::units::{self, Unit};

/// Bytes of rows that are kept back until it is clear what separates decimals.
const MOST_UNDECIDED: usize = 8 << 20;

/// Most values that are kept.
const MOST_VALUES: usize = 1 << 24;

/// Most sections of a result and most devices that are noted: real ones are twenty and eight, and they are searched one by one.
const MOST_LISTED: usize = 256;

/// What a whole input holds.
pub(super) struct Contents {
    pub(super) session: Session,
    pub(super) processes: Vec<Process>,
    pub(super) names: Arc<Names>,
    pub(super) results: Vec<ProfiledResult>,
    /// True if a table was of the details page.
    pub(super) has_details: bool,
}

/// Tables of one input, one after another: whoever puts outputs together has a header for each.
pub(super) struct Tables<'a> {
    troubles: &'a Troubles,
    /// Where in the input the first table starts.
    start: u64,
    header: Header,
    /// By column: what the units row of the raw page says. `None` for a unit that is not understood.
    units: Vec<Option<Unit>>,
    decimals: Decimals,
    names: Names,
    processes: Vec<Process>,
    process_numbers: HashMap<Process, usize>,
    devices: Vec<Device>,
    results: Vec<(ProfiledResult, Vec<Metric>)>,
    /// The results of this table by ID and process.
    known: HashMap<(u64, Option<usize>), usize>,
    values: usize,
    has_details: bool,
}

impl<'a> Tables<'a> {
    pub(super) fn new(troubles: &'a Troubles, start: u64) -> Self {
        Self {
            troubles,
            start,
            header: Header::default(),
            units: Vec::new(),
            decimals: Decimals::Point,
            names: Names::default(),
            processes: Vec::new(),
            process_numbers: HashMap::new(),
            devices: Vec::new(),
            results: Vec::new(),
            known: HashMap::new(),
            values: 0,
            has_details: false,
        }
    }

    /// Reads all rows. The first ones are looked at before they are read, for what separates decimals.
    pub(super) fn read(&mut self, input: impl Read) -> io::Result<()> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
        let mut undecided = Vec::new();
        let (mut evidence, mut bytes) = (Evidence::default(), 0);
        let mut row = ByteRecord::new();
        while bytes < MOST_UNDECIDED && reader.read_byte_record(&mut row)? {
            bytes += row.as_slice().len();
            for cell in row.iter().filter(|cell| cell.len() <= 64) {
                evidence.see(&String::from_utf8_lossy(cell));
            }
            undecided.push(std::mem::take(&mut row));
        }
        self.decimals = evidence.decimals();
        for row in &undecided {
            self.row(row);
        }
        drop(undecided);
        while reader.read_byte_record(&mut row)? && self.row(&row) {}
        Ok(())
    }

    /// Takes one row. False when enough was read.
    fn row(&mut self, row: &ByteRecord) -> bool {
        let place = self.start + row.position().map_or(0, csv::Position::byte);
        if self.values >= MOST_VALUES {
            self.troubles.add(TroubleCode::TooManyResults, Some(place), || Some(format!("more than {MOST_VALUES} values")));
            return false;
        }
        if is_header(row) {
            self.header = Header::of(row, &mut self.names);
            self.has_details |= self.header.is_details;
            self.units.clear();
            self.known.clear();
            return true;
        }
        if row.get(0).is_some_and(|cell| cell.starts_with(b"==")) {
            // ncu's own messages.
            return true;
        }
        let id = row.get(0).and_then(|cell| std::str::from_utf8(cell).ok()?.trim().parse::<u64>().ok());
        if self.header.fits(row) && id.is_none() && row.get(0) == Some(b"") && !self.header.is_details {
            self.units = row.iter().map(|cell| units::parse(&text_of(cell))).collect();
            return true;
        }
        match id.filter(|_| self.header.fits(row)) {
            Some(id) if self.header.is_details => self.details(id, row),
            Some(id) => {
                if self.units.is_empty() {
                    self.troubles
                        .add(TroubleCode::DamagedTableRow, Some(place), || Some("a row without the row of units above it".to_owned()));
                }
                self.raw(id, row);
            }
            None => self.troubles.add(TroubleCode::DamagedTableRow, Some(place), || {
                Some(format!("{} cells where {} are expected", row.len(), self.header.columns.len()))
            }),
        }
        true
    }

    fn cell<'r>(&self, row: &'r ByteRecord, column: Column) -> Option<&'r [u8]> {
        row.get(self.header.columns.iter().position(|known| *known == column)?)
    }

    fn text(&self, row: &ByteRecord, column: Column) -> Option<String> {
        self.cell(row, column).map(text_of).filter(|text| !matches!(text.as_str(), "" | "n/a"))
    }

    /// A row of the raw page: a result.
    fn raw(&mut self, id: u64, row: &ByteRecord) {
        // A row is a result, also where two outputs were put together without the second header.
        self.known.clear();
        let at = self.result(id, row);
        let mut metrics = Vec::new();
        for (number, (column, cell)) in self.header.columns.iter().zip(row).enumerate() {
            let Column::Metric(name) = *column else { continue };
            let base = units::of_metric(self.names.text(name));
            // What ncu scales cannot be read without its unit, and not in a unit of another kind. Everything else is printed as it is.
            let unit = match (self.units.get(number), base.filter(|base| is_scaled(base))) {
                (None, None) => Some(0),
                (None, Some(_)) => None,
                (Some(unit), base) => unit.as_ref().filter(|unit| base.is_none_or(|base| unit.base == base)).map(|unit| unit.exponent),
            };
            let text = String::from_utf8_lossy(cell);
            if let Some(value) = unit.and_then(|exponent| value(text.trim(), self.decimals, exponent)) {
                metrics.push(Metric { name, value: Some(value), instances: Vec::new(), is_series: false });
            }
        }
        self.values += metrics.len() + 1;
        self.device(row, &metrics);
        let (result, known) = &mut self.results[at];
        known.append(&mut metrics);
        let has = |name: &str| self.names.find(name).is_some_and(|number| known.iter().any(|metric| metric.name == number));
        if result.name == "graph" && has("launch__graph_contains_device_launch") {
            as_graph(result);
        }
    }

    /// A row of the details page: a metric, or a message of a rule.
    fn details(&mut self, id: u64, row: &ByteRecord) {
        let at = self.result(id, row);
        self.device(row, &[]);
        self.values += 1;
        let section = self.text(row, Column::SectionName).unwrap_or_default();
        self.section(at, &section);
        if let Some(rule) = self.text(row, Column::RuleName) {
            let section = labels::section(&section).map_or(section.clone(), |known| known.id.to_owned());
            let speedup = self.speedup(row);
            let kind = match self.text(row, Column::RuleType).as_deref() {
                Some("INF") => MessageKind::Information,
                Some("WRN") => MessageKind::Warning,
                Some("ERR") => MessageKind::Error,
                Some("OPT") => MessageKind::Optimization,
                _ => MessageKind::Plain,
            };
            let text = self.text(row, Column::RuleText).unwrap_or_default();
            let message = Message { title: String::new(), text, kind, speedup, focus: Vec::new() };
            let rules = &mut self.results[at].0.rules;
            match rules.last_mut().filter(|last| last.id == rule && last.section == section) {
                Some(last) => last.messages.push(message),
                // The page has no titles.
                None => rules.push(Rule { title: rule.clone(), id: rule, section, messages: vec![message] }),
            }
            return;
        }
        let Some(label) = self.text(row, Column::MetricName) else { return };
        // Metrics asked for by name are printed by name.
        let Some(metric) = labels::metric(&section, &label).or_else(|| label.contains("__").then_some(label.as_str())) else { return };
        let unit = units::parse(&self.text(row, Column::MetricUnit).unwrap_or_default());
        let printed = self.text(row, Column::MetricValue);
        // A label that stands for another metric on another device shows by its unit.
        let unit =
            unit.filter(|unit| units::of_metric(metric).is_none_or(|base| base == unit.base || (unit.base.is_empty() && !is_scaled(base))));
        if let Some(value) = unit.zip(printed).and_then(|(unit, printed)| value(&printed, self.decimals, unit.exponent)) {
            let name = self.names.intern(metric);
            self.results[at].1.push(Metric { name, value: Some(value), instances: Vec::new(), is_series: false });
        }
    }

    fn speedup(&self, row: &ByteRecord) -> Option<(Scope, f64)> {
        let scope = match self.text(row, Column::SpeedupScope)?.as_str() {
            "local" => Scope::Local,
            "global" => Scope::Global,
            _ => return None,
        };
        let percent = numbers::parse(&self.text(row, Column::Speedup)?, self.decimals, 0)?.number()?;
        Some((scope, percent))
    }

    /// Notes that a result has a section.
    fn section(&mut self, at: usize, title: &str) {
        let sections = &mut self.results[at].0.sections;
        let is_known = sections.last().is_some_and(|last| last.title == title) || sections.iter().any(|known| known.title == title);
        if !title.is_empty() && !is_known && sections.len() < MOST_LISTED {
            let id = labels::section(title).map_or(title, |section| section.id);
            sections.push(Section { id: id.to_owned(), title: title.to_owned(), labels: Vec::new() });
        }
    }

    /// The number of the result that a row is about; a new one is made.
    fn result(&mut self, id: u64, row: &ByteRecord) -> usize {
        let process = self.process(row);
        if let Some(&at) = self.known.get(&(id, process)) {
            return at;
        }
        let count = |column| self.text(row, column).and_then(|text| numbers::parse(&text, self.decimals, 0)?.count());
        let name = self.text(row, Column::KernelName).unwrap_or_default();
        let grid = self.text(row, Column::GridSize).and_then(|text| cells::dimensions(&text));
        let kind = match name.as_str() {
            // A table does not say what was profiled; ncu shows these words for want of a name.
            "range" if grid.is_none() => EntryKind::Range,
            _ => EntryKind::Kernel,
        };
        let nvtx = self.header.columns.iter().zip(row).filter(|(column, _)| **column == Column::Nvtx);
        let at = self.results.len();
        let mut result = ProfiledResult {
            id: at,
            kind,
            process,
            function: cells::function_of(&name).filter(|_| kind == EntryKind::Kernel),
            mangled: None,
            grid,
            block: self.text(row, Column::BlockSize).and_then(|text| cells::dimensions(&text)),
            thread: None,
            context: count(Column::Context),
            stream: count(Column::Stream),
            clocks_locked: None,
            sources: Vec::new(),
            metrics: Metrics::new(Arc::new(Names::default()), Vec::new()),
            rules: Vec::new(),
            sections: Vec::new(),
            nvtx: nvtx.flat_map(|(_, cell)| cells::nvtx_ranges(&text_of(cell))).collect(),
            name,
        };
        if result.name == "graph" && self.header.is_details {
            as_graph(&mut result);
        }
        self.results.push((result, Vec::new()));
        self.known.insert((id, process), at);
        at
    }

    fn process(&mut self, row: &ByteRecord) -> Option<usize> {
        let id = self.text(row, Column::ProcessId)?.parse().ok()?;
        let text = |column| self.text(row, column).unwrap_or_default();
        let process = Process { id, name: text(Column::ProcessName), host: text(Column::HostName) };
        let next = self.processes.len();
        let number = *self.process_numbers.entry(process.clone()).or_insert(next);
        if number == next {
            self.processes.push(process);
        }
        Some(number)
    }

    /// Notes what a row says of its device, once a device.
    fn device(&mut self, row: &ByteRecord, metrics: &[Metric]) {
        let Some(id) = self.text(row, Column::Device).and_then(|text| text.parse().ok()) else { return };
        if self.devices.len() >= MOST_LISTED || self.devices.iter().any(|device| device.id == id) {
            return;
        }
        let attribute = |metric: &Metric| {
            let name = self.names.text(metric.name).strip_prefix("device__attribute_")?;
            Some((name.to_owned(), metric.value.clone()?))
        };
        let mut attributes: Vec<(String, Value)> = metrics.iter().filter_map(attribute).collect();
        if attributes.is_empty()
            && let Some(capability) = self.text(row, Column::ComputeCapability)
            && let Some((major, minor)) = capability.split_once(['.', ','])
        {
            for (name, digits) in [("compute_capability_major", major), ("compute_capability_minor", minor)] {
                attributes.extend(digits.parse().ok().map(|number| (name.to_owned(), Value::Unsigned(number))));
            }
        }
        let name = attributes.iter().find(|(name, _)| name == "display_name").and_then(|(_, value)| value.text()).unwrap_or_default();
        self.devices.push(Device { id, name: name.to_owned(), attributes });
    }

    pub(super) fn finish(self) -> Contents {
        let names = Arc::new(self.names);
        let whole = |(mut result, metrics): (ProfiledResult, Vec<Metric>)| {
            result.metrics = Metrics::new(Arc::clone(&names), metrics);
            result
        };
        let results = self.results.into_iter().map(whole).collect();
        let session = Session { devices: self.devices, ..Session::default() };
        Contents { session, processes: self.processes, names, results, has_details: self.has_details }
    }
}

/// Does ncu print values of this base unit with prefixes?
fn is_scaled(base: &str) -> bool {
    base == "ns" || base == "Hz" || base.starts_with("byte") || base.ends_with("/s")
}

/// A graph has no sizes of its own; ncu prints those that its launch metrics have.
fn as_graph(result: &mut ProfiledResult) {
    result.kind = EntryKind::Graph;
    (result.function, result.grid, result.block) = (None, None, None);
}

/// What a cell holds; `None` for nothing.
fn value(text: &str, decimals: Decimals, exponent: i32) -> Option<Value> {
    if matches!(text, "" | "no data" | "n/a") {
        return None;
    }
    Some(numbers::parse(text, decimals, exponent).unwrap_or_else(|| Value::Text(text.to_owned())))
}
