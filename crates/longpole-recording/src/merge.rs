//! Recordings of several processes put one behind the other.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use crate::frame::{FRAME_HEADER_BYTES, FrameHeader, HEADER_BYTES, Header, MAGIC, u32_at};
use crate::records::Family;

/// What was copied of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// What it starts with; absent when that cannot be read.
    pub header: Option<Header>,
    /// Bytes copied.
    pub bytes: u64,
    /// Bytes of a frame that its process did not live to finish, which were left out.
    pub torn_bytes: u64,
    /// Records by the number of their kind.
    records: BTreeMap<u16, u64>,
}

impl Copied {
    /// Records of a family, by the word of their pages.
    pub fn count(&self, family: Family) -> u64 {
        self.records.get(&family.number()).copied().unwrap_or(0)
    }
}

/// Copies a recording frame by frame, without the torn one that a killed process leaves at its end, so that another can stand behind it. What is
/// no frame is copied as it is: the reader says what is wrong with it. A file too short to hold a header is left out.
pub fn copy_whole_frames(mut input: impl Read, mut out: impl Write) -> io::Result<Copied> {
    let mut copied = Copied::default();
    let mut header = [0; HEADER_BYTES];
    let read = read_up_to(&mut input, &mut header)?;
    if read < HEADER_BYTES || header[..8] != MAGIC {
        copied.torn_bytes = read as u64;
        return Ok(copied);
    }
    copied.header = Header::decode(&header).ok().map(|(header, _)| header);
    out.write_all(&header)?;
    copied.bytes = HEADER_BYTES as u64;
    let mut frame = vec![0; FRAME_HEADER_BYTES];
    loop {
        frame.resize(FRAME_HEADER_BYTES, 0);
        let read = read_up_to(&mut input, &mut frame)?;
        if read < FRAME_HEADER_BYTES {
            copied.torn_bytes = read as u64;
            return Ok(copied);
        }
        let Some(FrameHeader { length, kind, .. }) = FrameHeader::decode(&frame) else {
            out.write_all(&frame)?;
            copied.bytes += FRAME_HEADER_BYTES as u64 + io::copy(&mut input, &mut out)?;
            return Ok(copied);
        };
        frame.resize(FRAME_HEADER_BYTES + length, 0);
        let read = read_up_to(&mut input, frame.get_mut(FRAME_HEADER_BYTES..).unwrap_or_default())?;
        if read < length {
            copied.torn_bytes = (FRAME_HEADER_BYTES + read) as u64;
            return Ok(copied);
        }
        let records = u64::from(u32_at(&frame, FRAME_HEADER_BYTES));
        *copied.records.entry(kind).or_default() += records;
        out.write_all(&frame)?;
        copied.bytes += frame.len() as u64;
    }
}

/// Fills the buffer as far as there is something to read.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
