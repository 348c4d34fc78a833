//! Where the bytes of a report are: in its file, or unpacked in memory or in a scratch file.
//!
//! A plain report is read in place with positioned reads, never mapped: a file that shrinks while it is read is then an error
//! and not a signal. A compressed one has to be unpacked once, since names may stand behind the results that use them.

use std::fs::File;
use std::io::{self, Read, Write};
#[cfg(not(unix))]
use std::sync::Mutex;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Unpacked bytes that are kept in memory; more go to a scratch file.
const MOST_IN_MEMORY: usize = 64 << 20;

/// Unpacked bytes at which unpacking stops. Real reports are a hundredth of it; a small file that claims more is an attack on the disk.
const MOST_UNPACKED: u64 = 64 << 30;

/// Largest window of a compressed frame, as a power of two: everything that `zstd --ultra --long=31` writes.
const LARGEST_WINDOW_LOG: u32 = 31;

/// Bytes at positions, from any thread.
#[derive(Debug)]
pub(crate) enum Storage {
    /// In memory.
    Memory(Vec<u8>),
    /// In a file of this many bytes.
    File(FileStorage),
}

#[derive(Debug)]
pub(crate) struct FileStorage {
    #[cfg(unix)]
    file: File,
    #[cfg(not(unix))]
    file: Mutex<File>,
    length: u64,
}

impl Storage {
    /// Reads a plain file in place.
    pub(crate) fn of_file(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        #[cfg(not(unix))]
        let file = Mutex::new(file);
        Ok(Self::File(FileStorage { file, length }))
    }

    /// Bytes there are.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file) => file.length,
        }
    }

    /// Fills `buffer` with the bytes at `offset`; fewer than that is an error.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Memory(bytes) => {
                let end = usize::try_from(offset).ok().and_then(|start| Some(start..start.checked_add(buffer.len())?));
                let part = end.and_then(|range| bytes.get(range)).ok_or(io::ErrorKind::UnexpectedEof)?;
                buffer.copy_from_slice(part);
                Ok(())
            }
            #[cfg(unix)]
            Self::File(file) => std::os::unix::fs::FileExt::read_exact_at(&file.file, buffer, offset),
            #[cfg(not(unix))]
            Self::File(file) => {
                use std::io::Seek as _;
                let mut file = file.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                file.seek(io::SeekFrom::Start(offset))?;
                file.read_exact(buffer)
            }
        }
    }
}

/// True for the start of a zstd stream, or of the frames that a zstd reader skips.
pub(crate) fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// What came out of a compressed report.
pub(crate) struct Unpacked {
    pub(crate) storage: Storage,
    /// Why unpacking stopped before the end, if it did.
    pub(crate) damage: Option<String>,
}

/// Unpacks any number of zstd frames, skippable ones between them included, of known or unknown size.
pub(crate) fn unpack(mut input: impl Read) -> io::Result<Unpacked> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(zstd::stream::raw::DParameter::WindowLogMax(LARGEST_WINDOW_LOG))?;
    let (mut source, mut target) = (vec![0; 1 << 17], vec![0; 1 << 18]);
    let mut sink = Sink { memory: Vec::new(), scratch: None, written: 0 };
    let mut inside_frame = false;
    let damage = 'all: loop {
        let filled = match input.read(&mut source) {
            Ok(0) if inside_frame => break Some("it ends inside a compressed frame".to_owned()),
            Ok(0) => break None,
            Ok(filled) => filled,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => break Some(error.to_string()),
        };
        let mut from = InBuffer::around(&source[..filled]);
        loop {
            let mut to = OutBuffer::around(&mut target[..]);
            let (read_before, hint) = (from.pos(), decoder.run(&mut from, &mut to));
            let produced = to.pos();
            sink.write_all(&target[..produced])?;
            match hint {
                Ok(hint) => inside_frame = hint != 0,
                Err(error) => break 'all Some(error.to_string()),
            }
            if sink.written > MOST_UNPACKED {
                break 'all Some(format!("it unpacks to more than {} GiB", MOST_UNPACKED >> 30));
            }
            // A full target may hide more output of the same input.
            let stuck = from.pos() == read_before && produced == 0;
            if stuck || (from.pos() == filled && produced < (1 << 18)) {
                break;
            }
        }
    };
    Ok(Unpacked { storage: sink.finish()?, damage })
}

/// Keeps what is written in memory while it is small, in a scratch file without a name when it is not.
struct Sink {
    memory: Vec<u8>,
    scratch: Option<File>,
    written: u64,
}

impl Sink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        if self.scratch.is_none() && self.memory.len() + bytes.len() > MOST_IN_MEMORY {
            let mut file = tempfile::tempfile()?;
            file.write_all(&std::mem::take(&mut self.memory))?;
            self.scratch = Some(file);
        }
        if let Some(file) = &mut self.scratch {
            return file.write_all(bytes);
        }
        self.memory.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self) -> io::Result<Storage> {
        match self.scratch {
            Some(file) => Storage::of_file(file),
            None => Ok(Storage::Memory(self.memory)),
        }
    }
}

/// Keeps what a pipe brings, in memory while it is small.
pub(crate) fn spool(mut input: impl Read) -> io::Result<Storage> {
    let mut sink = Sink { memory: Vec::new(), scratch: None, written: 0 };
    let mut buffer = vec![0; 1 << 17];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return sink.finish(),
            Ok(filled) => sink.write_all(&buffer[..filled])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(storage: &Storage) -> Vec<u8> {
        let mut all = vec![0; storage.len() as usize];
        storage.read_at(0, &mut all).unwrap();
        all
    }

    fn sample(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    fn skippable(length: u32) -> Vec<u8> {
        let mut frame = vec![0x53, 0x2a, 0x4d, 0x18];
        frame.extend(length.to_le_bytes());
        frame.extend(std::iter::repeat_n(b'x', length as usize));
        frame
    }

    /// A frame whose header does not say how much comes out of it.
    fn frame_of_unknown_size(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn frames_of_all_kinds_are_unpacked_in_order() {
        let (first, second) = (sample(700_000), sample(300));
        let mut packed = skippable(9);
        packed.extend(frame_of_unknown_size(&first));
        packed.extend(skippable(400_000));
        packed.extend(zstd::bulk::compress(&second, 19).unwrap());
        packed.extend(skippable(0));
        assert!(is_zstd(&packed));
        let unpacked = unpack(&packed[..]).unwrap();
        assert_eq!(unpacked.damage, None);
        assert_eq!(bytes_of(&unpacked.storage), [first, second].concat());
    }

    #[test]
    fn a_cut_frame_gives_what_stands_before_the_cut() {
        let whole = sample(700_000);
        let packed = frame_of_unknown_size(&whole);
        let unpacked = unpack(&packed[..packed.len() / 2]).unwrap();
        assert!(unpacked.damage.is_some());
        let part = bytes_of(&unpacked.storage);
        assert!(whole.starts_with(&part), "{} bytes differ from the original", part.len());
    }

    #[test]
    fn bytes_beyond_the_end_are_an_error() {
        let storage = Storage::Memory(sample(10));
        let mut buffer = [0; 4];
        assert!(storage.read_at(8, &mut buffer).is_err());
        assert!(storage.read_at(u64::MAX, &mut buffer).is_err());
        storage.read_at(6, &mut buffer).unwrap();
        assert_eq!(buffer[..], sample(10)[6..]);
    }
}
