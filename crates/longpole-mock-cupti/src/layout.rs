//! Records as bytes, of the sizes that they have in the version that is played. Written down here a second time, apart from the decoder that is tested.

use crate::state::version;

/// A kind whose records carry their size in the second number, which no version of CUPTI has.
pub(crate) const UNKNOWN_KIND: u32 = 900;

/// Bytes of a record.
///
/// # Safety
///
/// A record of the unknown kind must be there.
pub(crate) unsafe fn size_of_record(kind: u32, record: *const u8) -> usize {
    let version = version();
    // Bytes up to a version, from the oldest on, and those of all later ones.
    let grown = |steps: &[(u32, usize)], latest| steps.iter().find(|(before, _)| version < *before).map_or(latest, |&(_, bytes)| bytes);
    match kind {
        1 => grown(&[(26, 88), (130_400, 96)], 112),
        2 => grown(&[(130_400, 88)], 104),
        4 | 5 => 40,
        10 => grown(&[(130_000, 208), (130_200, 216), (130_400, 224)], 248),
        17 => grown(&[(20, 40)], 56),
        22 => 96,
        36 => grown(&[(26, 24)], 56),
        38 => grown(&[(26, 40)], 56),
        // SAFETY: this kind has at least eight bytes.
        UNKNOWN_KIND => unsafe { record.add(4).cast::<u32>().read_unaligned() as usize },
        _ => 24,
    }
}

/// A record under construction: as long as its kind is, and what is not set is not zero, so that a decoder that reads there is found out.
pub(crate) struct Bytes(Vec<u8>);

impl Bytes {
    pub(crate) fn of(kind: u32) -> Self {
        // SAFETY: kinds made here are not of the one whose size is in the record.
        let mut bytes = Self(vec![0xa5; unsafe { size_of_record(kind, std::ptr::null()) }]);
        bytes.u32(0, kind);
        bytes
    }

    pub(crate) fn sized(kind: u32, size: usize) -> Self {
        let mut bytes = Self(vec![0xa5; size]);
        bytes.u32(0, kind);
        if size >= 8 {
            bytes.u32(4, size as u32);
        }
        bytes
    }

    pub(crate) fn u8(&mut self, at: usize, value: u8) {
        self.0[at] = value;
    }

    pub(crate) fn u16(&mut self, at: usize, value: u16) {
        self.0[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn get(&self) -> &[u8] {
        &self.0
    }
}
