//! The formulas: what each operator must compute and move, one file a family.
//!
//! Arithmetic counts a multiply-add as two. Bytes count every input read once and every output written once, at the size it is stored in:
//! an expanded dimension is stored once. Where the trace leaves the amount open, the least is taken, so that a floor is never too high, and
//! the most is kept beside it.

mod attention;
mod convolution;
mod copies;
mod elementwise;
mod indexing;
mod matmul;
mod norm;
mod packed;
mod quantised;
mod reduction;
mod serving;
mod softmax;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_serving;

use super::shapes::{Inputs, Tensor};
use super::work::{Tally, UnknownWork, Work};

pub use matmul::gemm_work;

/// What kind of formula a row's work was worked out with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkFamily {
    /// Matrix products.
    Matmul,
    /// Attention.
    Attention,
    /// Convolutions.
    Convolution,
    /// Norms.
    Norm,
    /// Softmax.
    Softmax,
    /// Elementwise arithmetic.
    Elementwise,
    /// Copies, casts, fills, concatenations.
    Copy,
    /// Embeddings, gathers and scatters.
    Indexing,
    /// Reductions, sorts and scans.
    Reduction,
}

impl WorkFamily {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Matmul => "matmul",
            Self::Attention => "attention",
            Self::Convolution => "convolution",
            Self::Norm => "norm",
            Self::Softmax => "softmax",
            Self::Elementwise => "elementwise",
            Self::Copy => "copy",
            Self::Indexing => "indexing",
            Self::Reduction => "reduction",
        }
    }
}

type Outcome = Result<Work, UnknownWork>;

/// One line of a family's table.
pub(super) struct Formula {
    names: &'static [&'static str],
    pub(super) family: WorkFamily,
    pub(super) work: fn(&Inputs) -> Outcome,
}

const TABLES: [&[Formula]; 12] = [
    matmul::TABLE,
    attention::TABLE,
    convolution::TABLE,
    norm::TABLE,
    softmax::TABLE,
    elementwise::TABLE,
    copies::TABLE,
    indexing::TABLE,
    reduction::TABLE,
    packed::TABLE,
    quantised::TABLE,
    serving::TABLE,
];

/// The formula of an operator. Names without a namespace are torch's own (`aten::`), whose in-place form (`add_`) has the same formula;
/// others are written with theirs.
pub(super) fn formula(operator: &str) -> Option<&'static Formula> {
    let name = match operator.split_once("::")? {
        ("aten", name) => name,
        _ => operator,
    };
    let exact = |name: &str| TABLES.iter().copied().flatten().find(|formula| formula.names.contains(&name));
    exact(name).or_else(|| exact(name.strip_suffix('_')?))
}

/// Adds the bytes of tensors that are each read or written once.
fn moved<'a>(mut tally: Tally, tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<Tally, UnknownWork> {
    for tensor in tensors {
        tally = tally.bytes(tensor.stored_bytes()?);
    }
    Ok(tally)
}
