//! Small reports of any shape, written field by field. The reader is never asked how.

use prost::encoding::{WireType, encode_key, encode_varint};

/// A protobuf message under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    pub(crate) fn varint(mut self, number: u32, value: u64) -> Self {
        encode_key(number, WireType::Varint, &mut self.0);
        encode_varint(value, &mut self.0);
        self
    }

    pub(crate) fn bytes(mut self, number: u32, bytes: &[u8]) -> Self {
        encode_key(number, WireType::LengthDelimited, &mut self.0);
        encode_varint(bytes.len() as u64, &mut self.0);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn text(self, number: u32, text: &str) -> Self {
        self.bytes(number, text.as_bytes())
    }

    pub(crate) fn double(mut self, number: u32, value: f64) -> Self {
        encode_key(number, WireType::SixtyFourBit, &mut self.0);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn float(mut self, number: u32, value: f32) -> Self {
        encode_key(number, WireType::ThirtyTwoBit, &mut self.0);
        self.0.extend(value.to_le_bytes());
        self
    }

    #[expect(clippy::needless_pass_by_value, reason = "messages are written where they are used")]
    pub(crate) fn message(self, number: u32, message: Message) -> Self {
        self.bytes(number, &message.0)
    }

    /// Fields that no version has, one of each wire type.
    pub(crate) fn unknown(self) -> Self {
        self.varint(900, 7).double(901, 1.5).float(902, 2.5).text(903, "later")
    }
}

pub(crate) fn message() -> Message {
    Message::default()
}

/// The value of a metric.
pub(crate) fn count(value: u64) -> Message {
    message().varint(5, value)
}

pub(crate) fn number(value: f64) -> Message {
    message().double(3, value)
}

pub(crate) fn words(value: &str) -> Message {
    message().text(1, value)
}

/// A metric: the number of its name and its value.
pub(crate) fn metric(name: u64, value: Message) -> Message {
    message().varint(1, name).message(2, value)
}

/// One of a metric's instances.
pub(crate) fn instance(id: Message, value: Message) -> Message {
    message().message(1, id).message(2, value)
}

/// A kernel with a grid of 2 x 3 x 1 blocks of 64 threads.
pub(crate) fn kernel(name: &str, metrics: &[Message]) -> Message {
    let start = message()
        .varint(1, 77)
        .text(5, &format!("_Z1{name}v"))
        .text(6, name)
        .text(7, &format!("{name}()"))
        .message(10, message().varint(1, 2).varint(2, 3).varint(3, 1))
        .message(11, message().varint(1, 64).varint(2, 1).varint(3, 1))
        .varint(22, 1)
        .varint(23, 7);
    metrics.iter().fold(start, |kernel, metric| kernel.message(13, metric.clone()))
}

/// Source data: its reference and its cubin.
pub(crate) fn source(reference: u64, cubin: &[u8]) -> Message {
    message().varint(1, reference).bytes(4, cubin)
}

/// One block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub(crate) names: Vec<&'static str>,
    pub(crate) session: Option<Message>,
    /// Number and name.
    pub(crate) process: Option<(u64, &'static str)>,
    pub(crate) sources: Vec<Message>,
    pub(crate) kernels: Vec<Message>,
    pub(crate) ranges: Vec<Message>,
    pub(crate) command_lists: Vec<Message>,
    pub(crate) graphs: Vec<Message>,
    /// More header fields.
    pub(crate) extra: Message,
}

/// Appends a message with its size in front of it.
pub(crate) fn put_sized(message: &[u8], out: &mut Vec<u8>) {
    out.extend(u32::try_from(message.len()).unwrap().to_le_bytes());
    out.extend_from_slice(message);
}

/// The start of a file of this version.
pub(crate) fn start(version: u64) -> Vec<u8> {
    let mut bytes = b"NVR\0".to_vec();
    put_sized(&message().varint(1, version).0, &mut bytes);
    bytes
}

/// The header of a block and its payload.
pub(crate) fn block(block: &Block) -> (Message, Vec<u8>) {
    let mut payload = Vec::new();
    let mut header = block.extra.clone();
    let lists = [(1, &block.sources), (2, &block.kernels), (7, &block.ranges), (8, &block.command_lists), (9, &block.graphs)];
    for (number, entries) in lists {
        for entry in entries {
            put_sized(&entry.0, &mut payload);
        }
        if !entries.is_empty() {
            header = header.varint(number, entries.len() as u64);
        }
    }
    if let Some(session) = &block.session {
        header = header.message(3, session.clone());
    }
    if !block.names.is_empty() {
        header = header.message(4, block.names.iter().fold(message(), |table, name| table.text(1, name)));
    }
    header = header.varint(5, payload.len() as u64);
    if let Some((id, name)) = block.process {
        header = header.message(6, message().varint(1, id).text(2, "127.0.0.1").text(3, name));
    }
    (header, payload)
}

/// A whole file of the known version.
pub(crate) fn file(blocks: &[Block]) -> Vec<u8> {
    let mut bytes = start(7);
    for one in blocks {
        let (header, payload) = block(one);
        put_sized(&header.0, &mut bytes);
        bytes.extend(payload);
    }
    bytes
}
