//! The arguments of an event.

use super::collective::{self, CollectiveArgs};
use super::event::Context;
use super::local::Guess;
use crate::json::Tokens;

/// The arguments that anything uses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Args<'a> {
    pub(super) external_id: Option<u64>,
    pub(super) correlation: Option<u64>,
    pub(super) device: Option<i64>,
    pub(super) context: Option<i64>,
    pub(super) stream: Option<i64>,
    pub(super) grid: Option<[u32; 3]>,
    pub(super) block: Option<[u32; 3]>,
    pub(super) registers: Option<u32>,
    pub(super) shared_bytes: Option<u32>,
    pub(super) graph: Option<u64>,
    pub(super) graph_node: Option<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) copy_kind: Option<&'a [u8]>,
    pub(super) shapes: Option<&'a [u8]>,
    pub(super) types: Option<&'a [u8]>,
    /// The worker's numbers of the two, if they were guessed.
    pub(super) known_shapes: Option<u32>,
    pub(super) known_types: Option<u32>,
    pub(super) strides: Option<&'a [u8]>,
    pub(super) values: Option<&'a [u8]>,
    pub(super) memory_bytes: Option<i64>,
    pub(super) memory_device_type: Option<i64>,
    pub(super) memory_device: Option<i64>,
    pub(super) total_allocated: Option<u64>,
    pub(super) total_reserved: Option<u64>,
    pub(super) label: Option<&'a [u8]>,
    pub(super) wait_on_stream: Option<i64>,
    pub(super) event_record: Option<u64>,
    pub(super) collective: CollectiveArgs<'a>,
}

/// The last four bytes of a key, closing quote included.
pub(super) const fn end(text: [u8; 4]) -> u32 {
    u32::from_le_bytes(text)
}

/// The value, and its number, if the guess at it was right.
#[inline]
pub(super) fn guessed<'a>(guess: Guess<'_>, is: impl FnOnce(&[u8]) -> Option<&'a [u8]>) -> (Option<&'a [u8]>, Option<u32>) {
    match guess.and_then(|(number, bytes)| is(bytes).map(|found| (found, number))) {
        Some((found, number)) => (Some(found), Some(number)),
        None => (None, None),
    }
}

/// Takes one argument, if anything uses it; `name` is the worker's number of the event's name, if it was guessed.
#[inline]
pub(super) fn read_arg<'a>(
    tokens: &mut Tokens<'a>,
    colon: usize,
    (key_end, tail): (usize, u64),
    name: Option<u32>,
    args: &mut Args<'a>,
    context: &Context<'_>,
) {
    const GRID: u32 = end(*b"rid\"");
    const BLOCK: u32 = end(*b"ock\"");
    const NAME: u32 = end(*b"ame\"");
    const LABELS: u32 = end(*b"els\"");
    const KIND: u32 = end(*b"ind\"");
    const BYTES: u32 = end(*b"tes\"");
    const DEVICE: u32 = end(*b"ice\"");
    const STREAM: u32 = end(*b"eam\"");
    const CONTEXT: u32 = end(*b"ext\"");
    const ID: u32 = end(*b" id\"");
    const DEVICE_ID: u32 = end(*b" Id\"");
    const DIMS: u32 = end(*b"ims\"");
    const TYPE: u32 = end(*b"ype\"");
    const STRIDES: u32 = end(*b"des\"");
    const VALUES: u32 = end(*b"uts\"");
    const CORRELATION: u32 = end(*b"ion\"");
    const SHARED: u32 = end(*b"ory\"");
    const RESERVED: u32 = end(*b"ved\"");
    const ALLOCATED: u32 = end(*b"ted\"");
    const REGISTERS: u32 = end(*b"ead\"");
    const EVENT_RECORD: u32 = end(*b"_id\"");
    const ELEMENTS: u32 = end(*b"ems\"");
    const SIZE: u32 = end(*b"ize\"");
    const RANKS: u32 = end(*b"nks\"");
    const RANK: u32 = end(*b"ank\"");
    const SEQUENCE: u32 = end(*b"Seq\"");
    macro_rules! is {
        ($key:literal) => {
            tokens.is_key(key_end, $key)
        };
    }
    match (tail >> 32) as u32 {
        ID if is!(b"\"External id\"") || is!(b"\"external id\"") => args.external_id = tokens.u64(colon),
        ID if is!(b"\"graph node id\"") => args.graph_node = tokens.u64(colon).filter(|id| *id != 0),
        ID if is!(b"\"graph id\"") => args.graph = tokens.u64(colon).filter(|id| *id != 0),
        CORRELATION if is!(b"\"correlation\"") => args.correlation = tokens.u64(colon),
        DIMS if is!(b"\"Input Dims\"") || is!(b"\"Input dims\"") => {
            let guess = name.and_then(|name| context.locals.guess_shapes(name));
            (args.shapes, args.known_shapes) = guessed(guess, |array| tokens.is_array(colon, array));
            args.shapes = args.shapes.or_else(|| tokens.array(colon));
        }
        TYPE if is!(b"\"Input type\"") => {
            let guess = name.and_then(|name| context.locals.guess_types(name));
            (args.types, args.known_types) = guessed(guess, |array| tokens.is_array(colon, array));
            args.types = args.types.or_else(|| tokens.array(colon));
        }
        STRIDES | VALUES if !context.arguments => {}
        STRIDES if is!(b"\"Input Strides\"") => args.strides = tokens.array(colon),
        VALUES if is!(b"\"Concrete Inputs\"") => args.values = tokens.array(colon),
        TYPE if is!(b"\"Device Type\"") => args.memory_device_type = tokens.i64(colon),
        BYTES if is!(b"\"Bytes\"") => args.memory_bytes = tokens.i64(colon),
        BYTES if is!(b"\"bytes\"") => args.bytes = tokens.u64(colon),
        ALLOCATED if is!(b"\"Total Allocated\"") => args.total_allocated = tokens.u64(colon),
        RESERVED if is!(b"\"Total Reserved\"") => args.total_reserved = tokens.u64(colon),
        DEVICE_ID if is!(b"\"Device Id\"") => args.memory_device = tokens.i64(colon),
        DEVICE if is!(b"\"device\"") => args.device = tokens.i64(colon),
        STREAM if is!(b"\"stream\"") => args.stream = tokens.i64(colon),
        CONTEXT if is!(b"\"context\"") => args.context = tokens.i64(colon),
        GRID if is!(b"\"grid\"") => args.grid = tokens.triple(colon),
        BLOCK if is!(b"\"block\"") => args.block = tokens.triple(colon),
        REGISTERS if is!(b"\"registers per thread\"") => args.registers = tokens.u32(colon),
        SHARED if is!(b"\"shared memory\"") => args.shared_bytes = tokens.u32(colon),
        KIND if is!(b"\"kind\"") => args.copy_kind = tokens.string(colon),
        NAME if is!(b"\"name\"") => args.label = tokens.string(colon),
        STREAM if is!(b"\"wait_on_stream\"") => args.wait_on_stream = tokens.i64(colon),
        EVENT_RECORD if is!(b"\"wait_on_cuda_event_record_corr_id\"") => args.event_record = tokens.u64(colon),
        LABELS if is!(b"\"labels\"") => args.label = tokens.string(colon),
        NAME | TYPE | ELEMENTS | SIZE | RANKS | RANK | SEQUENCE => collective::read_arg(tokens, colon, key_end, &mut args.collective),
        _ => {}
    }
}
