//! The table of strings, looked up as rows need it: an export names each text by a number.

use std::borrow::Cow;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ProblemCode, Problems, StrId, Strings};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Statement};

use super::database::{Database, quoted};
use super::rows::Name;
use super::scan::{Scan, Values};
use super::tables;

/// Texts by number.
#[derive(Debug)]
pub(super) struct Names<'c> {
    /// Finds one text by its number, where the table is ordered by it.
    lookup: Option<Statement<'c>>,
    /// All texts, where it is not.
    texts: HashMap<i64, StrId, FixedState>,
    known: HashMap<i64, StrId, FixedState>,
    calls: HashMap<i64, StrId, FixedState>,
    inside: HashMap<(StrId, StrId), StrId, FixedState>,
}

impl<'c> Names<'c> {
    pub(super) fn new(database: &Database, connection: Option<&'c Connection>, strings: &mut Strings, problems: &mut Problems) -> Self {
        let (mut lookup, mut texts) = (None, HashMap::default());
        if let Some(table) = database.table(tables::STRINGS) {
            if let Some(key) = &table.key {
                let sql = format!("SELECT value FROM {} WHERE {} = ?1", quoted(&table.name), quoted(key));
                lookup = connection.and_then(|connection| connection.prepare(&sql).ok());
            } else {
                let mut found: Vec<(i64, Vec<u8>)> = Vec::new();
                let make = |found: &mut Vec<(i64, Vec<u8>)>, values: &mut Values<'_, '_>| {
                    if let Some(id) = values.int(0) {
                        found.extend(values.text(1).map(|text| (id, text.to_vec())));
                    }
                };
                Scan::new(database, table, &["id", "value"], None).run(1, problems, make, |rows| found.append(rows));
                for (id, text) in found {
                    // The first of a number counts.
                    texts.entry(id).or_insert_with(|| intern(strings, &text, problems));
                }
            }
        }
        Self { lookup, texts, known: HashMap::default(), calls: HashMap::default(), inside: HashMap::default() }
    }

    /// No texts yet: each is added before it is asked for.
    pub(super) fn empty() -> Self {
        let maps = (HashMap::default(), HashMap::default(), HashMap::default());
        Self { lookup: None, texts: HashMap::default(), known: maps.0, calls: maps.1, inside: maps.2 }
    }

    /// Adds the text of a number that has none.
    pub(super) fn add<'t>(
        &mut self,
        id: i64,
        text: impl FnOnce() -> Option<Cow<'t, [u8]>>,
        strings: &mut Strings,
        problems: &mut Problems,
    ) {
        if !self.known.contains_key(&id)
            && !self.texts.contains_key(&id)
            && let Some(text) = text()
        {
            self.texts.insert(id, intern(strings, &text, problems));
        }
    }

    /// The text of a number.
    pub(super) fn get(&mut self, id: i64, strings: &mut Strings, problems: &mut Problems) -> StrId {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let found = self.texts.get(&id).copied().or_else(|| {
            let mut rows = self.lookup.as_mut()?.query([id]).ok()?;
            match rows.next().ok()??.get_ref(0).ok()? {
                ValueRef::Text(text) | ValueRef::Blob(text) => Some(intern(strings, text, problems)),
                _ => None,
            }
        });
        let found = found.unwrap_or_else(|| {
            problems.add(ProblemCode::MissingName, None, || Some(format!("text {id}")));
            strings.intern(&format!("(text {id} is missing)"))
        });
        self.known.insert(id, found);
        found
    }

    /// The name of an API function.
    pub(super) fn call(&mut self, id: Option<i64>, strings: &mut Strings, problems: &mut Problems) -> StrId {
        let Some(id) = id else { return strings.intern("(unnamed call)") };
        if let Some(known) = self.calls.get(&id) {
            return *known;
        }
        let whole = self.get(id, strings, problems);
        let text = strings.get(whole).to_owned();
        let name = strings.intern(without_version(&text));
        self.calls.insert(id, name);
        name
    }

    /// The name of device work.
    pub(super) fn device(&mut self, name: Name, strings: &mut Strings, problems: &mut Problems) -> StrId {
        let text = match name {
            Name::Id(id) => return self.get(id, strings, problems),
            Name::Missing => Cow::Borrowed("(unnamed kernel)"),
            Name::Graph(None) => Cow::Borrowed("CUDA graph"),
            Name::Graph(Some(graph)) => Cow::Owned(format!("CUDA graph {graph}")),
            Name::Fill(None) => Cow::Borrowed("Memset"),
            Name::Fill(Some(kind)) => Cow::Owned(format!("Memset ({})", memory(kind))),
            Name::Copy(kind, from, to) => {
                let direction = match kind {
                    1 | 11 => " HtoD",
                    2 | 12 => " DtoH",
                    3 => " HtoA",
                    4 => " AtoH",
                    5 => " AtoA",
                    6 => " AtoD",
                    7 => " DtoA",
                    8 | 13 => " DtoD",
                    9 => " HtoH",
                    10 => " PtoP",
                    _ => "",
                };
                Cow::Owned(match from.zip(to) {
                    Some((from, to)) => format!("Memcpy{direction} ({} -> {})", memory(from), memory(to)),
                    None => format!("Memcpy{direction}"),
                })
            }
        };
        strings.intern(&text)
    }

    /// A name of a domain: `NCCL:ncclAllReduce`, as Nsight Systems writes it.
    pub(super) fn inside(&mut self, domain: StrId, name: StrId, strings: &mut Strings) -> StrId {
        *self.inside.entry((domain, name)).or_insert_with(|| {
            let text = format!("{}:{}", strings.get(domain), strings.get(name));
            strings.intern(&text)
        })
    }
}

/// A text of the file. Old exports hold bytes that are no UTF-8.
pub(super) fn intern(strings: &mut Strings, text: &[u8], problems: &mut Problems) -> StrId {
    let text = String::from_utf8_lossy(text);
    if matches!(text, Cow::Owned(_)) {
        problems.add(ProblemCode::BadUtf8, None, || Some(text.chars().take(80).collect()));
    }
    strings.intern(&text)
}

/// A function's name without the version of its interface (`cudaLaunchKernel_v7000`), as Kineto and `nsys stats` write it. Versions of
/// driver functions (`cuMemFree_v2`) are part of the name.
fn without_version(name: &str) -> &str {
    let digits = name.len() - name.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
    let name = if digits >= 4 { name[..name.len() - digits].strip_suffix("_v").unwrap_or(name) } else { name };
    ["_ptsz", "_ptds"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Kinds of memory, as `ENUM_CUDA_MEM_KIND` lists them.
fn memory(kind: i64) -> &'static str {
    match kind {
        0 => "Pageable",
        1 => "Pinned",
        2 | 5 => "Device",
        3 => "Array",
        4 | 6 => "Managed",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::without_version;

    #[test]
    fn versions_of_interfaces_are_cut() {
        assert_eq!(without_version("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(without_version("cudaStreamGetCaptureInfo_v2_v11030"), "cudaStreamGetCaptureInfo_v2");
        assert_eq!(without_version("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel");
        assert_eq!(without_version("cuMemFree_v2"), "cuMemFree_v2");
        assert_eq!(without_version("a1234"), "a1234");
        assert_eq!(without_version("é1234"), "é1234");
    }
}
