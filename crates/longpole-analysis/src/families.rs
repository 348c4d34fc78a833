//! Kernel families: one documented rule table over kernel names.

use longpole_trace::Ns;

/// What a kernel does, judged by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Matrix products.
    Gemm,
    /// Attention.
    Attention,
    /// Normalisation.
    Norm,
    /// Elementwise arithmetic.
    Elementwise,
    /// Copies and casts done by kernels.
    CopyCast,
    /// Gathers, scatters, indexing, embedding.
    GatherScatter,
    /// Reductions.
    Reduction,
    /// Softmax, argmax, top-k, sampling.
    SoftmaxSampling,
    /// Collectives.
    Communication,
    /// Memory copies by the copy engine.
    Memcpy,
    /// Memory fills.
    Memset,
    /// Anything else.
    Other,
}

impl Family {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gemm => "gemm/gemv",
            Self::Attention => "attention",
            Self::Norm => "norm",
            Self::Elementwise => "elementwise",
            Self::CopyCast => "copy/cast",
            Self::GatherScatter => "gather/scatter",
            Self::Reduction => "reduction",
            Self::SoftmaxSampling => "softmax/sampling",
            Self::Communication => "communication",
            Self::Memcpy => "memcpy",
            Self::Memset => "memset",
            Self::Other => "other",
        }
    }
}

/// One row of the family table.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyRow {
    /// The family.
    pub family: Family,
    /// Device activities in it.
    pub calls: u64,
    /// Their summed duration.
    pub self_cuda_ns: Ns,
    /// Its share of the summed duration of all device activity in scope, 0..1; absent when that is zero.
    pub share_fraction: Option<f64>,
}
