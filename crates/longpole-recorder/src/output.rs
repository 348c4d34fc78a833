//! The file that a recording is written to, in a process whose descriptors are not ours.
//!
//! Programs that become daemons close every descriptor they find, and the number may be another file's by the next write. So each write first sees
//! that the descriptor still is the file that was made; if not, nothing is written and nothing closed.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::mem::ManuallyDrop;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use longpole_recording::Sink;

/// The file.
pub(crate) struct Output {
    file: ManuallyDrop<File>,
    /// Device and inode.
    identity: (u64, u64),
}

impl Output {
    /// Makes a file that is not there yet.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let identity = identity(&file)?;
        Ok(Self { file: ManuallyDrop::new(file), identity })
    }

    fn check(&self) -> io::Result<()> {
        if identity(&self.file)? == self.identity {
            return Ok(());
        }
        Err(io::Error::other("the program has taken the recording's descriptor"))
    }
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.check()
    }
}

impl Sink for Output {
    fn cut_to(&mut self, length: u64) -> io::Result<()> {
        self.check()?;
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length)).map(|_| ())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.check().is_ok() {
            // SAFETY: dropped here only, once.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}
