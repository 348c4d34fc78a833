//! The file itself: where its bytes come from, how it is cut into blocks, and the messages in them.
//!
//! ```text
//! file    "NVR\0"  u32 n  FileHeader (n bytes)   block block block ...
//! block   u32 n  BlockHeader (n bytes)   payload (BlockHeader.payload_size bytes)
//! payload entry entry ...   sources, then kernels, ranges, command lists, graphs: as many as the header says
//! entry   u32 n  message (n bytes)
//! ```
//!
//! All integers are little-endian. A file is a log: the facts about its session and its table of names are spread over many
//! blocks, and a result may use a name that a later block lists. So the whole file is indexed first (headers and entry sizes
//! only; payloads are skipped), and results are decoded afterwards, when asked for.

mod index;
pub(crate) mod messages;
mod names;
mod storage;
pub(crate) mod wire;

pub use index::{EntryKind, Process};
pub(crate) use index::{Index, MAGIC};
pub(crate) use names::Names;
pub(crate) use storage::{Storage, is_zstd, spool, unpack};
