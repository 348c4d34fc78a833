//! Where in the program's own ranges a kernel was launched.

use std::collections::HashMap;

use crate::container::wire::{Field, Fields, Malformed};

/// One NVTX range that was open when the result was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvtxRange {
    /// Its name.
    pub name: String,
    /// The domain it belongs to, if that is not the default one.
    pub domain: Option<String>,
}

/// The ranges that were open, outermost first: those of the launching thread, then those started and ended by number.
pub(crate) fn decode(message: &[u8], thread: Option<u64>) -> Result<Vec<NvtxRange>, Malformed> {
    let mut domains: HashMap<u64, String> = HashMap::new();
    let (mut pushed, mut started) = (Vec::new(), Vec::new());
    for field in Fields::of(message) {
        match field? {
            (1, Field::Bytes(domain)) => {
                let (id, name) = decode_domain(domain)?;
                domains.entry(id).or_insert(name);
            }
            (2, Field::Bytes(stack)) => decode_thread(stack, thread, &mut pushed)?,
            (3, Field::Bytes(domain)) => decode_started(domain, &mut started)?,
            _ => {}
        }
    }
    let name_of = |id: u64| {
        let domain = domains.get(&id).filter(|name| id != 0 && !name.is_empty());
        domain.cloned()
    };
    Ok(pushed.into_iter().chain(started).map(|(domain, name)| NvtxRange { name, domain: name_of(domain) }).collect())
}

fn decode_domain(message: &[u8]) -> Result<(u64, String), Malformed> {
    let (mut id, mut name) = (0, String::new());
    for field in Fields::of(message) {
        match field? {
            (1, Field::Varint(number)) => id = number,
            (2, Field::Bytes(text)) => name = String::from_utf8_lossy(text).into_owned(),
            _ => {}
        }
    }
    Ok((id, name))
}

/// The stack of one thread: a list a domain. Other threads than the launching one are left out.
fn decode_thread(message: &[u8], thread: Option<u64>, ranges: &mut Vec<(u64, String)>) -> Result<(), Malformed> {
    let mut found = Vec::new();
    let mut is_other = false;
    for field in Fields::of(message) {
        match field? {
            (1, Field::Varint(id)) => is_other = thread.is_some_and(|thread| thread != id),
            (2, Field::Bytes(domain)) => decode_ranges(domain, 3, 1, &mut found)?,
            _ => {}
        }
    }
    if !is_other {
        ranges.append(&mut found);
    }
    Ok(())
}

fn decode_started(message: &[u8], ranges: &mut Vec<(u64, String)>) -> Result<(), Malformed> {
    decode_ranges(message, 3, 2, ranges)
}

/// The ranges of one domain: field `list` holds them, field `name` of each its name.
fn decode_ranges(message: &[u8], list: u32, name: u32, ranges: &mut Vec<(u64, String)>) -> Result<(), Malformed> {
    let (mut domain, first) = (0, ranges.len());
    for field in Fields::of(message) {
        match field? {
            (1, Field::Varint(id)) => domain = id,
            (number, Field::Bytes(range)) if number == list => {
                for part in Fields::of(range) {
                    if let (number, Field::Bytes(text)) = part?
                        && number == name
                    {
                        ranges.push((0, String::from_utf8_lossy(text).into_owned()));
                    }
                }
            }
            _ => {}
        }
    }
    for (of, _) in &mut ranges[first..] {
        *of = domain;
    }
    Ok(())
}
