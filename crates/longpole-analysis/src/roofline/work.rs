//! What an operator call has to do at least, and how long that takes on a device.

use longpole_trace::Ns;

use super::dtype::Dtype;
use super::peaks::{PeakKind, Peaks};

/// Which part of a multiprocessor does the arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// Matrix units (tensor cores, matrix cores): products of matrices, convolutions, attention.
    Tensor,
    /// Ordinary arithmetic units: everything else.
    Vector,
}

/// The least one call has to do: the arithmetic its definition asks for, every input read once and every output written once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// Floating-point (or integer) operations, a multiply-add counted as two. The least where the trace leaves it open.
    pub flops: u64,
    /// The most it can be, where the trace leaves it open (whether attention was causal, ...).
    pub flops_most: Option<u64>,
    /// Bytes read and written. The least where the trace leaves it open.
    pub bytes: u64,
    /// The most it can be, where the trace leaves it open (how many different rows an embedding looked up, ...).
    pub bytes_most: Option<u64>,
    /// The part of the bytes that is written, the least where the trace leaves it open; absent where the arguments do not tell what the
    /// operator reads from what it writes, or it is not known what else it writes.
    pub bytes_written: Option<u64>,
    /// The type the arithmetic is done on.
    pub dtype: Dtype,
    /// Which units do it.
    pub engine: Engine,
}

/// Which side of the roof is lower for a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Roof {
    /// Arithmetic takes longer than moving the bytes.
    Compute,
    /// Moving the bytes takes longer, or as long.
    Memory,
}

/// The shortest time a piece of work can take on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// The larger of the two below, rounded up to whole nanoseconds.
    pub ns: Ns,
    /// FLOPs over peak; absent when the device has no known peak for the type, or there is no arithmetic.
    pub compute_ns: Option<Ns>,
    /// Bytes over bandwidth.
    pub memory_ns: Ns,
    /// Which of the two it is.
    pub roof: Roof,
    /// The peak that the arithmetic was held against.
    pub peak: Option<PeakKind>,
}

/// Nanoseconds that `amount` takes at `per_second`, rounded up. `None` when the rate is zero.
pub(crate) fn ns_at(amount: u64, per_second: u64) -> Option<Ns> {
    let ns = (u128::from(amount) * 1_000_000_000).div_ceil(u128::from(per_second).max(1));
    (per_second > 0).then(|| Ns(i64::try_from(ns).unwrap_or(i64::MAX)))
}

impl Work {
    /// FLOPs a byte; absent when no byte moves.
    pub fn intensity(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.flops as f64 / self.bytes as f64)
    }

    /// The shortest time one call can take: `max(flops / peak, bytes / bandwidth)`. `peak` overrides the one that the type stands
    /// for, for a kernel whose name says what it computes in.
    pub fn floor(&self, peaks: &Peaks, peak: Option<PeakKind>) -> Option<Floor> {
        let memory_ns = ns_at(self.bytes, peaks.memory_bytes_per_s)?;
        let kind = peak.filter(|&kind| peaks.flops_per_s(kind).is_some()).or_else(|| peaks.kind_for(self.dtype, self.engine));
        let compute_ns = kind.filter(|_| self.flops > 0).and_then(|kind| ns_at(self.flops, peaks.flops_per_s(kind)?));
        let roof = if compute_ns.is_some_and(|compute| compute > memory_ns) { Roof::Compute } else { Roof::Memory };
        let ns = compute_ns.map_or(memory_ns, |compute| compute.max(memory_ns));
        Some(Floor { ns, compute_ns, memory_ns, roof, peak: kind })
    }
}

/// Why the work of a row is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnknownWork {
    /// Device work that no operator owns: replayed from a graph, launched outside any operator, or its launch is not in the trace.
    NoOperator,
    /// There is no formula for the operator.
    NoFormula,
    /// The trace recorded no input shapes for the call.
    NoShapes,
    /// The shapes or types are not as such an operator has them.
    UnreadableShapes,
    /// The element type of a tensor is not recorded or not known.
    UnknownType,
    /// A number that the formula needs (a stride, a size) was not recorded.
    MissingArgument,
    /// The amount of work depends on the data (a boolean mask as index, ...).
    DataDependent,
    /// The numbers are too large to be true.
    TooLarge,
    /// A copy from or to host memory, or between devices: the link limits it, and its peak is not known here.
    LinkTransfer,
    /// A collective: the network limits it, and it includes waiting for other ranks.
    Communication,
    /// The operator's work is counted where an operator inside it did it; this is what it launched besides.
    CountedInside,
}

impl UnknownWork {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoOperator => "no_operator",
            Self::NoFormula => "no_formula",
            Self::NoShapes => "no_shapes",
            Self::UnreadableShapes => "unreadable_shapes",
            Self::UnknownType => "unknown_type",
            Self::MissingArgument => "missing_argument",
            Self::DataDependent => "data_dependent",
            Self::TooLarge => "too_large",
            Self::LinkTransfer => "link_transfer",
            Self::Communication => "communication",
            Self::CountedInside => "counted_inside",
        }
    }
}

/// Adds up work with every step checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    pub(super) dtype: Dtype,
    pub(super) engine: Engine,
    flops: u128,
    flops_most: Option<u128>,
    bytes: u128,
    bytes_most: u128,
    bytes_written: Option<u128>,
}

/// A product that cannot overflow unnoticed.
pub(super) fn product(factors: &[u64]) -> Result<u128, UnknownWork> {
    factors.iter().try_fold(1_u128, |all, &factor| all.checked_mul(u128::from(factor))).ok_or(UnknownWork::TooLarge)
}

impl Tally {
    pub(super) fn new(dtype: Dtype, engine: Engine) -> Self {
        Self { dtype, engine, flops: 0, flops_most: None, bytes: 0, bytes_most: 0, bytes_written: None }
    }

    pub(super) fn flops(mut self, flops: u128) -> Self {
        self.flops = self.flops.saturating_add(flops);
        self
    }

    /// Says that the FLOPs may be as many as these.
    pub(super) fn flops_at_most(mut self, most: u128) -> Self {
        self.flops_most = Some(most);
        self
    }

    pub(super) fn bytes(mut self, bytes: u128) -> Self {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes_most = self.bytes_most.saturating_add(bytes);
        self
    }

    /// Bytes that are written.
    pub(super) fn written(mut self, bytes: u128) -> Self {
        self.bytes_written = Some(self.bytes_written.unwrap_or_default().saturating_add(bytes));
        self.bytes(bytes)
    }

    /// Says that a part of the bytes counted already, as those of an argument, is written.
    pub(super) fn of_which_written(mut self, bytes: u128) -> Self {
        self.bytes_written = Some(self.bytes_written.unwrap_or_default().saturating_add(bytes));
        self
    }

    /// Bytes that are written, of which only the bounds are known.
    pub(super) fn written_between(self, least: u128, most: u128) -> Self {
        self.of_which_written(least).bytes_between(least, most)
    }

    /// Bytes of which only the bounds are known.
    pub(super) fn bytes_between(mut self, least: u128, most: u128) -> Self {
        self.bytes = self.bytes.saturating_add(least);
        self.bytes_most = self.bytes_most.saturating_add(most.max(least));
        self
    }

    pub(super) fn finish(self) -> Result<Work, UnknownWork> {
        let narrow = |value: u128| u64::try_from(value).map_err(|_| UnknownWork::TooLarge);
        let (flops, bytes) = (narrow(self.flops)?, narrow(self.bytes)?);
        let flops_most = self.flops_most.map(narrow).transpose()?.filter(|&most| most > flops);
        let bytes_most = Some(narrow(self.bytes_most)?).filter(|&most| most > bytes);
        let bytes_written = self.bytes_written.map(narrow).transpose()?;
        Ok(Work { flops, flops_most, bytes, bytes_most, bytes_written, dtype: self.dtype, engine: self.engine })
    }
}
