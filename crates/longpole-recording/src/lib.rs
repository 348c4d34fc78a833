//! The recording format: what the recorder that runs inside a CUDA program writes, one file a process, and how it is read back.
//!
//! # What it has to survive
//!
//! The program may be killed at any time, fork, or fill the disk. So a file is only ever appended to, in frames that stand for themselves:
//! whatever the file ends in, everything up to the last whole frame is read. A frame whose bytes are damaged is left out and counted, and
//! reading goes on behind it. Nothing in a file makes the reader panic, or take memory beyond a fixed multiple of the file's size (see [`MAX_EXPANSION`]).
//!
//! # Bytes
//!
//! All numbers are little-endian. A file is one recording (`<pid>.lprec`) or several, one after another (`.longpole`: what
//! `longpole record` leaves of a program and its children); there is no index, since hopping from frame to frame reads one line of
//! memory for every page.
//!
//! ```text
//! recording   header frame*
//!
//! header      0   8 bytes  "LPREC\r\n\x1a"
//!             8   u16      version of the format: 1
//!             10  u16      length of the header: 32; a later version may append to it
//!             12  u32      process id
//!             16  u64      start of the recording, CLOCK_REALTIME in ns
//!             24  u32      zero
//!             28  u32      CRC-32 of bytes 0..28
//!
//! frame       0   4 bytes  "LPf\x01", where reading is taken up again behind damage
//!             4   u32      length of the payload, at most 4 MiB
//!             8   u16      kind: 1 strings, else the family of the records (see Family)
//!             10  u16      version of the kind: 1
//!             12  u32      CRC-32 of the payload
//!             16  u32      CRC-32 of bytes 0..16
//!             20  ...      payload
//!
//! payload     0   u32      records (strings: texts)
//!             4   u16      columns (strings: 0)
//!             6   u16      0 stored, 1 zstd
//!             8   u32      first id (strings), else zero
//!             12  u32      length of the body when unpacked, at most 16 MiB and 256 times its packed length
//!             16  ...      body, packed
//!
//! body of strings    {u32 length, bytes} a text; ids count up from the first id
//! body of a family   column after column: {u32 length, numbers}; a number is the difference to the record before (the first: to
//!                    zero), zigzag, LEB128
//! ```
//!
//! Columns, because the fields of neighbouring records are alike: differences of one field in a row are small or zero, and a page of kernels
//! packs to a few bytes each, where structs keep their padding and mix what is alike with what is not. One rule for all families,
//! small ones included, means one reader to get right.
//!
//! An optional number is stored as itself plus one, zero when absent. A text is a number given by [`Writer::string`], zero for none; it is
//! defined in a frame before the first page that uses it.
//!
//! # Growing it
//!
//! A new field is appended to its family in [`records`]: older readers pass over columns they do not know, and pages that lack a
//! column read as zero or absent. A new family gets a new number; readers count frames of kinds they do not know. Only a change of meaning
//! raises a version, and the reader of the old one stays: `tests/samples` keeps a file of each version ever written.
//!
//! # Time
//!
//! All times are of one clock, the one CUPTI stamps activities with, in nanoseconds; [`Clock`] records tie it to the wall clock at both ends.

mod checksum;
mod frame;
mod merge;
mod page;
mod reader;
pub mod records;
mod window;
mod writer;

pub use frame::{FRAME_HEADER_BYTES, HEADER_BYTES, Header, MAGIC, MAX_EXPANSION, MAX_PAYLOAD_BYTES, VERSION};
pub use merge::{Copied, copy_whole_frames};
pub use reader::{Fault, FaultKind, Found, Recording, Strings, is_recording, read, read_file};
pub use records::{
    Api, Clock, Context, Cost, Device, Dropped, End, EventRecord, Family, GraphNode, Kernel, Memcpy, Memset, Nvtx, Overhead, PeerCopy,
    Process, RangeState, Record, Refused, StringId, Sync, Thread,
};
pub use window::RandomAccess;
pub use writer::{Sink, Writer};
