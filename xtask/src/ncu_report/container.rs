//! A Nsight Compute report taken apart into blocks and put together again, every field that is not asked for left as it is.
//!
//! The layout is drawn in the `container` module of `longpole-ncu`, which reads reports and never writes them.

use anyhow::{Context, Result, bail, ensure};
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};

const MAGIC: &[u8] = b"NVR\0";

/// Fields of a block's header that count its entries, in the order in which the entries stand: sources, kernels, ranges, command
/// lists, graphs.
const COUNTS: [u32; 5] = [1, 2, 7, 8, 9];

/// The field with the size of a block's payload.
const PAYLOAD_SIZE: u32 = 5;

/// The count of source data.
pub(crate) const SOURCES: u32 = 1;

/// One field of a message: its number, all its bytes, and what is in it if it is text, bytes or a message.
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    pub(crate) whole: &'a [u8],
    pub(crate) bytes: Option<&'a [u8]>,
    varint: u64,
}

/// The fields of a message, in order.
pub(crate) fn fields(mut message: &[u8]) -> Result<Vec<Field<'_>>> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let start = message;
        let (number, kind) = decode_key(&mut message)?;
        let (mut bytes, mut varint, mut skipped) = (None, 0, 0);
        match kind {
            WireType::Varint => varint = decode_varint(&mut message)?,
            WireType::SixtyFourBit => skipped = 8,
            WireType::ThirtyTwoBit => skipped = 4,
            WireType::LengthDelimited => {
                skipped = usize::try_from(decode_varint(&mut message)?)?;
                bytes = message.get(..skipped);
            }
            WireType::StartGroup | WireType::EndGroup => bail!("field {number} is a group"),
        }
        message = message.get(skipped..).with_context(|| format!("field {number} is longer than its message"))?;
        found.push(Field { number, whole: &start[..start.len() - message.len()], bytes, varint });
    }
    Ok(found)
}

/// Appends a field with bytes.
pub(crate) fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a field with an integer.
pub(crate) fn put_varint(number: u32, value: u64, out: &mut Vec<u8>) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

/// One entry of a payload: which of [`COUNTS`] counts it, and its message.
pub(crate) struct Entry {
    pub(crate) counted_by: u32,
    pub(crate) message: Vec<u8>,
}

/// One block.
pub(crate) struct Block {
    /// The fields of its header that do not describe the payload, as they were.
    pub(crate) rest: Vec<u8>,
    /// The field that names its process, as it was; part of `rest` too.
    pub(crate) process: Vec<u8>,
    pub(crate) entries: Vec<Entry>,
}

/// A report.
pub(crate) struct Container {
    pub(crate) header: Vec<u8>,
    pub(crate) blocks: Vec<Block>,
}

/// Takes a message with its size in front of it off the bytes.
fn sized<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8]> {
    let (size, rest) = bytes.split_first_chunk().context("it ends inside a size")?;
    let (message, rest) = rest.split_at_checked(u32::from_le_bytes(*size) as usize).context("it ends inside a message")?;
    *bytes = rest;
    Ok(message)
}

fn put_sized(message: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend(u32::try_from(message.len())?.to_le_bytes());
    out.extend_from_slice(message);
    Ok(())
}

impl Container {
    /// Takes an undamaged report apart.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let mut rest = bytes.strip_prefix(MAGIC).context("it is no .ncu-rep file")?;
        let header = sized(&mut rest)?.to_vec();
        let mut blocks = Vec::new();
        while !rest.is_empty() {
            let (block, payload_size) = Block::of_header(sized(&mut rest)?)?;
            let (mut payload, after) = rest.split_at_checked(payload_size).context("it ends inside a block")?;
            rest = after;
            let mut entries = Vec::with_capacity(block.1.len());
            for counted_by in block.1 {
                entries.push(Entry { counted_by, message: sized(&mut payload)?.to_vec() });
            }
            ensure!(payload.is_empty(), "a block has a payload of a kind that this chore does not know");
            blocks.push(Block { entries, ..block.0 });
        }
        Ok(Self { header, blocks })
    }

    /// The bytes of the start of a report: the blocks follow.
    pub(crate) fn start(&self) -> Result<Vec<u8>> {
        let mut out = MAGIC.to_vec();
        put_sized(&self.header, &mut out)?;
        Ok(out)
    }

    /// The bytes of the whole report.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = self.start()?;
        for block in &self.blocks {
            put_block(&block.rest, block.entries.iter(), &mut out)?;
        }
        Ok(out)
    }
}

impl Block {
    /// Reads a header: the block without entries, and what will count each of its entries; then the size of its payload.
    fn of_header(header: &[u8]) -> Result<((Self, Vec<u32>), usize)> {
        let mut block = Self { rest: Vec::new(), process: Vec::new(), entries: Vec::new() };
        let (mut counts, mut size) = ([0; COUNTS.len()], 0);
        for field in fields(header)? {
            match COUNTS.iter().position(|&number| number == field.number) {
                Some(at) => counts[at] = usize::try_from(field.varint)?,
                None if field.number == PAYLOAD_SIZE => size = usize::try_from(field.varint)?,
                None => {
                    block.rest.extend_from_slice(field.whole);
                    if field.number == 6 {
                        block.process = field.whole.to_vec();
                    }
                }
            }
        }
        ensure!(counts.iter().sum::<usize>() <= size, "a block claims more entries than it has bytes");
        let order = COUNTS.iter().zip(counts).flat_map(|(&number, count)| std::iter::repeat_n(number, count));
        Ok(((block, order.collect()), size))
    }
}

/// Appends a block with these entries, which stand in the order of [`COUNTS`].
pub(crate) fn put_block<'a>(rest: &[u8], entries: impl Iterator<Item = &'a Entry>, out: &mut Vec<u8>) -> Result<()> {
    let (mut payload, mut counts) = (Vec::new(), [0_u64; COUNTS.len()]);
    for entry in entries {
        put_sized(&entry.message, &mut payload)?;
        if let Some(at) = COUNTS.iter().position(|&number| number == entry.counted_by) {
            counts[at] += 1;
        }
    }
    let mut header = Vec::new();
    for (&number, count) in COUNTS.iter().zip(counts).filter(|(_, count)| *count > 0) {
        put_varint(number, count, &mut header);
    }
    header.extend_from_slice(rest);
    if !payload.is_empty() {
        put_varint(PAYLOAD_SIZE, payload.len() as u64, &mut header);
    }
    put_sized(&header, out)?;
    out.extend_from_slice(&payload);
    Ok(())
}
