//! Headers of recordings and of frames.

use crate::checksum::crc32;

/// The first bytes of a recording.
pub const MAGIC: [u8; 8] = *b"LPREC\r\n\x1a";

/// The version of the format that is written.
pub const VERSION: u16 = 1;

/// Length of a recording's header as written.
pub const HEADER_BYTES: usize = 32;

/// Length of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 20;

/// The longest payload of a frame.
pub const MAX_PAYLOAD_BYTES: usize = 4 << 20;

/// How many times its packed length a body may be when unpacked. A body that packs better is stored as it is, so a file cannot ask
/// for more memory than this times its size.
pub const MAX_EXPANSION: usize = 256;

/// The longest body when unpacked.
pub(crate) const MAX_BODY_BYTES: usize = 16 << 20;

/// The first bytes of a frame.
pub(crate) const FRAME_MAGIC: [u8; 4] = *b"LPf\x01";

/// The kind of a frame of texts.
pub(crate) const STRINGS: u16 = 1;

/// The version of all kinds so far.
pub(crate) const KIND_VERSION: u16 = 1;

/// What a recording starts with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The process that was recorded.
    pub pid: u32,
    /// When recording began: `CLOCK_REALTIME` in nanoseconds.
    pub started_at_ns: u64,
}

/// Why bytes are no header that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// The bytes end inside it.
    Cut,
    /// It is none, or it is damaged.
    Damaged,
    /// It is of a version that this reader does not know.
    Newer(u16),
}

impl Header {
    /// The bytes of it.
    pub(crate) fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&(HEADER_BYTES as u16).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.pid.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.started_at_ns.to_le_bytes());
        let crc = crc32(&bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads it, and its length.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, usize), BadHeader> {
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(BadHeader::Cut)?;
        if header[..8] != MAGIC || crc32(&header[..28]) != u32_at(header, 28) {
            return Err(BadHeader::Damaged);
        }
        let version = u16_at(header, 8);
        if version != VERSION {
            return Err(BadHeader::Newer(version));
        }
        let length = usize::from(u16_at(header, 10)).max(HEADER_BYTES);
        if bytes.len() < length {
            return Err(BadHeader::Cut);
        }
        Ok((Self { pid: u32_at(header, 12), started_at_ns: u64_at(header, 16) }, length))
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) length: usize,
    pub(crate) kind: u16,
    pub(crate) version: u16,
    pub(crate) checksum: u32,
}

impl FrameHeader {
    /// Of a payload.
    pub(crate) fn of(kind: u16, payload: &[u8]) -> Self {
        Self { length: payload.len(), kind, version: KIND_VERSION, checksum: crc32(payload) }
    }

    /// The bytes of it.
    pub(crate) fn encode(self) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[..4].copy_from_slice(&FRAME_MAGIC);
        bytes[4..8].copy_from_slice(&(self.length as u32).to_le_bytes());
        bytes[8..10].copy_from_slice(&self.kind.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.checksum.to_le_bytes());
        let crc = crc32(&bytes[..16]);
        bytes[16..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads it; `None` where none stands.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<FRAME_HEADER_BYTES>()?;
        if header[..4] != FRAME_MAGIC || crc32(&header[..16]) != u32_at(header, 16) {
            return None;
        }
        let length = u32_at(header, 4) as usize;
        (length <= MAX_PAYLOAD_BYTES).then(|| Self {
            length,
            kind: u16_at(header, 8),
            version: u16_at(header, 10),
            checksum: u32_at(header, 12),
        })
    }
}

/// The number at `at`, zero behind the end.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u16::from_le_bytes(*b))
}

/// The number at `at`, zero behind the end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_le_bytes(*b))
}

/// The number at `at`, zero behind the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b))
}
