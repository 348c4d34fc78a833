//! Each family against a calculation by hand.

use proptest::prelude::*;

use super::super::dtype::Dtype;
use super::super::shapes::{Inputs, RecordedInputs};
use super::super::work::{Engine, UnknownWork, Work};
use super::{TABLES, WorkFamily, formula, gemm_work};

/// Works out a call; inputs are written `bf16[1, 2] list[[1, 2], [3]] =value -`: a tensor, a list of tensors, a plain value, an absent
/// argument.
pub(super) fn call(operator: &str, inputs: &[&str]) -> Result<Work, UnknownWork> {
    call_with(operator, inputs, None, None)
}

fn call_with(operator: &str, inputs: &[&str], strides: Option<&str>, kernel: Option<&str>) -> Result<Work, UnknownWork> {
    let (mut shapes, mut types, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for input in inputs {
        let (shape, name, value) = match (input.strip_prefix('='), input.split_once('[')) {
            (Some(value), _) => ("[]", "Scalar", value),
            (None, Some((name, rest))) => (&input[input.len() - rest.len() - 1..], name, ""),
            (None, None) => ("[]", "", ""),
        };
        let name = match name {
            "bf16" => "c10::BFloat16",
            "fp16" => "c10::Half",
            "fp8" => "c10::Float8_e4m3fn",
            "i64" => "long int",
            "list" => "TensorList",
            other => other,
        };
        shapes.push(shape.to_owned());
        types.push(format!("\"{name}\""));
        values.push(format!("\"{value}\""));
    }
    let text = |list: &[String]| format!("[{}]", list.join(", "));
    let (shapes, types, values) = (text(&shapes), text(&types), text(&values));
    let recorded = RecordedInputs { shapes: Some(&shapes), types: Some(&types), strides, values: Some(&values), kernel };
    let formula = formula(operator).ok_or(UnknownWork::NoFormula)?;
    (formula.work)(&Inputs::read(recorded)?)
}

/// FLOPs and bytes, both known exactly.
pub(super) fn exact(operator: &str, inputs: &[&str]) -> (u64, u64) {
    let work = call(operator, inputs).unwrap();
    assert_eq!((work.flops_most, work.bytes_most), (None, None), "{operator} {inputs:?}");
    (work.flops, work.bytes)
}

#[test]
fn matrix_products() {
    // 2 x 1 x 1024 x 3072 FLOPs; (1024 + 1024 x 3072 + 3072) x 2 bytes.
    let (flops, bytes) = (6_291_456, 6_299_648);
    assert_eq!(exact("aten::mm", &["bf16[1, 1024]", "bf16[1024, 3072]"]), (flops, bytes));
    assert_eq!(exact("aten::mm", &["bf16[1, 1024]", "bf16[1024, 3072]", "bf16[1, 3072]"]), (flops, bytes), "with the output given");
    assert_eq!(exact("aten::addmm", &["bf16[3072]", "bf16[1, 1024]", "bf16[1024, 3072]", "=1", "=1"]), (flops, bytes + 6144));
    assert_eq!(exact("aten::linear", &["bf16[1, 1, 1024]", "bf16[3072, 1024]", "-"]), (flops, bytes));
    assert_eq!(exact("aten::linear", &["bf16[1, 1, 1024]", "bf16[3072, 1024]", "bf16[3072]"]), (flops, bytes + 6144));
    assert_eq!(exact("aten::matmul", &["bf16[1024]", "bf16[1024, 3072]"]), (flops, bytes));
    // 8 matrices: 8 x 2 x 4 x 5 x 6; 8 x (4 x 5 + 5 x 6 + 4 x 6) x 4.
    assert_eq!(exact("aten::bmm", &["float[8, 4, 5]", "float[8, 5, 6]"]), (1920, 2368));
    assert_eq!(exact("aten::baddbmm", &["float[8, 4, 6]", "float[8, 4, 5]", "float[8, 5, 6]", "=1", "=1"]), (1920, 2368 + 768));
    // The second operand is broadcast over the batch and read once.
    assert_eq!(exact("aten::matmul", &["float[8, 4, 5]", "float[5, 6]"]), (1920, 4 * (160 + 30 + 192)));
    assert_eq!(exact("aten::mv", &["float[4, 5]", "float[5]"]), (40, 4 * (20 + 5 + 4)));
    // fp8 in, bf16 (15) out, two scales.
    let scaled = call("aten::_scaled_mm", &["fp8[16, 32]", "fp8[32, 64]", "float[]", "float[]", "-", "-", "=15"]).unwrap();
    assert_eq!((scaled.flops, scaled.bytes, scaled.dtype), (65_536, 512 + 2048 + 8 + 2048, Dtype::F8));
    assert_eq!(call("aten::mm", &["bf16[1, 1024]", "bf16[1000, 3072]"]), Err(UnknownWork::UnreadableShapes));
    let gemm = gemm_work(1, 3072, 1024, Dtype::Bf16).unwrap();
    assert_eq!((gemm.flops, gemm.bytes, gemm.engine), (flops, bytes, Engine::Tensor));
    assert_eq!(gemm_work(u64::MAX, u64::MAX, u64::MAX, Dtype::F32), Err(UnknownWork::TooLarge));
}

#[test]
fn attention() {
    let qkv = ["bf16[1, 16, 8, 128]", "bf16[1, 2, 8, 128]", "bf16[1, 2, 8, 128]"];
    // Q and output 16 x 8 x 128, K and V 2 x 8 x 128 elements of 2 bytes.
    let bytes = 2 * (2 * 16_384 + 2 * 2_048);
    let with = |rest: &[&'static str]| [&qkv[..], rest].concat();
    // 2 x 16 heads x 64 pairs x (128 + 128).
    assert_eq!(exact("aten::scaled_dot_product_attention", &with(&["-", "=0.", "=False"])), (524_288, bytes));
    // 36 of 64 pairs.
    assert_eq!(exact("aten::scaled_dot_product_attention", &with(&["-", "=0.", "=True"])), (294_912, bytes));
    assert_eq!(exact("aten::_scaled_dot_product_flash_attention", &with(&["=0.", "=True"])), (294_912, bytes));
    assert_eq!(exact("aten::_scaled_dot_product_cudnn_attention", &with(&["-", "=False", "=0.", "=True"])), (294_912, bytes));
    assert_eq!(
        exact("aten::_cudnn_attention_forward", &with(&["bf16[1, 1, 8, 8]", "-", "-", "=8", "=8", "=False", "=0.", "=False"])),
        (524_288, bytes + 128)
    );
    // Not recorded whether causal: from 36 to 64 pairs.
    let unsaid = call("aten::_scaled_dot_product_flash_attention", &qkv).unwrap();
    assert_eq!((unsaid.flops, unsaid.flops_most), (294_912, Some(524_288)));
    // Positions before heads.
    let flash = ["bf16[1, 8, 16, 128]", "bf16[1, 8, 2, 128]", "bf16[1, 8, 2, 128]", "-", "-", "=8", "=8", "=0.", "=False"];
    assert_eq!(exact("aten::_flash_attention_forward", &flash), (524_288, bytes));
    let packed = [&flash[..3], &["int[3]", "int[3]", "=8", "=8", "=0.", "=False"]].concat();
    assert_eq!(call("aten::_flash_attention_forward", &packed), Err(UnknownWork::UnreadableShapes), "packed, but in a batch");
    // Two queries, four keys: 1 + 2 pairs from the top left, 3 + 4 from the bottom right.
    let chunk = ["bf16[1, 1, 2, 4]", "bf16[1, 1, 4, 4]", "bf16[1, 1, 4, 4]", "-", "=0.", "=True"];
    let chunk = call("aten::scaled_dot_product_attention", &chunk).unwrap();
    assert_eq!((chunk.flops, chunk.flops_most), (2 * 3 * 8, Some(2 * 7 * 8)));
    // One query of a decode step sees every key, causal or not.
    let decode = ["bf16[1, 16, 1, 128]", "bf16[1, 8, 1025, 128]", "bf16[1, 8, 1025, 128]", "-", "=0.", "=False"];
    assert_eq!(exact("aten::scaled_dot_product_attention", &decode), (2 * 16 * 1025 * 256, 2 * (2 * 2048 + 2 * 8 * 1025 * 128)));
    assert_eq!(
        call("aten::scaled_dot_product_attention", &["bf16[1, 16, 1, 128]", "bf16[1, 5, 9, 128]", "bf16[1, 5, 9, 128]"]),
        Err(UnknownWork::UnreadableShapes)
    );
}

#[test]
fn convolutions() {
    // 224 + 2 x 3 - 7 = 223, / 2 = 111, + 1 = 112; 2 x 64 x 112^2 x 3 x 49 FLOPs.
    let (input, weight) = ("float[1, 3, 224, 224]", "float[64, 3, 7, 7]");
    let want = (236_027_904, 4 * (150_528 + 9_408 + 802_816));
    assert_eq!(exact("aten::conv2d", &[input, weight, "-", "=[2, 2]", "=[3, 3]", "=[1, 1]", "=1"]), want);
    assert_eq!(exact("aten::cudnn_convolution", &[input, weight, "=[3, 3]", "=[2, 2]", "=[1, 1]", "=1"]), want);
    assert_eq!(exact("aten::miopen_convolution", &[input, weight, "-", "=[3, 3]", "=[2, 2]", "=[1, 1]", "=1"]), want);
    assert_eq!(call("aten::cudnn_convolution", &[input, weight]), Err(UnknownWork::MissingArgument));
    // Depthwise, 8 groups, dilation 2: 10 - 2 x 2 = 6; 2 x 8 x 36 x 1 x 9.
    let depthwise = ["float[1, 8, 10, 10]", "float[8, 1, 3, 3]", "-", "=[1]", "=[0]", "=[2]", "=False", "=[0]", "=8"];
    assert_eq!(exact("aten::convolution", &depthwise), (5_184, 4 * (800 + 72 + 288)));
    assert_eq!(
        exact("aten::conv1d", &["float[2, 4, 9]", "float[5, 4, 3]", "-", "=[1]", "=same", "=[1]", "=1"]),
        (2_160, 4 * (72 + 60 + 90))
    );
    // Transposed: (4 - 1) x 2 + 2 - 1 + 1 = 8; 2 x (16 x 4) x 6 x 4.
    let transposed = ["float[1, 4, 4, 4]", "float[4, 6, 2, 2]", "-", "=[2, 2]", "=[0, 0]", "=[1, 1]", "=True", "=[0, 0]", "=1"];
    assert_eq!(exact("aten::convolution", &transposed), (3_072, 4 * (64 + 96 + 384)));
    // Both gradients: twice the forward pass; the gradient, input and weight read, and two of them written.
    let backward = |mask: &'static str| {
        let rest = ["=[0]", "=[1, 1]", "=[1, 1]", "=[1, 1]", "=False", "=[0, 0]", "=1", mask];
        exact("aten::convolution_backward", &[&["float[1, 6, 5, 5]", "float[1, 4, 5, 5]", "float[6, 4, 3, 3]"][..], &rest].concat())
    };
    assert_eq!(backward("=[True, True, False]"), (2 * 10_800, 4 * (150 + 2 * 100 + 2 * 216)));
    assert_eq!(backward("=[False, True, False]"), (10_800, 4 * (150 + 100 + 216)));
    assert_eq!(
        call("aten::conv2d", &[input, weight, "-", "=[0, 0]", "=[3, 3]", "=[1, 1]", "=1"]),
        Err(UnknownWork::UnreadableShapes),
        "a stride of zero"
    );
}

#[test]
fn norms() {
    // 2 x 64 elements: in and out of 2 bytes, weight and bias, two fp32 numbers for each of 2 rows.
    assert_eq!(
        exact("aten::native_layer_norm", &["bf16[2, 64]", "=[64]", "bf16[64]", "bf16[64]", "=1e-5"]),
        (1_024, 2 * 256 + 2 * 128 + 16)
    );
    assert_eq!(exact("aten::rms_norm", &["bf16[2, 64]", "=[64]", "bf16[64]", "=1e-6"]), (512, 2 * 256 + 128));
    assert_eq!(
        exact("aten::native_group_norm", &["float[2, 4, 8]", "float[4]", "float[4]", "=2", "=4", "=8", "=2", "=1e-5"]),
        (512, 2 * 256 + 32)
    );
    let batch = ["float[2, 4, 8, 8]", "float[4]", "float[4]", "float[4]", "float[4]", "=False", "=0.1", "=1e-5"];
    assert_eq!(exact("aten::native_batch_norm", &batch), (2_048, 2 * 2_048 + 64));
    let training = [&batch[..5], &["=True"]].concat();
    assert_eq!(exact("aten::native_batch_norm", &training), (4_096, 2 * 2_048 + 64));
    assert_eq!(exact("aten::native_layer_norm_backward", &["float[2, 64]", "float[2, 64]"]), (2_048, 3 * 512));
    assert_eq!(exact("_C::fused_add_rms_norm", &["bf16[2, 64]", "bf16[2, 64]", "bf16[64]", "=1e-6"]), (640, 4 * 256 + 128));
}

#[test]
fn softmax() {
    assert_eq!(exact("aten::_softmax", &["fp16[4, 100]", "=-1", "=False"]), (2_000, 1_600));
    assert_eq!(exact("aten::_softmax", &["fp16[4, 100]", "=-1", "=True"]), (2_000, 800 + 1_600));
    assert_eq!(exact("aten::_softmax_backward_data", &["float[4, 100]", "float[4, 100]", "=-1", "=6"]), (1_600, 4_800));
}

#[test]
fn elementwise() {
    // The row is broadcast: 1024 x 64 out, 1024 x 64 and 1024 x 1 in.
    assert_eq!(exact("aten::mul", &["float[1024, 64]", "float[1024, 1]"]), (65_536, 4 * (2 * 65_536 + 1_024)));
    assert_eq!(exact("aten::add_", &["bf16[8]", "bf16[8]", "=1"]), (8, 48));
    assert_eq!(exact("aten::add", &["bf16[8]", "=1.5", "=1"]), (8, 32));
    assert_eq!(exact("aten::mul", &["i64[8]", "=0.5"]), (8, 64 + 32), "an integer times a fraction is fp32");
    assert_eq!(exact("aten::mul", &["bf16[8]", "float[]"]), (8, 16 + 4 + 16), "a tensor without dimensions does not widen");
    assert_eq!(exact("aten::mul", &["bf16[8]", "float[8]"]), (8, 16 + 32 + 32));
    assert_eq!(exact("aten::cos", &["i64[8]"]), (8, 64 + 32));
    assert_eq!(exact("aten::eq", &["i64[8]", "=0"]), (8, 64 + 8));
    assert_eq!(exact("aten::where", &["bool[8]", "bf16[8]", "bf16[]"]), (16, 8 + 16 + 2 + 16));
    assert_eq!(exact("aten::addcmul", &["float[8]", "float[8]", "float[8]", "=1"]), (16, 4 * 32));
    assert_eq!(exact("sgl_kernel::silu_and_mul", &["bf16[2, 8]", "bf16[2, 16]"]), (32, 2 * 16 + 2 * 32));
    let kernel = Some("multi_tensor_apply_kernel<M<2>, F<float>>");
    let foreach = call_with("aten::_foreach_add_", &["list[[2, 3], [4]]", "list[[2, 3], [4]]", "=1"], None, kernel).unwrap();
    assert_eq!((foreach.flops, foreach.bytes), (10, 3 * 40));
    assert_eq!(call("aten::mul", &["float[3]", "float[4]"]), Err(UnknownWork::UnreadableShapes));
}

#[test]
fn copies() {
    assert_eq!(exact("aten::copy_", &["float[4, 8]", "bf16[4, 8]", "=False"]), (0, 128 + 64));
    assert_eq!(exact("aten::_to_copy", &["float[4, 8]", "=15"]), (0, 128 + 64));
    assert_eq!(exact("aten::clone", &["float[4, 8]", "-"]), (0, 256));
    assert_eq!(exact("aten::fill_", &["float[4, 8]", "=0"]), (0, 128));
    // Each of the two heads is stored once and written twice.
    let expanded = call_with("aten::copy_", &["bf16[2, 2, 8]", "bf16[2, 2, 8]"], Some("[[16, 8, 1], [8, 0, 1]]"), None).unwrap();
    assert_eq!(expanded.bytes, 2 * 32 + 2 * 16);
    let cat = |kernel| call_with("aten::cat", &["list[[0], [1, 8], [2, 8]]", "=0"], None, kernel);
    assert_eq!(cat(Some("CatArrayBatchedCopy<OpaqueType<2u>, unsigned int>")).unwrap().bytes, 2 * 2 * 24);
    assert_eq!(cat(None), Err(UnknownWork::UnknownType));
}

#[test]
fn indexing() {
    // One token: its row is read and written.
    assert_eq!(exact("aten::embedding", &["bf16[1000, 64]", "i64[1, 1]", "=-1", "=False", "=False"]), (0, 8 + 128 + 128));
    let embedding = call("aten::embedding", &["bf16[10, 64]", "i64[32]"]).unwrap();
    assert_eq!((embedding.bytes, embedding.bytes_most), (256 + 32 * 128 + 128, Some(256 + 32 * 128 + 10 * 128)));
    let select = call("aten::index_select", &["float[4, 10]", "=1", "i64[3]"]).unwrap();
    assert_eq!((select.bytes, select.bytes_most), (24 + 4 * 12 + 4 * 4, Some(24 + 4 * 12 + 4 * 12)));
    let gather = call("aten::gather", &["float[4, 10]", "=1", "i64[4, 2]", "=False"]).unwrap();
    assert_eq!((gather.bytes, gather.bytes_most), (64 + 32 + 4, Some(64 + 32 + 32)));
    let scatter = call("aten::scatter_", &["float[4, 10]", "=1", "i64[4, 2]", "float[4, 2]"]).unwrap();
    assert_eq!((scatter.bytes, scatter.bytes_most), (64 + 32 + 4, Some(64 + 32 + 160)));
    assert_eq!(call("aten::index", &["float[4, 10]", "-"]), Err(UnknownWork::MissingArgument));
}

#[test]
fn reductions() {
    assert_eq!(exact("aten::mean", &["float[1, 8, 64]", "=[-1]", "=True", "-"]), (512, 4 * (512 + 8)));
    assert_eq!(exact("aten::sum", &["i64[8, 64]", "=[0, 1]", "=False", "-"]), (512, 8 * 513));
    assert_eq!(exact("aten::sum", &["bool[8]", "-"]), (8, 8 + 8));
    assert_eq!(exact("aten::argmax", &["bf16[4, 1000]", "=-1", "=False"]), (4_000, 8_000 + 32));
    assert_eq!(exact("aten::topk", &["bf16[16, 64]", "=2", "=-1", "=True", "=True"]), (1_024, 2_048 + 32 * 10));
    assert_eq!(exact("aten::cumsum", &["int[8]", "=0"]), (8, 32 + 64));
    assert_eq!(exact("aten::sort", &["float[8]", "=-1"]), (8, 32 + 96));
    assert_eq!(exact("aten::max", &["i64[15]"]), (15, 120 + 8));
    // (6 - 3) / 2 + 1 = 2 windows of 9 each way, on one channel.
    assert_eq!(
        exact("aten::max_pool2d_with_indices", &["float[1, 1, 6, 6]", "=[3, 3]", "=[2, 2]", "=[0, 0]", "=[1, 1]"]),
        (36, 144 + 4 * 12)
    );
    // The dimensions were not recorded.
    let unsaid = call("aten::sum", &["float[8, 64]", "-", "-", "-"]).unwrap();
    assert_eq!((unsaid.bytes, unsaid.bytes_most), (2_048 + 4, Some(4_096)));
}

#[test]
fn what_is_written_is_told_apart() {
    let given: [(&str, &[&str], u64); 30] = [
        ("aten::copy_", &["float[4, 8]", "bf16[4, 8]"], 128),
        ("aten::cat", &["list[[1, 8], [2, 8]]", "=0"], 4 * 24),
        ("aten::mul", &["bf16[8]", "float[8]"], 32),
        ("aten::native_dropout", &["float[4, 8]", "=0.5", "=True"], 128 + 32),
        ("aten::_foreach_add_", &["list[[2, 3], [4]]", "list[[2, 3], [4]]", "=1"], 40),
        ("sgl_kernel::silu_and_mul", &["bf16[2, 8]", "bf16[2, 16]"], 32),
        // 2 x 64 of 2 bytes, and two fp32 numbers for each of two rows.
        ("aten::native_layer_norm", &["bf16[2, 64]", "=[64]", "bf16[64]", "bf16[64]", "=1e-5"], 256 + 16),
        ("aten::native_layer_norm_backward", &["float[2, 64]", "float[2, 64]"], 512),
        ("aten::cudnn_batch_norm", &["float[2, 4, 3]", "float[4]", "float[4]", "float[4]", "float[4]", "=False"], 96),
        ("aten::rms_norm", &["bf16[2, 64]", "=[64]", "bf16[64]"], 256),
        ("_C::rms_norm", &["bf16[2, 64]", "bf16[2, 64]", "bf16[64]"], 256),
        ("_C::fused_add_rms_norm", &["bf16[2, 64]", "bf16[2, 64]", "bf16[64]"], 2 * 256),
        ("_C::fused_add_rms_norm_static_fp8_quant", &["fp8[2, 64]", "bf16[2, 64]", "bf16[2, 64]", "bf16[64]", "float[1]"], 128 + 256),
        ("aten::_softmax", &["fp16[4, 100]", "=-1", "=True"], 1_600),
        ("aten::_softmax_backward_data", &["float[4, 100]", "float[4, 100]", "=-1", "=6"], 1_600),
        ("aten::mean", &["float[1, 8, 64]", "=[-1]", "=True", "-"], 32),
        ("aten::argmax", &["bf16[4, 1000]", "=-1", "=False"], 32),
        ("aten::topk", &["bf16[16, 64]", "=2", "=-1", "=True", "=True"], 320),
        ("aten::sort", &["float[8]", "=-1"], 96),
        ("aten::cumsum", &["int[8]", "=0"], 64),
        ("aten::max_pool2d_with_indices", &["float[1, 1, 6, 6]", "=[3, 3]", "=[2, 2]", "=[0, 0]", "=[1, 1]"], 48),
        ("aten::mse_loss", &["float[5, 128]", "float[5, 128]", "=1"], 4),
        // The least: the dimensions were not recorded.
        ("aten::sum", &["float[8, 64]", "-", "-", "-"], 4),
        ("aten::embedding", &["bf16[10, 64]", "i64[32]"], 32 * 128),
        ("aten::gather", &["float[4, 10]", "=1", "i64[4, 2]", "=False"], 32),
        ("aten::scatter_", &["float[4, 10]", "=1", "i64[4, 2]", "float[4, 2]"], 4),
        ("aten::mm", &["bf16[1, 1024]", "bf16[1024, 3072]"], 6_144),
        ("aten::scaled_dot_product_attention", &["bf16[1, 16, 8, 128]", "bf16[1, 2, 8, 128]", "bf16[1, 2, 8, 128]"], 32_768),
        ("_C::dynamic_per_token_scaled_fp8_quant", &["fp8[2, 64]", "bf16[2, 64]", "float[2, 1]"], 128 + 8),
        ("sgl_kernel::topk_softmax", &["float[4, 2]", "int[4, 2]", "float[4, 8]", "=True"], 64),
    ];
    for (operator, inputs, written) in given {
        let work = call_with(operator, inputs, None, Some("kernel<float>")).unwrap();
        assert_eq!(work.bytes_written, Some(written), "{operator} {inputs:?}");
    }
    // The output is not among the arguments: nothing says that the first one is it.
    assert_eq!(call("aiter::rmsnorm", &["bf16[2, 64]", "bf16[64]"]).unwrap().bytes_written, None);
}

#[test]
fn every_name_has_one_formula() {
    let mut names: Vec<&str> = TABLES.iter().copied().flatten().flat_map(|formula| formula.names).copied().collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    assert_eq!(formula("aten::mm").map(|formula| formula.family), Some(WorkFamily::Matmul));
    assert_eq!(formula("aten::copy_").map(|formula| formula.family), Some(WorkFamily::Copy));
    for other in ["mm", "aten::", "aten::_", "other::mm", "aten::mm_extra", ""] {
        assert!(formula(other).is_none(), "{other}");
    }
}

#[test]
fn nothing_panics_on_any_operator() {
    let odd = [
        "float[]",
        "float[0]",
        "i64[1, 1, 1, 1, 1, 1]",
        "bool[4294967296, 4294967296, 4294967296]",
        "list[[0], [2, 2]]",
        "=[]",
        "=-9223372036854775808",
        "-",
    ];
    for formula in TABLES.iter().copied().flatten() {
        for name in formula.names {
            let operator = if name.contains("::") { (*name).to_owned() } else { format!("aten::{name}") };
            for first in odd {
                for second in odd {
                    let inputs = [[first, second].repeat(3), [second, first].repeat(3)].concat();
                    if let Ok(work) = call_with(&operator, &inputs, None, Some("k<float>")) {
                        assert!(work.bytes_written.is_none_or(|written| written <= work.bytes), "{operator} {inputs:?}");
                    }
                    let _ = call(&operator, &inputs[..2]);
                }
            }
        }
    }
}

#[test]
fn losses_dropout_and_pooling() {
    // Difference, square, sum of 5 x 128; one number out, or all.
    let (a, b) = ("float[5, 128]", "float[5, 128]");
    assert_eq!(exact("aten::mse_loss", &[a, b, "=1"]), (1_920, 2 * 2_560 + 4));
    assert_eq!(exact("aten::mse_loss", &[a, b, "=0"]), (1_920, 3 * 2_560));
    assert_eq!(exact("aten::mse_loss_backward", &["float[]", a, b, "=1"]), (1_280, 4 + 3 * 2_560));
    assert_eq!(exact("aten::native_dropout", &["float[4, 8]", "=0.5", "=True"]), (64, 2 * 128 + 32));
    assert_eq!(exact("aten::_adaptive_avg_pool2d", &["float[2, 3, 4, 4]", "=[1, 1]"]), (96, 384 + 24));
    assert_eq!(call("aten::_adaptive_avg_pool2d", &["float[2, 3, 4, 4]", "-"]), Err(UnknownWork::MissingArgument));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Any operator on any arguments gives an answer, however large the numbers are.
    #[test]
    fn nothing_panics_on_any_arguments(at: proptest::sample::Index, picks in proptest::collection::vec(0..15_usize, 0..30)) {
        const ODD: [&str; 15] = [
            "-",
            "float[]",
            "float[0]",
            "int[3]",
            "i64[9223372036854775807]",
            "bf16[2, 3]",
            "bf16[2, 3, 4]",
            "bf16[1099511627775, 1099511627775, 1099511627775]",
            "fp8[9223372036854775807, 2]",
            "fp8[4294967295, 4294967295, 4294967295, 4294967295]",
            "list[[0], [2, 2]]",
            "=9223372036854775807",
            "=-1",
            "=True",
            "=[2, 9223372036854775807]",
        ];
        let names: Vec<&str> = TABLES.iter().copied().flatten().flat_map(|formula| formula.names).copied().collect();
        let name = names[at.index(names.len())];
        let operator = if name.contains("::") { name.to_owned() } else { format!("aten::{name}") };
        let inputs: Vec<&str> = picks.into_iter().map(|pick| ODD[pick]).collect();
        let _ = call_with(&operator, &inputs, None, Some("k<float>"));
    }
}
