//! The operators of serving engines against a calculation by hand.

use proptest::prelude::*;

use super::super::dtype::Dtype;
use super::super::work::{UnknownWork, Work};
use super::tests::{call, exact};

/// FLOPs and bytes, each with the least and the most.
fn bounds(operator: &str, inputs: &[&str]) -> [(u64, u64); 2] {
    let work = call(operator, inputs).unwrap();
    [(work.flops, work.flops_most.unwrap_or(work.flops)), (work.bytes, work.bytes_most.unwrap_or(work.bytes))]
}

#[test]
fn rotary_embedding() {
    // Half of 128 features turn: 3 x 4 x 64 of the queries, 3 x 2 x 64 of the keys, 3 FLOPs each. Positions 24 bytes; read and written
    // 4 x (768 + 384); one to three rows of 64 x 2 bytes.
    let inputs = ["i64[3]", "bf16[3, 512]", "bf16[3, 256]", "=128", "bf16[1000, 64]", "=True"];
    for operator in ["_C::rotary_embedding", "sgl_kernel::rotary_embedding"] {
        assert_eq!(bounds(operator, &inputs), [(3_456, 3_456), (24 + 4 * 1_152 + 128, 24 + 4 * 1_152 + 384)]);
    }
    let queries_alone = ["i64[3]", "bf16[3, 512]", "-", "=128", "bf16[1000, 64]", "=True"];
    assert_eq!(bounds("_C::rotary_embedding", &queries_alone)[0], (2_304, 2_304));
    let unsaid = ["i64[3]", "bf16[3, 512]", "bf16[3, 256]", "-", "bf16[1000, 64]"];
    assert_eq!(call("_C::rotary_embedding", &unsaid), Err(UnknownWork::MissingArgument));
    let wider = ["i64[3]", "bf16[3, 512]", "bf16[3, 256]", "=32", "bf16[1000, 64]"];
    assert_eq!(call("_C::rotary_embedding", &wider), Err(UnknownWork::UnreadableShapes));
}

#[test]
fn stores_into_the_cache() {
    // Slots 24 bytes; two tensors of 3 x 1024 elements read and written in bf16.
    let store = ["bf16[3, 1024]", "bf16[3, 1024]", "bf16[5000, 1024]", "bf16[5000, 1024]", "i64[3]", "=2048", "=0"];
    assert_eq!(exact("sglang::store_cache", &store), (0, 24 + 2 * 3 * 1024 * 4));
    // Four tokens, of which three have slots, into a cache of bytes.
    let cache = "unsigned char[10, 16, 8, 128]";
    let store = ["bf16[4, 8, 128]", "bf16[4, 8, 128]", cache, cache, "i64[3]", "=fp8", "float[]", "float[]"];
    assert_eq!(exact("_C_cache_ops::reshape_and_cache_flash", &store), (0, 24 + 2 * 3 * 1024 * 3));
    let latent = ["bf16[2, 512]", "bf16[2, 64]", "bf16[10, 16, 576]", "i64[2]", "=auto", "float[]"];
    assert_eq!(exact("_C_cache_ops::concat_and_cache_mla", &latent), (0, 16 + 2 * 2 * (512 + 64 + 576)));
}

#[test]
fn experts() {
    // 5 x 4 x 8 scores.
    let scores = ["float[4, 2]", "int[4, 2]", "int[4, 2]", "float[4, 8]"];
    assert_eq!(exact("_moe_C::topk_softmax", &scores), (160, 4 * (3 * 8 + 32)));
    let scores = ["float[4, 2]", "int[4, 2]", "float[4, 8]", "=True"];
    assert_eq!(exact("sgl_kernel::topk_softmax", &scores), (160, 4 * (2 * 8 + 32)));
    assert_eq!(exact("_moe_C::moe_sum", &["bf16[4, 2, 16]", "bf16[4, 16]"]), (128, 2 * (128 + 64)));
    // Eight visits, each 2 x (12 x 16 + 16 x 6). Tokens in and out 2 x 128 bytes, the choice 64, two to eight experts of 288 elements.
    let experts = ["bf16[4, 16]", "bf16[8, 12, 16]", "bf16[8, 16, 6]", "float[4, 2]", "int[4, 2]", "=silu"];
    assert_eq!(bounds("vllm::inplace_fused_experts", &experts), [(4_608, 4_608), (320 + 2 * 2 * 288, 320 + 2 * 8 * 288)]);
    let elsewhere = [&experts[..], &["=False", "int[16]"]].concat();
    assert_eq!(call("vllm::inplace_fused_experts", &elsewhere), Err(UnknownWork::DataDependent));
    let with_bias = [&experts[..], &["=False", "bf16[8, 12]"]].concat();
    assert!(call("vllm::outplace_fused_experts", &with_bias).is_ok());
    let packed = ["bf16[4, 16]", "int[8, 12, 2]", "int[8, 16, 1]", "float[4, 2]", "int[4, 2]"];
    assert_eq!(call("vllm::inplace_fused_experts", &packed), Err(UnknownWork::UnreadableShapes));
}

#[test]
fn quantised_products() {
    let flops = 2 * 16 * 64 * 32;
    let scaled = ["bf16[16, 64]", "fp8[16, 32]", "fp8[32, 64]", "float[16, 1]", "float[1, 64]", "-"];
    let work = call("_C::cutlass_scaled_mm", &scaled).unwrap();
    assert_eq!((work.flops, work.bytes, work.dtype), (flops, 2 * 1024 + 512 + 2048 + 4 * 80, Dtype::F8));
    // Two numbers a byte.
    let bytes = ["bf16[16, 64]", "unsigned char[16, 16]", "unsigned char[64, 16]", "fp8[16, 2]", "fp8[64, 2]", "float[]"];
    let work = call("_C::cutlass_scaled_fp4_mm", &bytes).unwrap();
    assert_eq!((work.flops, work.bytes, work.dtype), (flops, 2048 + 256 + 1024 + 160 + 4, Dtype::F4x2));
    let made = ["fp8[16, 32]", "fp8[32, 64]", "float[16, 1]", "float[64]", "=15", "-"];
    assert_eq!(exact("sgl_kernel::fp8_scaled_mm", &made), (flops, 512 + 2048 + 4 * 80 + 2 * 1024));
    let made = ["fp8[16, 32]", "fp8[64, 32]", "float[16, 1]", "float[64]", "-", "=15"];
    assert_eq!(exact("aiter::gemm_a8w8", &made), (flops, 512 + 2048 + 4 * 80 + 2 * 1024));
    // The type of the output was not recorded: 8 to 32 bits.
    let made = ["fp8[16, 32]", "fp8[64, 32]", "float[16, 1]", "float[64]"];
    assert_eq!(bounds("aiter::gemm_a8w8_blockscale", &made)[1], (2_880 + 1024, 2_880 + 4096));
    let plain = ["bf16[32, 4096]", "bf16[6144, 4096]", "-", "=15", "-", "-", "-"];
    assert_eq!(exact("aiter::gemm_a16w16", &plain), (1_610_612_736, 2 * (131_072 + 25_165_824 + 196_608)));
    assert_eq!(exact("vllm::rocm_unquantized_gemm", &plain[..3]), (1_610_612_736, 2 * (131_072 + 25_165_824 + 196_608)));
    let awq = ["fp16[1, 128]", "int[128, 8]", "fp16[1, 64]", "int[1, 8]", "=8"];
    assert_eq!(exact("_C::awq_gemm", &awq), (16_384, 256 + 4096 + 128 + 32 + 128));
    let gptq = ["fp16[1, 128]", "int[16, 64]", "int[1, 8]", "fp16[1, 64]", "int[128]", "=True", "=4"];
    assert_eq!(exact("_C::gptq_gemm", &gptq), (16_384, 256 + 4096 + 32 + 128 + 512 + 128));
    let mismatch = ["bf16[16, 64]", "fp8[16, 32]", "fp8[31, 64]", "float[]", "float[]"];
    assert_eq!(call("_C::cutlass_scaled_mm", &mismatch), Err(UnknownWork::UnreadableShapes));
    assert_eq!(call("sgl_kernel::fp8_scaled_mm", &["fp8[16, 32]", "fp8[64, 32]"]), Err(UnknownWork::UnreadableShapes));
}

#[test]
fn quantising() {
    assert_eq!(exact("_C::static_scaled_fp8_quant", &["fp8[4, 8]", "bf16[4, 8]", "float[1]"]), (64, 32 + 64 + 4));
    assert_eq!(exact("sgl_kernel::sgl_per_token_quant_fp8", &["bf16[4, 8]", "fp8[4, 8]", "float[4]"]), (64, 64 + 32 + 16));
    assert_eq!(exact("_C::silu_and_mul_quant", &["fp8[4, 8]", "bf16[4, 16]", "float[1]"]), (96, 32 + 128 + 4));
    let norm = ["fp8[4, 8]", "bf16[4, 8]", "bf16[8]", "float[1]", "=1e-6"];
    assert_eq!(exact("_C::rms_norm_static_fp8_quant", &norm), (128, 32 + 64 + 16 + 4));
    // The residual is read and written.
    let norm = ["fp8[4, 8]", "bf16[4, 8]", "bf16[4, 8]", "bf16[8]", "float[1]", "=1e-6"];
    assert_eq!(exact("_C::fused_add_rms_norm_static_fp8_quant", &norm), (160, 32 + 64 + 2 * 64 + 16 + 4));
    let norm = ["fp8[4, 8]", "bf16[4, 8]", "bf16[8]", "float[4, 1]", "=1e-6", "-", "bf16[4, 8]"];
    assert_eq!(exact("_C::rms_norm_dynamic_per_token_quant", &norm), (160, 32 + 64 + 16 + 16 + 2 * 64));
    assert_eq!(exact("_C::rms_norm_dynamic_per_token_quant", &norm[..6]), (160, 32 + 64 + 16 + 16));
}

#[test]
fn engine_activations() {
    for operator in ["_C::gelu_tanh_and_mul", "flashinfer::silu_and_mul", "aiter::silu_and_mul", "_C::swigluoai_and_mul"] {
        assert_eq!(exact(operator, &["bf16[2, 8]", "bf16[2, 16]"]), (32, 32 + 64), "{operator}");
    }
    assert_eq!(exact("_C::gelu_new", &["bf16[2, 8]", "bf16[2, 8]"]), (16, 64));
}

/// Packed attention: `T` queries of 4 heads and 16 features in `B` sequences, with the arguments where an operator has them.
struct Packed {
    queries: u64,
    sequences: u64,
    longest: [u64; 2],
    causal: &'static str,
    window: &'static str,
}

const PROMPTS: Packed = Packed { queries: 8, sequences: 2, longest: [4, 4], causal: "=True", window: "=-1" };

impl Packed {
    /// `places` are those of lengths, longest query, causal and left window; `pages` that of a table of pages.
    fn call(&self, operator: &str, keys: &str, places: [usize; 4], pages: Option<usize>) -> Result<Work, UnknownWork> {
        let [lengths, longest, causal, window] = places;
        let mut inputs = vec!["-".to_owned(); 30];
        inputs[0] = format!("bf16[{}, 4, 16]", self.queries);
        inputs[1] = format!("bf16[{keys}, 2, 16]");
        inputs[2] = inputs[1].clone();
        inputs[lengths] = format!("int[{}]", self.sequences + 1);
        inputs[longest] = format!("={}", self.longest[0]);
        inputs[longest + 1] = format!("={}", self.longest[1]);
        self.causal.clone_into(&mut inputs[causal]);
        self.window.clone_into(&mut inputs[window]);
        if let Some(pages) = pages {
            inputs[pages] = "int[8]".to_owned();
        }
        call(operator, &inputs.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Pairs of query and key, least and most: 2 x 4 heads x (16 + 16) FLOPs each.
    fn pairs(&self, keys: &str, pages: bool) -> Result<(u64, u64), UnknownWork> {
        let work = self.call("flash_attn::_flash_attn_varlen_forward", keys, [3, 5, 9, 10], pages.then_some(15))?;
        Ok((work.flops / 256, work.flops_most.unwrap_or(work.flops) / 256))
    }
}

#[test]
fn packed_prompts_of_one_length() {
    // Two prompts of four: 2 x 10 pairs. Queries and output 2 x 1024 bytes; eight keys and values of 2 heads.
    for (operator, keys, places, pages) in [
        ("aiter::mha_batch_prefill", "100", [3, 6, 12, 13], Some(5)),
        ("aiter::mha_varlen_fwd", "8", [3, 5, 12, 13], None),
        ("aten::_flash_attention_forward", "8", [3, 5, 8, 11], None),
        ("flash_attn::_flash_attn_varlen_forward", "8", [3, 5, 9, 10], None),
        ("flash_attn::_flash_attn_varlen_forward", "6, 16", [3, 5, 9, 10], Some(15)),
        ("_vllm_fa2_C::varlen_fwd", "6, 16", [4, 10, 15, 16], Some(8)),
        ("_vllm_fa3_C::fwd", "6, 16", [7, 12, 24, 25], Some(14)),
        ("sgl_kernel::fwd", "6, 16", [7, 12, 24, 25], Some(14)),
    ] {
        let work = PROMPTS.call(operator, keys, places, pages).unwrap();
        assert_eq!((work.flops, work.flops_most, work.bytes, work.bytes_most), (5_120, None, 2 * 1024 + 8 * 128, None), "{operator}");
    }
}

#[test]
fn packed_prompts_of_several_lengths() {
    // Four and two, and no more keys than queries: 10 + 3 of 12 to 15. With up to four keys each: 10 + 7 of 12 to 18.
    let mixed = Packed { queries: 6, ..PROMPTS };
    assert_eq!(mixed.pairs("6", false), Ok((12, 15)));
    assert_eq!(mixed.pairs("6, 16", true), Ok((12, 18)));
    let whole = Packed { causal: "=False", ..PROMPTS };
    assert_eq!(whole.pairs("10", false), Ok((40, 40)), "four queries see all ten keys");
    assert_eq!(Packed { queries: 6, ..whole }.pairs("10", false), Err(UnknownWork::DataDependent));
    // One query each, up to a hundred keys.
    let decode = Packed { queries: 2, longest: [1, 100], ..PROMPTS };
    assert_eq!(decode.pairs("6, 16", true), Err(UnknownWork::DataDependent));
    assert_eq!(Packed { window: "=2", ..PROMPTS }.pairs("8", false), Err(UnknownWork::DataDependent));
    assert_eq!(Packed { window: "=3", ..PROMPTS }.pairs("8", false), Ok((20, 20)), "the window holds the longest");
    assert_eq!(Packed { causal: "-", ..PROMPTS }.pairs("8", false), Err(UnknownWork::MissingArgument));
    assert_eq!(Packed { longest: [u64::MAX >> 1, 4], ..PROMPTS }.pairs("8", false), Err(UnknownWork::TooLarge));
    assert_eq!(PROMPTS.pairs("8, 2, 2", true), Err(UnknownWork::UnreadableShapes));
}

proptest! {
    /// Whatever the lengths are, the true number of pairs is within the bounds, packed keys or keys in pages.
    #[test]
    fn pairs_are_within_their_bounds(lengths in proptest::collection::vec((1..60_u64, 0..20_u64), 1..6)) {
        let keys = |&(queries, earlier): &(u64, u64)| queries + earlier;
        let pairs: u64 = lengths.iter().map(|length| length.0 * keys(length) - length.0 * (length.0 - 1) / 2).sum();
        let call = Packed {
            queries: lengths.iter().map(|length| length.0).sum(),
            sequences: lengths.len() as u64,
            longest: [lengths.iter().map(|length| length.0).max().unwrap(), lengths.iter().map(keys).max().unwrap()],
            ..PROMPTS
        };
        let all_keys: u64 = lengths.iter().map(keys).sum();
        for found in [call.pairs(&all_keys.to_string(), false), call.pairs("1000, 16", true)] {
            match found {
                Ok((least, most)) => prop_assert!(least <= pairs && pairs <= most && most <= 2 * least),
                Err(reason) => prop_assert_eq!(reason, UnknownWork::DataDependent),
            }
        }
    }
}

#[test]
fn attention_whose_lengths_are_not_recorded() {
    for operator in ["vllm::unified_attention_with_output", "_C::paged_attention_v1"] {
        assert_eq!(call(operator, &["bf16[8, 512]", "bf16[8, 128]", "bf16[8, 128]"]), Err(UnknownWork::DataDependent), "{operator}");
    }
    // FlashAttention 3 on a batch of one length; with keys to append, or in pages of unknown length.
    let mut batch = vec!["-"; 30];
    batch[..3].copy_from_slice(&["bf16[1, 8, 16, 128]", "bf16[1, 8, 2, 128]", "bf16[1, 8, 2, 128]"]);
    batch[24] = "=True";
    assert_eq!(exact("sgl_kernel::fwd", &batch), (294_912, 2 * (2 * 16_384 + 2 * 2_048)));
    for at in [3, 11, 14] {
        let mut given = batch.clone();
        given[at] = "int[1]";
        assert_eq!(call("sgl_kernel::fwd", &given), Err(UnknownWork::DataDependent), "{at}");
    }
    batch[5] = "bf16[1, 8, 16, 128]";
    assert_eq!(call("sgl_kernel::fwd", &batch), Err(UnknownWork::NoFormula));
}
