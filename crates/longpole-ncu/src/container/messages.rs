//! The messages of a report that are decoded whole, with the fields this program reads and no others.
//!
//! The layout is documented in the "Report File Format" chapter of NVIDIA's Nsight Compute Customization Guide; field
//! numbers are facts from there, names are ours. Unknown fields are skipped by `prost`.

/// What stands before the payload of every block.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BlockHeader {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) sources: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) kernels: Option<u32>,
    /// Merged over all blocks, so that it is kept as bytes here.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(crate) session: Vec<Vec<u8>>,
    #[prost(message, optional, tag = "4")]
    pub(crate) strings: Option<StringTable>,
    #[prost(uint32, optional, tag = "5")]
    pub(crate) payload_size: Option<u32>,
    #[prost(message, optional, tag = "6")]
    pub(crate) process: Option<Process>,
    #[prost(uint32, optional, tag = "7")]
    pub(crate) ranges: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    pub(crate) command_lists: Option<u32>,
    #[prost(uint32, optional, tag = "9")]
    pub(crate) graphs: Option<u32>,
}

/// The first message of the file.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FileHeader {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) version: Option<u32>,
}

/// Part of the file's one table of names. Bytes, not text: a damaged name must not lose the table.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StringTable {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) strings: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Process {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) id: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) host: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(crate) name: Option<Vec<u8>>,
}

/// Facts about the whole recording; every block may add to them.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SessionDetails {
    #[prost(uint64, optional, tag = "2")]
    pub(crate) created: Option<u64>,
    #[prost(message, optional, tag = "3")]
    pub(crate) host: Option<System>,
    #[prost(message, optional, tag = "4")]
    pub(crate) target: Option<System>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) devices: Vec<Device>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) versions: Vec<Version>,
    #[prost(message, optional, tag = "10")]
    pub(crate) settings: Option<Settings>,
    #[prost(bytes = "vec", optional, tag = "11")]
    pub(crate) command_line: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct System {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) os: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(crate) processor: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(crate) architecture: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Device {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) id: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) name: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) attributes: Vec<DeviceAttribute>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DeviceAttribute {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) name: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) value: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Version {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) provider: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) version: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Settings {
    #[prost(bytes = "vec", optional, tag = "8")]
    pub(crate) clock_control: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "11")]
    pub(crate) replay_mode: Option<Vec<u8>>,
}
