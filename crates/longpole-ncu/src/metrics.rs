//! The metrics of one result: a scalar, instances (per instruction, per opcode, over time), or both.

use std::fmt;
use std::sync::Arc;

use crate::container::Names;
use crate::container::wire::{Field, Fields, Malformed};

/// One value as the report stores it. Units are not stored: see [`units`](crate::units).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number of single precision.
    Float(f32),
    /// A number of double precision.
    Double(f64),
    /// A whole number.
    Unsigned(u64),
}

impl Value {
    /// The number, if it is one. NaN and infinities are not: nothing can be said with them.
    pub fn number(&self) -> Option<f64> {
        let number = match self {
            Self::Text(_) => return None,
            Self::Float(value) => f64::from(*value),
            Self::Double(value) => *value,
            Self::Unsigned(value) => *value as f64,
        };
        number.is_finite().then_some(number)
    }

    /// The number as a count. A fraction is not one.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Unsigned(value) => Some(*value),
            // Counters above 2^53 are not exact as doubles, and ncu stores them so all the same.
            Self::Double(value) if *value >= 0.0 && *value < 18_446_744_073_709_551_616.0 && value.fract() == 0.0 => Some(*value as u64),
            Self::Float(value) => Self::Double(f64::from(*value)).count(),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Reads one; `Ok(None)` for a message without a value, which means that there is none.
    pub(crate) fn decode(message: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut value = None;
        for field in Fields::of(message) {
            value = match field? {
                (1, Field::Bytes(text)) => Some(Self::Text(String::from_utf8_lossy(text).into_owned())),
                (2, Field::Fixed32(bits)) => Some(Self::Float(f32::from_bits(bits))),
                (3, Field::Fixed64(bits)) => Some(Self::Double(f64::from_bits(bits))),
                (4 | 5, Field::Varint(number)) => Some(Self::Unsigned(number)),
                _ => value,
            };
        }
        Ok(value)
    }
}

/// One of the values that a metric was broken down into.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// What it belongs to: an address, an opcode's mnemonic, a time stamp (ns), a place on an axis.
    pub id: Option<Value>,
    /// The value.
    pub value: Option<Value>,
}

/// One metric of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub(crate) name: u32,
    /// The value for the whole result. A metric may have instances and no such value; then there is none, not 0.
    pub value: Option<Value>,
    /// The breakdown, if it was asked for and there is one.
    pub instances: Vec<Instance>,
    /// True for a series over time; its ids are time stamps.
    pub is_series: bool,
}

/// The metrics of one result that were asked for.
#[derive(Clone)]
pub struct Metrics {
    pub(crate) names: Arc<Names>,
    /// Sorted by name number, each once.
    rows: Vec<Metric>,
}

impl fmt::Debug for Metrics {
    /// Only what is there, not the names of everything in the report.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(name, metric)| (name, (&metric.value, &metric.instances)))).finish()
    }
}

impl Metrics {
    /// Takes metrics in the order of the file. Of a metric given twice the last with a value counts, as in ncu.
    pub(crate) fn new(names: Arc<Names>, mut rows: Vec<Metric>) -> Self {
        rows.sort_by_key(|metric| metric.name);
        rows.dedup_by(|later, earlier| {
            let same = later.name == earlier.name;
            if same {
                if later.value.is_some() {
                    earlier.value = later.value.take();
                }
                if !later.instances.is_empty() {
                    earlier.instances = std::mem::take(&mut later.instances);
                    earlier.is_series = later.is_series;
                }
            }
            same
        });
        Self { names, rows }
    }

    /// The metrics whose name's number passes.
    pub(crate) fn filtered(&self, passes: impl Fn(u32) -> bool) -> Self {
        Self { names: Arc::clone(&self.names), rows: self.rows.iter().filter(|metric| passes(metric.name)).cloned().collect() }
    }

    /// The metric of this name.
    pub fn get(&self, name: &str) -> Option<&Metric> {
        let number = self.names.find(name)?;
        let at = self.rows.binary_search_by_key(&number, |metric| metric.name).ok()?;
        self.rows.get(at)
    }

    /// The number of the metric of this name.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.value.as_ref()?.number()
    }

    /// The count of the metric of this name.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.get(name)?.value.as_ref()?.count()
    }

    /// The number of the metric of this name as a whole one, rounded: time in nanoseconds or a size in bytes may come out of a
    /// conversion of units a hair beside it. A negative number is none.
    pub fn whole(&self, name: &str) -> Option<u64> {
        let value = self.get(name)?.value.as_ref()?;
        let rounded = || value.number().map(f64::round).filter(|number| *number >= 0.0 && *number < 18_446_744_073_709_551_616.0);
        value.count().or_else(|| rounded().map(|number| number as u64))
    }

    /// The text of the metric of this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.value.as_ref()?.text()
    }

    /// The first number that is there under one of these names: what one generation of GPUs calls differently from another.
    pub fn first_number(&self, names: &[&str]) -> Option<f64> {
        names.iter().find_map(|name| self.number(name))
    }

    /// All metrics with their names, sorted by the order in which the file lists the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Metric)> {
        self.rows.iter().map(|metric| (self.names.text(metric.name), metric))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Reads one metric. `wanted` says of a name's number whether its value and whether its instances are wanted; `Ok(None)`
/// for one that is not wanted. `room` is how many more instances the result may have.
pub(crate) fn decode(
    message: &[u8],
    names: &Names,
    room: &mut usize,
    wanted: impl Fn(u32) -> (bool, bool),
) -> Result<Option<Metric>, DecodeProblem> {
    let (mut name, mut values, mut instances, mut is_series) = (None, None, Vec::new(), false);
    let mut want = None;
    for field in Fields::of(message) {
        match field.map_err(|Malformed| DecodeProblem::Malformed)? {
            (1, Field::Varint(number)) => {
                let canonical = names.canonical(number).ok_or(DecodeProblem::Unnamed)?;
                let (value, breakdown) = wanted(canonical);
                // The name comes first, so that the many metrics nobody asked for end here.
                if !value && !breakdown {
                    return Ok(None);
                }
                (name, want) = (Some(canonical), Some((value, breakdown)));
            }
            (2, Field::Bytes(value)) => values = Some(value),
            (3, Field::Bytes(instance)) if want.is_none_or(|(_, breakdown)| breakdown) => {
                *room = room.checked_sub(1).ok_or(DecodeProblem::Malformed)?;
                instances.push(decode_instance(instance)?);
            }
            (4, Field::Varint(category)) => is_series = category == 1,
            _ => {}
        }
    }
    let Some(name) = name else { return Err(DecodeProblem::Unnamed) };
    let value = match values {
        Some(value) if want.is_some_and(|(value, _)| value) => Value::decode(value).map_err(|Malformed| DecodeProblem::Malformed)?,
        _ => None,
    };
    if want.is_some_and(|(_, breakdown)| !breakdown) {
        instances = Vec::new();
    }
    Ok(Some(Metric { name, value, instances, is_series }))
}

/// Why a metric was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeProblem {
    /// Its bytes are not a message.
    Malformed,
    /// The table of names does not have its number.
    Unnamed,
}

fn decode_instance(message: &[u8]) -> Result<Instance, DecodeProblem> {
    let mut instance = Instance { id: None, value: None };
    for field in Fields::of(message) {
        match field.map_err(|Malformed| DecodeProblem::Malformed)? {
            (1, Field::Bytes(id)) => instance.id = Value::decode(id).map_err(|Malformed| DecodeProblem::Malformed)?,
            (2, Field::Bytes(value)) => instance.value = Value::decode(value).map_err(|Malformed| DecodeProblem::Malformed)?,
            _ => {}
        }
    }
    Ok(instance)
}
