//! One profiled thing, decoded as far as it was asked for.

use std::sync::Arc;

use crate::container::wire::{Field, Fields, Malformed};
use crate::container::{EntryKind, Names};
use crate::metrics::{self, DecodeProblem, Metrics};
use crate::nvtx::{self, NvtxRange};
use crate::rules::{self, Rule};
use crate::sections::{self, Section};

/// Most metrics and instances of one result: a thousand times those of the largest real one, and a bound on what a few bytes of a
/// hostile one can become in memory.
const MOST_VALUES: usize = 1 << 23;

/// Most bytes of rules, sections and ranges of one result; real ones have a tenth of a megabyte.
const MOST_WORDS: usize = 16 << 20;

/// Most references of one result to source data.
const MOST_SOURCES: usize = 1 << 16;

/// What of a result is wanted; the rest is skipped, and costs next to nothing.
///
/// A selection belongs to the report it was made for.
#[derive(Clone, Debug)]
pub struct Selection {
    /// By number of the name: is the value wanted.
    values: Vec<bool>,
    /// By number of the name: are the instances wanted.
    instances: Vec<bool>,
    rules: bool,
    sections: bool,
    nvtx: bool,
    names: Arc<Names>,
}

impl Selection {
    pub(crate) fn none(names: &Arc<Names>) -> Self {
        let count = names.len();
        Self {
            values: vec![false; count],
            instances: vec![false; count],
            rules: false,
            sections: false,
            nvtx: false,
            names: Arc::clone(names),
        }
    }

    /// Adds the values of the metrics whose name passes.
    #[must_use]
    pub fn values(mut self, passes: impl Fn(&str) -> bool) -> Self {
        for (number, wanted) in self.values.iter_mut().enumerate() {
            *wanted |= passes(self.names.text(number as u32));
        }
        self
    }

    /// Adds the instances of the metrics whose name passes.
    #[must_use]
    pub fn instances(mut self, passes: impl Fn(&str) -> bool) -> Self {
        for (number, wanted) in self.instances.iter_mut().enumerate() {
            *wanted |= passes(self.names.text(number as u32));
        }
        self
    }

    /// Adds what ncu's rules said.
    #[must_use]
    pub const fn rules(mut self) -> Self {
        self.rules = true;
        self
    }

    /// Adds which sections were collected, with their labels.
    #[must_use]
    pub const fn sections(mut self) -> Self {
        self.sections = true;
        self
    }

    /// Adds the NVTX ranges around the launch.
    #[must_use]
    pub const fn nvtx(mut self) -> Self {
        self.nvtx = true;
        self
    }

    /// What is wanted of a result that was read whole.
    pub(crate) fn of_whole(&self, result: &ProfiledResult) -> ProfiledResult {
        ProfiledResult {
            metrics: result.metrics.filtered(|name| self.of(name).0),
            rules: if self.rules { result.rules.clone() } else { Vec::new() },
            sections: if self.sections { result.sections.clone() } else { Vec::new() },
            nvtx: if self.nvtx { result.nvtx.clone() } else { Vec::new() },
            function: result.function.clone(),
            mangled: result.mangled.clone(),
            name: result.name.clone(),
            sources: result.sources.clone(),
            ..*result
        }
    }

    fn of(&self, name: u32) -> (bool, bool) {
        let at = name as usize;
        (self.values.get(at).copied().unwrap_or(false), self.instances.get(at).copied().unwrap_or(false))
    }
}

/// One result: a kernel, a range, a graph or a command list.
#[derive(Clone, Debug)]
pub struct ProfiledResult {
    /// Its place in the report, from 0: ncu's "ID".
    pub id: usize,
    /// What was profiled.
    pub kind: EntryKind,
    /// Index into [`Report::processes`](crate::Report::processes).
    pub process: Option<usize>,
    /// The kernel's name without parameters and templates.
    pub function: Option<String>,
    /// The kernel's name as in the cubin.
    pub mangled: Option<String>,
    /// The kernel's whole name. For ranges and graphs their kind, as in ncu.
    pub name: String,
    /// Blocks in x, y, z.
    pub grid: Option<[u64; 3]>,
    /// Threads of a block in x, y, z.
    pub block: Option<[u64; 3]>,
    /// The launching thread.
    pub thread: Option<u64>,
    /// The context.
    pub context: Option<u64>,
    /// The stream.
    pub stream: Option<u64>,
    /// Were the clocks locked while it ran.
    pub clocks_locked: Option<bool>,
    /// References to the source data it was built from.
    pub sources: Vec<u64>,
    /// The metrics that were asked for.
    pub metrics: Metrics,
    /// The rules, those that did not fire included (they have no messages), if asked for.
    pub rules: Vec<Rule>,
    /// The sections, if asked for.
    pub sections: Vec<Section>,
    /// The NVTX ranges around its launch, outermost first, if asked for.
    pub nvtx: Vec<NvtxRange>,
}

/// What went wrong inside one result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Parts that are not messages.
    pub(crate) malformed: u64,
    /// Metrics without a name.
    pub(crate) unnamed: u64,
}

/// What tells the four layouts of a result apart: field numbers.
struct Layout {
    metrics: u32,
    sections: u32,
    rules: u32,
    nvtx: u32,
    context: u32,
    stream: Option<u32>,
    clock: u32,
    sources: u32,
    display_name: Option<u32>,
}

/// Field numbers are facts of the documented format (see [`container`](crate::container)); those of a range's and a graph's
/// rules are not in the public description and were seen in reports of 2025.3.
const fn layout(kind: EntryKind) -> Layout {
    match kind {
        EntryKind::Kernel => Layout {
            metrics: 13,
            sections: 17,
            rules: 19,
            nvtx: 21,
            context: 22,
            stream: Some(23),
            clock: 25,
            sources: 15,
            display_name: None,
        },
        EntryKind::Range => {
            Layout { metrics: 4, sections: 7, rules: 20, nvtx: 10, context: 11, stream: None, clock: 12, sources: 15, display_name: None }
        }
        EntryKind::CommandList => Layout {
            metrics: 4,
            sections: 7,
            rules: 21,
            nvtx: 10,
            context: 11,
            stream: Some(12),
            clock: 13,
            sources: 17,
            display_name: Some(18),
        },
        EntryKind::Graph => Layout {
            metrics: 4,
            sections: 7,
            rules: 22,
            nvtx: 10,
            context: 11,
            stream: Some(12),
            clock: 13,
            sources: 17,
            display_name: None,
        },
    }
}

/// Decodes what is wanted of one result. Damaged parts are counted and left out; the rest stays.
pub(crate) fn decode(id: usize, kind: EntryKind, process: Option<usize>, message: &[u8], wanted: &Selection) -> (ProfiledResult, Damage) {
    let layout = layout(kind);
    let mut damage = Damage::default();
    let mut rows = Vec::new();
    let mut nvtx_state = None;
    let (mut room, mut words) = (MOST_VALUES, MOST_WORDS);
    let mut result = ProfiledResult {
        id,
        kind,
        process,
        function: None,
        mangled: None,
        name: String::new(),
        grid: None,
        block: None,
        thread: None,
        context: None,
        stream: None,
        clocks_locked: None,
        sources: Vec::new(),
        metrics: Metrics::new(Arc::clone(&wanted.names), Vec::new()),
        rules: Vec::new(),
        sections: Vec::new(),
        nvtx: Vec::new(),
    };
    for field in Fields::of(message) {
        let Ok((number, field)) = field else {
            damage.malformed += 1;
            break;
        };
        if let Field::Bytes(bytes) = field
            && [layout.rules, layout.sections, layout.nvtx].contains(&number)
        {
            // An empty message takes memory as well.
            let Some(left) = words.checked_sub(bytes.len() + 16) else {
                damage.malformed += 1;
                continue;
            };
            words = left;
        }
        let outcome = match field {
            Field::Bytes(bytes) if number == layout.metrics => {
                match metrics::decode(bytes, &wanted.names, &mut room, |name| wanted.of(name)) {
                    Ok(Some(_)) if room == 0 => Err(Malformed),
                    Ok(metric) => {
                        room -= usize::from(metric.is_some());
                        rows.extend(metric);
                        Ok(())
                    }
                    Err(DecodeProblem::Unnamed) => {
                        damage.unnamed += 1;
                        Ok(())
                    }
                    Err(DecodeProblem::Malformed) => Err(Malformed),
                }
            }
            Field::Bytes(bytes) if number == layout.rules && wanted.rules => rules::decode(bytes).map(|rule| result.rules.push(rule)),
            Field::Bytes(bytes) if number == layout.sections && wanted.sections => {
                sections::decode(bytes).map(|section| result.sections.push(section))
            }
            Field::Bytes(bytes) if number == layout.nvtx && wanted.nvtx => {
                nvtx_state = Some(bytes);
                Ok(())
            }
            Field::Bytes(bytes) if number == layout.clock => locked(bytes).map(|locked| result.clocks_locked = locked),
            Field::Bytes(bytes) if number == layout.sources => references(kind, bytes, &mut result.sources),
            Field::Varint(reference) if number == layout.sources => add_reference(reference, &mut result.sources),
            Field::Varint(thread) if number == 1 => {
                result.thread = Some(thread);
                Ok(())
            }
            Field::Varint(context) if number == layout.context => {
                result.context = Some(context);
                Ok(())
            }
            Field::Varint(stream) if Some(number) == layout.stream => {
                result.stream = Some(stream);
                Ok(())
            }
            Field::Bytes(name) if Some(number) == layout.display_name => {
                result.name = text(name);
                Ok(())
            }
            Field::Bytes(bytes) if kind == EntryKind::Kernel => match number {
                5 => {
                    result.mangled = Some(text(bytes));
                    Ok(())
                }
                6 => {
                    result.function = Some(text(bytes));
                    Ok(())
                }
                7 => {
                    result.name = text(bytes);
                    Ok(())
                }
                10 => dimensions(bytes).map(|grid| result.grid = Some(grid)),
                11 => dimensions(bytes).map(|block| result.block = Some(block)),
                _ => Ok(()),
            },
            _ => Ok(()),
        };
        damage.malformed += u64::from(outcome.is_err());
    }
    if let Some(state) = nvtx_state {
        match nvtx::decode(state, result.thread) {
            Ok(ranges) => result.nvtx = ranges,
            Err(Malformed) => damage.malformed += 1,
        }
    }
    result.metrics = Metrics::new(Arc::clone(&wanted.names), rows);
    if result.name.is_empty() {
        let fallback = || result.function.clone().or_else(|| result.mangled.clone());
        result.name = fallback().unwrap_or_else(|| kind.name().replace('_', " "));
    }
    (result, damage)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Sizes in x, y, z; one that is not written is 0 in protobuf, and no size is 0: it reads as 1.
fn dimensions(message: &[u8]) -> Result<[u64; 3], Malformed> {
    let mut sizes = [1; 3];
    for field in Fields::of(message) {
        if let (number @ 1..=3, Field::Varint(size)) = field? {
            sizes[number as usize - 1] = size;
        }
    }
    Ok(sizes)
}

/// Whether the clocks were locked when the result was measured.
fn locked(message: &[u8]) -> Result<Option<bool>, Malformed> {
    let mut locked = None;
    for field in Fields::of(message) {
        if let (2, Field::Varint(value)) = field? {
            locked = Some(value != 0);
        }
    }
    Ok(locked)
}

/// A kernel holds a message with one reference, the others a packed list of them.
fn references(kind: EntryKind, bytes: &[u8], found: &mut Vec<u64>) -> Result<(), Malformed> {
    if kind == EntryKind::Kernel {
        for field in Fields::of(bytes) {
            if let (1, Field::Varint(reference)) = field? {
                add_reference(reference, found)?;
            }
        }
        return Ok(());
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        add_reference(prost::encoding::decode_varint(&mut rest).map_err(|_| Malformed)?, found)?;
    }
    Ok(())
}

fn add_reference(reference: u64, found: &mut Vec<u64>) -> Result<(), Malformed> {
    if found.len() >= MOST_SOURCES {
        return Err(Malformed);
    }
    found.push(reference);
    Ok(())
}
