//! Weights from safetensors files, one or several with an index.
//!
//! A file is the length of a header in 8 bytes (little endian), a header of JSON (`{"name": {"dtype", "shape", "data_offsets"}}`), and the data that
//! the offsets count in. Files are mapped, so that weights go from the page cache to the device.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::config::Config;
use crate::error::Error;
use crate::files;
use crate::random::f16_of;
use crate::weights::tensors;

/// The largest header of the format.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Numbers that are handed on at once.
const PIECE: usize = 8 << 20;

/// Takes numbers of 16 bits, with their offset in numbers.
pub type Sink<'a> = dyn FnMut(usize, &[u8]) -> Result<(), Error> + 'a;

/// Files of one model at most.
const MAX_FILES: usize = 1000;

/// Bytes of an index at most: a hundred for each of half a million tensors.
const MAX_INDEX_BYTES: u64 = 50_000_000;

/// The types of numbers that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Bf16,
    F16,
    F32,
}

/// How numbers of 16 bits are handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halves {
    /// As kernels read them.
    F16,
    /// As they are in the file, to be converted where that is fast.
    Bf16,
}

#[derive(Clone, Debug)]
struct Entry {
    file: usize,
    number: Number,
    shape: Vec<usize>,
    /// Bytes of the file.
    range: std::ops::Range<usize>,
}

/// All tensors of a folder.
pub struct Tensors {
    folder: PathBuf,
    files: Vec<Mmap>,
    entries: BTreeMap<String, Entry>,
    /// Tensors of other types, which matter only if asked for.
    strange: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Header {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

/// Tensors by name. What else a header holds is passed over without being kept.
struct Headers(Vec<(String, Header)>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = Headers;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
                let mut found = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    let header = map.next_value().map_err(|error| A::Error::custom(format!("{name}: {error}")))?;
                    found.push((name, header));
                }
                Ok(Headers(found))
            }
        }

        from.deserialize_map(Names)
    }
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Tensors {
    /// Opens `model.safetensors`, or the files that `model.safetensors.index.json` names.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let mut found = Self { folder: folder.to_owned(), files: Vec::new(), entries: BTreeMap::new(), strange: BTreeMap::new() };
        let index = folder.join("model.safetensors.index.json");
        let single = folder.join("model.safetensors");
        if index.exists() {
            let text = files::text(&index, MAX_INDEX_BYTES)?;
            let parsed: Index =
                serde_json::from_str(&text).map_err(|error| Error::content(&index, format!("no index of weights: {error}")))?;
            let mut names: Vec<&String> = parsed.weight_map.values().collect();
            names.sort();
            names.dedup();
            if names.is_empty() {
                return Err(Error::content(&index, "its weight_map names no files"));
            }
            if names.len() > MAX_FILES {
                return Err(Error::content(&index, format!("{} files, at most {MAX_FILES} are read", names.len())));
            }
            for name in names {
                // A name, not a path: an index of somebody else's must not reach out of its folder.
                if name.is_empty() || name.contains(['/', '\\']) || name == ".." {
                    return Err(Error::content(&index, format!("`{name}` is no name of a file")));
                }
                found.add(&folder.join(name))?;
            }
        } else if single.exists() {
            found.add(&single)?;
        } else {
            let what = "holds neither model.safetensors nor model.safetensors.index.json";
            return Err(Error::NotFound(format!("{} {what}", folder.display())));
        }
        Ok(found)
    }

    fn add(&mut self, path: &Path) -> Result<(), Error> {
        let bad = |what: String| Error::content(path, format!("no safetensors file: {what}"));
        let file = files::open(path)?;
        // SAFETY: the file is only read. If another program cuts it short meanwhile, this one ends with a bus error, as all that map files do.
        let data = unsafe { Mmap::map(&file) }.map_err(|cause| Error::file(path, cause))?;
        let length = data.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(|| bad("it has no header".to_owned()))?;
        let room = data.len() as u64 - 8;
        if length > MAX_HEADER_BYTES || length > room {
            return Err(bad(format!("its header has {length} bytes, the file {}", data.len())));
        }
        let begin = 8 + length as usize;
        let Headers(parsed) =
            serde_json::from_slice(&data[8..begin]).map_err(|error| bad(format!("its header does not describe tensors: {error}")))?;
        for (name, header) in parsed {
            let (number, bytes) = match header.dtype.as_str() {
                "BF16" => (Number::Bf16, 2),
                "F16" => (Number::F16, 2),
                "F32" => (Number::F32, 4),
                other => {
                    self.strange.insert(name, other.to_owned());
                    continue;
                }
            };
            let [from, to] = header.data_offsets;
            let count =
                header.shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size)).and_then(|count| count.checked_mul(bytes));
            let (start, end) = (begin.checked_add(from), begin.checked_add(to));
            match (start, end, count) {
                (Some(start), Some(end), Some(count)) if start <= end && end <= data.len() && end - start == count => {
                    let entry = Entry { file: self.files.len(), number, shape: header.shape, range: start..end };
                    self.entries.insert(name, entry);
                }
                _ => return Err(bad(format!("{name}: {from}..{to} does not hold a shape of {:?}", header.shape))),
            }
        }
        self.files.push(data);
        Ok(())
    }

    /// Whether everything is there that a model needs, in its shape.
    pub fn check(&self, config: &Config) -> Result<(), Error> {
        tensors(config).iter().try_for_each(|tensor| self.entry(&tensor.name, &tensor.shape).map(drop))
    }

    fn entry(&self, name: &str, shape: &[usize]) -> Result<&Entry, Error> {
        let entry = self.entries.get(name).ok_or_else(|| self.missing(name, shape))?;
        if entry.shape != shape {
            let (has, folder) = (&entry.shape, self.folder.display());
            return Err(Error::Weights(format!("{name} of {folder} has the shape {has:?}, its config.json asks for {shape:?}")));
        }
        Ok(entry)
    }

    /// Hands the numbers of a tensor on piece by piece, each with its offset in numbers, and says what they are.
    pub fn read(&self, name: &str, shape: &[usize], sink: &mut Sink<'_>) -> Result<Halves, Error> {
        let entry = self.entry(name, shape)?;
        let data = self.files.get(entry.file).and_then(|file| file.get(entry.range.clone())).unwrap_or_default();
        let whole = |sink: &mut Sink<'_>| data.chunks(PIECE * 2).enumerate().try_for_each(|(piece, chunk)| sink(piece * PIECE, chunk));
        match entry.number {
            Number::Bf16 => whole(sink).map(|()| Halves::Bf16),
            Number::F16 => whole(sink).map(|()| Halves::F16),
            Number::F32 => {
                let mut made = Vec::new();
                for (piece, chunk) in data.chunks(PIECE * 4).enumerate() {
                    made.clear();
                    let value = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap_or_default());
                    made.extend(chunk.chunks_exact(4).flat_map(|bytes| f16_of(value(bytes)).to_le_bytes()));
                    sink(piece * PIECE, &made)?;
                }
                Ok(Halves::F16)
            }
        }
    }

    fn missing(&self, name: &str, shape: &[usize]) -> Error {
        if let Some(number) = self.strange.get(name) {
            let folder = self.folder.display();
            return Error::Weights(format!("{name} of {folder} holds numbers of type {number}; BF16, F16 and F32 are read"));
        }
        Error::Weights(format!("{name} of shape {shape:?} is not in {}", self.folder.display()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::random::f32_of_f16;

    /// A file with these tensors: name, type, shape, data.
    pub(crate) fn file(tensors: &[(&str, &str, &[usize], Vec<u8>)]) -> Vec<u8> {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, number, shape, bytes) in tensors {
            let offsets = [data.len(), data.len() + bytes.len()];
            header.insert((*name).to_owned(), serde_json::json!({"dtype": number, "shape": shape, "data_offsets": offsets}));
            data.extend(bytes);
        }
        header.insert("__metadata__".to_owned(), serde_json::json!({"format": "pt"}));
        let header = serde_json::to_vec(&header).unwrap();
        [(header.len() as u64).to_le_bytes().to_vec(), header, data].concat()
    }

    fn numbers(tensors: &Tensors, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let mut found: Vec<u16> = Vec::new();
        let number = tensors.read(name, shape, &mut |offset, bytes| {
            assert_eq!(offset, found.len());
            found.extend(bytes.chunks_exact(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]])));
            Ok(())
        })?;
        let value = |bits: &u16| if number == Halves::F16 { f32_of_f16(*bits) } else { f32::from_bits(u32::from(*bits) << 16) };
        Ok(found.iter().map(value).collect())
    }

    #[test]
    fn numbers_of_three_types_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let single: Vec<u8> = [1.5f32, -2.0, 1.0 + 1.0 / 2048.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let halves: Vec<u8> = [0x3C00u16, 0xC000, 0x0001].iter().flat_map(|bits| bits.to_le_bytes()).collect();
        let content = file(&[
            ("a", "BF16", &[2, 1], vec![0x80, 0x3F, 0, 0xC0]),
            ("b", "F32", &[3], single),
            ("c", "F16", &[3], halves),
            ("d", "I8", &[1], vec![0]),
        ]);
        std::fs::write(folder.path().join("model.safetensors"), content).unwrap();
        let tensors = Tensors::open(folder.path()).unwrap();
        assert_eq!(numbers(&tensors, "a", &[2, 1]).unwrap(), [1.0, -2.0]);
        assert_eq!(numbers(&tensors, "b", &[3]).unwrap(), [1.5, -2.0, 1.0]);
        assert_eq!(numbers(&tensors, "c", &[3]).unwrap(), [1.0, -2.0, 2f32.powi(-24)]);
        let said = |name: &str, shape: &[usize]| numbers(&tensors, name, shape).unwrap_err().to_string();
        assert!(said("a", &[1, 2]).contains("[2, 1]") && said("a", &[1, 2]).contains("[1, 2]"));
        assert!(said("model.norm.weight", &[64]).contains("model.norm.weight of shape [64] is not in"));
        assert!(said("d", &[1]).contains("I8"));
    }

    #[test]
    fn an_index_names_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("one.safetensors"), file(&[("a", "BF16", &[1], vec![0x80, 0x3F])])).unwrap();
        std::fs::write(path("two.safetensors"), file(&[("b", "BF16", &[1], vec![0, 0x40])])).unwrap();
        let index = |text: &str| std::fs::write(path("model.safetensors.index.json"), text).unwrap();
        index(r#"{"metadata": {}, "weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}"#);
        let tensors = Tensors::open(folder.path()).unwrap();
        assert_eq!((numbers(&tensors, "a", &[1]).unwrap(), numbers(&tensors, "b", &[1]).unwrap()), (vec![1.0], vec![2.0]));
        index(r#"{"weight_map": {"a": "../one.safetensors"}}"#);
        assert!(Tensors::open(folder.path()).err().unwrap().to_string().contains("no name of a file"));
        index(r#"{"weight_map": {"a": "gone.safetensors"}}"#);
        assert!(Tensors::open(folder.path()).err().unwrap().to_string().contains("gone.safetensors"));
        for (text, said) in
            [(r#"{"weight_map": {}}"#, "names no files"), (r#"{"weight_map": {"a": ""}}"#, "no name of a file"), ("{}", "no index")]
        {
            index(text);
            assert!(Tensors::open(folder.path()).err().unwrap().to_string().contains(said), "{text}");
        }
        index(r#"{"weight_map": {"a": "folder.safetensors"}}"#);
        std::fs::create_dir(path("folder.safetensors")).unwrap();
        assert!(Tensors::open(folder.path()).err().unwrap().to_string().contains("folder.safetensors: it is no regular file"));
    }

    /// A model's tensors, all zero, one of them changed.
    fn changed(config: &Config, change: impl Fn(&str) -> Option<(&'static str, Vec<usize>)>) -> Result<(), Error> {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<(String, &str, Vec<usize>)> = tensors(config)
            .into_iter()
            .filter_map(|tensor| match change(&tensor.name) {
                None => Some((tensor.name, "BF16", tensor.shape)),
                Some(("", _)) => None,
                Some((number, shape)) => Some((tensor.name, number, shape)),
            })
            .collect();
        let content: Vec<(&str, &str, &[usize], Vec<u8>)> = all
            .iter()
            .map(|(name, number, shape)| {
                let bytes = shape.iter().product::<usize>() * if *number == "BF16" { 2 } else { 1 };
                (name.as_str(), *number, shape.as_slice(), vec![0; bytes])
            })
            .collect();
        std::fs::write(folder.path().join("model.safetensors"), file(&content)).unwrap();
        Tensors::open(folder.path()).unwrap().check(config)
    }

    #[test]
    fn what_a_model_lacks_is_said() {
        let config = crate::config::tests::tiny();
        changed(&config, |_| None).unwrap();
        let said = |part: &'static str, number: &'static str, shape: &[usize]| {
            let error = changed(&config, |name| (name == part).then(|| (number, shape.to_vec()))).unwrap_err();
            assert_eq!(error.exit_code(), 3);
            error.to_string()
        };
        assert!(said("model.norm.weight", "", &[]).contains("model.norm.weight of shape [64] is not in"));
        let turned = said("model.layers.1.mlp.down_proj.weight", "BF16", &[96, 64]);
        assert!(turned.contains("down_proj") && turned.contains("[96, 64]") && turned.contains("[64, 96]"), "{turned}");
        let eighths = said("model.layers.0.self_attn.q_proj.weight", "F8_E4M3", &[512, 64]);
        assert!(eighths.contains("q_proj") && eighths.contains("F8_E4M3"), "{eighths}");
    }

    #[test]
    fn damaged_files_are_said() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Tensors::open(folder.path()).err().unwrap().to_string().contains("holds neither"));
        let whole = file(&[("a", "BF16", &[4], vec![0; 8])]);
        let mut long_header = whole.clone();
        long_header[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        let wrong_shape = file(&[("a", "BF16", &[usize::MAX, 3], vec![0; 8])]);
        for damaged in
            [&whole[..0], &whole[..4], &whole[..20], &whole[..whole.len() - 1], &long_header[..], &wrong_shape[..], b"\x02\0\0\0\0\0\0\0{["]
        {
            std::fs::write(folder.path().join("model.safetensors"), damaged).unwrap();
            assert!(Tensors::open(folder.path()).err().unwrap().to_string().contains("no safetensors file"), "{damaged:?}");
        }
    }
}
