//! Chrome traces: PyTorch's (Kineto) of every era and what other tools rewrote of them, and those of other writers ([`dialect`]).
//!
//! The input is cut into segments near fixed offsets ([`segment`]); workers parse segments into rows ([`event`],
//! [`worker`]) with ids of their own; the merging thread takes them in file order, checks that each segment really ended
//! where the next began, and re-reads the few that were cut inside an event ([`pipeline`], [`merge`]). So the result does
//! not depend on the number of threads, on the layout, or on how the bytes arrived. Ranges that come as a begin and an end
//! are matched when a document ends ([`pairs`]).

mod arguments;
mod category;
mod collective;
mod dialect;
mod envelope;
mod event;
mod jax;
mod local;
mod merge;
mod onnx;
mod pairs;
mod pipeline;
mod segment;
mod worker;
mod writers;

pub(crate) use dialect::Dialect;
pub(crate) use pipeline::{FileFacts, read};
pub(crate) use segment::{Counting, FileSource, StreamSource};
