//! What a collective does, from whatever names it, and how large its elements are.

use crate::roofline::Dtype;

/// What a collective does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectiveKind {
    /// Every rank gets the reduction of all.
    AllReduce,
    /// Every rank gets the parts of all.
    AllGather,
    /// Every rank gets a part of the reduction.
    ReduceScatter,
    /// Every rank sends a part to every other.
    AllToAll,
    /// Every rank gets what one has.
    Broadcast,
    /// One rank gets the reduction of all.
    Reduce,
    /// One rank gets the parts of all.
    Gather,
    /// One rank sends every other a part.
    Scatter,
    /// Ranks wait for each other.
    Barrier,
    /// From rank to rank.
    SendReceive,
    /// Not told.
    Other,
}

/// Words in names, with `_`, `-` and case removed; the first that is found decides.
///
/// Sources: NCCL's and RCCL's kernel names (`ncclDevKernel_AllReduce_Sum_f16_RING_LL`), the `Collective name` argument and the operators of
/// torch's `ProcessGroupNCCL.cpp` (`_allgather_base`, `c10d::alltoall_base_`), and the kernels of vLLM, FlashInfer and TensorRT-LLM
/// (`cross_device_reduce_1stage`, `two_shot_all_reduce`, `multimem_all_reduce`).
const WORDS: &[(&str, CollectiveKind)] = &[
    ("reducescatter", CollectiveKind::ReduceScatter),
    ("allreduce", CollectiveKind::AllReduce),
    ("crossdevicereduce", CollectiveKind::AllReduce),
    ("allgather", CollectiveKind::AllGather),
    ("alltoall", CollectiveKind::AllToAll),
    ("barrier", CollectiveKind::Barrier),
    ("broadcast", CollectiveKind::Broadcast),
    ("sendrecv", CollectiveKind::SendReceive),
    ("send", CollectiveKind::SendReceive),
    ("recv", CollectiveKind::SendReceive),
    ("gather", CollectiveKind::Gather),
    ("scatter", CollectiveKind::Scatter),
    ("reduce", CollectiveKind::Reduce),
];

impl CollectiveKind {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllToAll => "all_to_all",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Barrier => "barrier",
            Self::SendReceive => "send_receive",
            Self::Other => "other",
        }
    }

    /// The kind that a name tells.
    pub(super) fn of(name: &str) -> Self {
        let head = &name[..name.find(['<', '(']).unwrap_or(name.len())];
        let plain: String = head.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        WORDS.iter().find(|(word, _)| plain.contains(word)).map_or(Self::Other, |(_, kind)| *kind)
    }

    /// Whether no rank can leave before all have entered, and all leave about together: then ends tell clock offsets.
    pub(super) const fn ends_together(self) -> bool {
        matches!(self, Self::AllReduce | Self::AllGather | Self::ReduceScatter | Self::AllToAll | Self::Barrier)
    }
}

/// Bytes of an element, by the names of torch's scalar types, as `dtype` gives them, or of C++'s, as operators' input types do.
pub(super) fn element_bytes(dtype: &str) -> Option<u64> {
    let of_scalar_type = match dtype {
        "Byte" | "Char" => Some(Dtype::I8),
        "Bool" => Some(Dtype::Bool),
        "Short" => Some(Dtype::I16),
        "Int" => Some(Dtype::I32),
        "Long" => Some(Dtype::I64),
        "Float" => Some(Dtype::F32),
        "Double" => Some(Dtype::F64),
        "ComplexFloat" => Some(Dtype::C64),
        "ComplexDouble" => Some(Dtype::C128),
        // Half, BFloat16 and the types of 8 bits are called the same in both.
        other => Dtype::from_type_name(&format!("c10::{other}")),
    };
    of_scalar_type.or_else(|| Dtype::from_type_name(dtype)).map(Dtype::bytes)
}

/// Elements of the first input in a canonical list of shapes: `[[2, 3], []]` and `[[[2, 3]], []]` have six; a list of tensors is their sum.
pub(super) fn first_input_elements(shapes: &str) -> Option<u64> {
    let mut depth = 0_u32;
    let (mut sum, mut product, mut number) = (0_u64, None::<u64>, None::<u64>);
    for byte in shapes.bytes() {
        match byte {
            b'[' => depth += 1,
            b'0'..=b'9' => number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(u64::from(byte - b'0'))?),
            b',' | b']' => {
                if let Some(dimension) = number.take() {
                    product = Some(product.unwrap_or(1).checked_mul(dimension)?);
                }
                if byte == b']' {
                    sum = sum.checked_add(product.take().unwrap_or(0))?;
                    depth = depth.checked_sub(1)?;
                    if depth <= 1 {
                        break;
                    }
                }
            }
            b' ' => {}
            _ => return None,
        }
    }
    (sum > 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_the_names_that_libraries_give() {
        for (name, kind) in [
            ("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", CollectiveKind::AllReduce),
            ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", CollectiveKind::SendReceive),
            ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", CollectiveKind::ReduceScatter),
            ("ncclDevKernel_Reduce_Sum_f32_RING_LL", CollectiveKind::Reduce),
            ("ncclDevKernel_Broadcast_RING_LL", CollectiveKind::Broadcast),
            ("_allgather_base", CollectiveKind::AllGather),
            ("c10d::alltoall_base_", CollectiveKind::AllToAll),
            ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)", CollectiveKind::AllReduce),
            ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", CollectiveKind::Other),
        ] {
            assert_eq!(CollectiveKind::of(name), kind, "{name}");
        }
    }

    #[test]
    fn sizes_of_elements_and_inputs() {
        assert_eq!([element_bytes("Half"), element_bytes("c10::BFloat16"), element_bytes("long int")], [Some(2), Some(2), Some(8)]);
        assert_eq!([element_bytes("Float8_e4m3fn"), element_bytes("TensorList")], [Some(1), None]);
        assert_eq!(first_input_elements("[[512, 4096], [], []]"), Some(2_097_152));
        assert_eq!(first_input_elements("[[[2, 3], [4]], [7]]"), Some(10));
        assert_eq!(first_input_elements("[[], [524288], []]"), None, "the first input has no shape");
        assert_eq!(first_input_elements("[[9999999999, 9999999999]]"), None);
        for odd in ["", "]", "[[2, x]]", "[[-1]]"] {
            assert_eq!(first_input_elements(odd), None, "{odd}");
        }
    }
}
