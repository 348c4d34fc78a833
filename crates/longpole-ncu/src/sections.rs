//! The sections that were collected, and ncu's own labels of the metrics in their headers.

use crate::container::wire::{Field, Fields, Malformed};

/// One section of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its stable name, e.g. `SpeedOfLight`: what `--section` takes.
    pub id: String,
    /// What ncu calls it on screen.
    pub title: String,
    /// The metrics of its header, as (metric, label).
    pub labels: Vec<(String, String)>,
}

pub(crate) fn decode(message: &[u8]) -> Result<Section, Malformed> {
    let mut section = Section { id: String::new(), title: String::new(), labels: Vec::new() };
    for field in Fields::of(message) {
        match field? {
            (1, Field::Bytes(id)) => section.id = text(id),
            (2, Field::Bytes(title)) => section.title = text(title),
            (4, Field::Bytes(header)) => {
                for metric in Fields::of(header) {
                    if let (2, Field::Bytes(metric)) = metric? {
                        section.labels.push(decode_label(metric)?);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(section)
}

fn decode_label(message: &[u8]) -> Result<(String, String), Malformed> {
    let (mut name, mut label) = (String::new(), String::new());
    for field in Fields::of(message) {
        match field? {
            (1, Field::Bytes(bytes)) => name = text(bytes),
            (2, Field::Bytes(bytes)) => label = text(bytes),
            _ => {}
        }
    }
    Ok((name, label))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
