//! What PyTorch writes of a collective into the arguments of `record_param_comms` and, since 2024, of the NCCL kernel itself.

use longpole_trace::{Collective, CollectivePlace, Ns, StrId};

use super::local::Locals;
use crate::json::Tokens;

/// The arguments about collectives. Texts are raw.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CollectiveArgs<'a> {
    name: Option<&'a [u8]>,
    group: Option<&'a [u8]>,
    group_ranks: Option<&'a [u8]>,
    dtype: Option<&'a [u8]>,
    group_size: Option<u32>,
    in_elements: Option<u64>,
    out_elements: Option<u64>,
    sequence: Option<u64>,
    source_rank: Option<u32>,
    destination_rank: Option<u32>,
}

/// Takes one argument, if it is about collectives.
#[inline]
pub(super) fn read_arg<'a>(tokens: &mut Tokens<'a>, colon: usize, key_end: usize, args: &mut CollectiveArgs<'a>) {
    macro_rules! is {
        ($key:literal) => {
            tokens.is_key(key_end, $key)
        };
    }
    if is!(b"\"Collective name\"") {
        args.name = tokens.string(colon);
    } else if is!(b"\"Process Group Name\"") {
        args.group = tokens.string(colon);
    } else if is!(b"\"Process Group Ranks\"") {
        args.group_ranks = tokens.string(colon).or_else(|| tokens.array(colon));
    } else if is!(b"\"dtype\"") {
        args.dtype = tokens.string(colon);
    } else if is!(b"\"Group size\"") {
        args.group_size = tokens.u32(colon);
    } else if is!(b"\"In msg nelems\"") {
        args.in_elements = tokens.u64(colon);
    } else if is!(b"\"Out msg nelems\"") {
        args.out_elements = tokens.u64(colon);
    } else if is!(b"\"Seq\"") {
        args.sequence = tokens.u64(colon);
    } else if is!(b"\"Src Rank\"") {
        args.source_rank = tokens.u32(colon);
    } else if is!(b"\"Dst Rank\"") {
        args.destination_rank = tokens.u32(colon);
    }
}

/// A row for an event whose arguments say which collective it is. Ids are the worker's own.
pub(super) fn row(args: &CollectiveArgs<'_>, locals: &mut Locals, place: CollectivePlace, start: Ns) -> Option<Collective> {
    // A data type alone is an argument of many operators.
    if args.name.is_none() && args.group.is_none() {
        return None;
    }
    let mut text = |raw: Option<&[u8]>| raw.filter(|raw| !raw.is_empty()).map(|raw| StrId(locals.texts.intern(raw)));
    Some(Collective {
        place,
        start,
        name: text(args.name),
        group: text(args.group),
        group_ranks: text(args.group_ranks),
        dtype: text(args.dtype),
        group_size: args.group_size,
        in_elements: args.in_elements,
        out_elements: args.out_elements,
        sequence: args.sequence,
        source_rank: args.source_rank,
        destination_rank: args.destination_rank,
    })
}
