//! Sums by family.

use longpole_trace::{Ns, Trace};

use super::Sums;
use super::kernels::{self, KernelSum};
use crate::families::Family;
use crate::scope::Scope;

/// All kernels and layers of one family.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilySum {
    /// The family.
    pub family: Family,
    /// Calls; absent when one of the counts is.
    pub calls: Option<u64>,
    /// Device time.
    pub self_cuda_ns: Option<Ns>,
    /// Its share of all device time in scope, 0..1; absent when there is none.
    pub share_fraction: Option<f64>,
}

/// What the parts of a fused layer's name say that it does, heaviest first: the first that occurs decides. Names are those that TensorRT makes of
/// ONNX nodes (`Conv_12`, `/layer1/conv1/Conv`) and of its own additions (`PWN` is a pointwise network, `Reformatting CopyNode` a copy).
const LAYERS: &[(&[&str], Family)] = &[
    (&["fmha", "_mha", "attention"], Family::Attention),
    (&["conv", "gemm", "matmul", "fullyconnected", "deconv"], Family::Gemm),
    (&["layernorm", "batchnorm", "instancenorm", "groupnorm", "normalization", "rmsnorm"], Family::Norm),
    (&["softmax", "topk", "argmax", "nonmaxsuppression"], Family::SoftmaxSampling),
    (&["gather", "scatter", "slice", "onehot"], Family::GatherScatter),
    (&["reduce", "pool"], Family::Reduction),
    (&["reformat", "shuffle", "transpose", "reshape", "quantize", "cast", "concat", "resize"], Family::CopyCast),
    (&["pwn", "relu", "clip", "sigmoid", "add", "mul", "elementwise", "erf", "gelu"], Family::Elementwise),
];

/// How the parts of a name end that are no operations.
const CONSTANTS: [&str; 2] = [".weight", ".bias"];

/// What a layer does, judged by its name.
pub fn layer_family(name: &str) -> Family {
    let name = name.to_lowercase();
    // A copy is named after the layer that it is made for.
    if name.starts_with("reformatting copynode") {
        return Family::CopyCast;
    }
    // A fused weight is a constant, and its path says nothing about what is done with it.
    let parts: Vec<&str> = name.split(" + ").filter(|part| !CONSTANTS.iter().any(|end| part.ends_with(end))).collect();
    let does = |patterns: &[&str]| parts.iter().any(|part| patterns.iter().any(|pattern| part.contains(pattern)));
    LAYERS.iter().find(|(patterns, _)| does(patterns)).map_or(Family::Other, |&(_, family)| family)
}

/// The families that occur in a scope, most device time first.
pub fn family_sums(trace: &Trace, scope: &Scope) -> Vec<FamilySum> {
    rows(&kernels::rows(&Sums::new(trace, scope)))
}

pub(super) fn rows(kernels: &[KernelSum]) -> Vec<FamilySum> {
    let mut sums: Vec<Option<(Option<u64>, Option<Ns>)>> = vec![None; Family::ALL.len()];
    for row in kernels {
        let (calls, time) = sums[row.family as usize].get_or_insert((Some(0), None));
        *calls = calls.zip(row.calls).map(|(a, b)| a.saturating_add(b));
        if let Some(own) = row.cuda_ns {
            *time.get_or_insert_default() += own;
        }
    }
    let total: Ns = kernels.iter().filter_map(|row| row.cuda_ns).sum();
    let share = |time: Ns| (total > Ns::ZERO).then(|| time.get() as f64 / total.get() as f64);
    let mut rows: Vec<FamilySum> = Family::ALL
        .iter()
        .zip(sums)
        .filter_map(|(&family, sum)| {
            let (calls, time) = sum?;
            Some(FamilySum { family, calls, self_cuda_ns: time, share_fraction: time.and_then(share) })
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.self_cuda_ns));
    rows
}
