//! A Qwen2.5-0.5B-like decoder in bf16, run eagerly: which operators, frames and kernels one forward pass is made of.

use super::kernels::Kernel;
use super::sim::Concrete::{List, Text};
use super::sim::{Concrete, Inputs, Sim};

const BF16: &str = "c10::BFloat16";
const SCALAR: &str = "Scalar";
const SCALARS: &str = "ScalarList";
const HIDDEN: i64 = 896;
const INTERMEDIATE: i64 = 4864;
const VOCABULARY: i64 = 151_936;
const HEAD_DIM: i64 = 64;
const HEADS: i64 = 14;
const KV_HEADS: i64 = 2;
const NONE: Concrete<'static> = Text("");
const NO_DIMS: &[i64] = &[];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) layers: i64,
    pub(crate) prompt: i64,
    /// Decode steps are replays of one captured graph.
    pub(crate) graph: bool,
}

fn inputs<'a>(dims: &'a [&'a [i64]], types: &'a [&'a str], concrete: &'a [Concrete<'a>]) -> Inputs<'a> {
    Inputs { dims, types, concrete }
}

/// The first operand's elements, as the allocator sees them.
fn elements(dims: &[i64]) -> i64 {
    dims.iter().product()
}

struct Elementwise<'a> {
    name: &'static str,
    kernel: Kernel,
    duration: i64,
    dims: &'a [&'a [i64]],
    types: &'a [&'a str],
    concrete: &'a [Concrete<'a>],
}

fn elementwise(s: &mut Sim<'_, '_>, op: &Elementwise<'_>) {
    let count = elements(op.dims[0]);
    let bytes = (2 * count).max(512);
    s.op(op.name, inputs(op.dims, op.types, op.concrete), |s| {
        s.memory(bytes);
        s.kernel(op.kernel, op.duration, ((count / 512).max(1), 1), 128);
    });
    s.memory(-bytes);
}

fn mul(s: &mut Sim<'_, '_>, a: &[i64], b: &[i64], types: [&str; 2]) {
    elementwise(s, &Elementwise { name: "aten::mul", kernel: Kernel::Mul, duration: 1500, dims: &[a, b], types: &types, concrete: &[] });
}

fn add(s: &mut Sim<'_, '_>, dims: &[i64]) {
    elementwise(
        s,
        &Elementwise {
            name: "aten::add",
            kernel: Kernel::Add,
            duration: 1500,
            dims: &[dims, dims, &[]],
            types: &[BF16, BF16, SCALAR],
            concrete: &[NONE, NONE, Text("1")],
        },
    );
}

fn as_strided(s: &mut Sim<'_, '_>, dims: &[i64]) {
    s.op("aten::as_strided", inputs(&[dims, &[], &[], &[]], &[BF16, SCALARS, SCALARS, ""], &[]), |_| {});
}

/// An operator that only makes a new view of its input.
fn view(s: &mut Sim<'_, '_>, name: &'static str, dims: &[i64], concrete: &[Concrete<'_>]) {
    let all_dims: [&[i64]; 6] = [dims, &[], &[], &[], &[], &[]];
    let all_types = [BF16, SCALAR, SCALAR, SCALAR, SCALAR, SCALAR];
    let count = concrete.len().min(all_dims.len());
    let direct = matches!(name, "aten::view" | "aten::_unsafe_view" | "aten::reshape");
    s.op(name, inputs(&all_dims[..count], &all_types[..count], concrete), |s| {
        if !direct {
            as_strided(s, dims);
        }
    });
}

/// `aten::to` with its chain down to the copy kernel.
fn convert(s: &mut Sim<'_, '_>, dims: &[i64], kernel: Kernel) {
    let bytes = 4 * dims[dims.len() - 1] * dims[dims.len() - 2];
    let to_dims: [&[i64]; 7] = [dims, &[], &[], &[], &[], &[], &[]];
    let to_types = [BF16, SCALAR, SCALAR, SCALAR, SCALAR, SCALAR, SCALAR];
    s.op("aten::to", inputs(&to_dims[..5], &to_types[..5], &[NONE, Text("6"), Text("False"), Text("False"), NONE]), |s| {
        s.op("aten::_to_copy", inputs(&to_dims, &to_types, &[NONE, Text("6"), NONE, NONE, NONE, Text("False"), NONE]), |s| {
            s.op(
                "aten::empty_strided",
                inputs(
                    &[NO_DIMS; 6],
                    &[SCALARS, SCALARS, SCALAR, SCALAR, SCALAR, SCALAR],
                    &[List(&[1, 1, HIDDEN]), List(&[HIDDEN, HIDDEN, 1]), Text("6"), Text("0"), NONE, NONE],
                ),
                |s| s.memory(bytes),
            );
            s.op("aten::copy_", inputs(&[dims, dims, &[]], &["float", BF16, SCALAR], &[NONE, NONE, Text("False")]), |s| {
                s.kernel(kernel, 1400, (14, 1), 128);
            });
        });
    });
    s.memory(-bytes);
}

/// `m` tokens times a weight of `n` by `k`.
fn linear(s: &mut Sim<'_, '_>, m: i64, k: i64, n: i64, bias: bool, index: i64) {
    let activations: &[i64] = &[1, m, k];
    let weight: &[i64] = &[n, k];
    let matmul = |s: &mut Sim<'_, '_>| {
        s.memory(2 * m * n);
        let (kernel, duration) = if m == 1 { (Kernel::Gemv, 1800 + k * n / 1900) } else { (Kernel::Gemm, 9000 + m * k * n / 400_000) };
        s.kernel(kernel, duration, ((n / 64).max(1), (m / 64).max(1)), 256);
        if n >= INTERMEDIATE && m == 1 {
            s.kernel(Kernel::SplitK, 1900, (n / 128, 1), 256);
        }
    };
    let transposed = |s: &mut Sim<'_, '_>| {
        s.op("aten::t", inputs(&[weight], &[BF16], &[NONE]), |s| {
            s.op("aten::transpose", inputs(&[weight, &[], &[]], &[BF16, SCALAR, SCALAR], &[NONE, Text("0"), Text("1")]), |s| {
                as_strided(s, weight);
            });
        });
    };
    let body = |s: &mut Sim<'_, '_>| {
        transposed(s);
        if bias {
            view(s, "aten::view", activations, &[NONE, List(&[m, k])]);
            s.op(
                "aten::addmm",
                inputs(&[&[n], &[m, k], &[k, n], &[], &[]], &[BF16, BF16, BF16, SCALAR, SCALAR], &[NONE, NONE, NONE, Text("1"), Text("1")]),
                matmul,
            );
            view(s, "aten::view", &[m, n], &[NONE, List(&[1, m, n])]);
        } else {
            s.op("aten::matmul", inputs(&[activations, &[k, n]], &[BF16, BF16], &[NONE, NONE]), |s| {
                view(s, "aten::reshape", activations, &[NONE, List(&[m, k])]);
                s.op("aten::mm", inputs(&[&[m, k], &[k, n]], &[BF16, BF16], &[NONE, NONE]), matmul);
                view(s, "aten::_unsafe_view", &[m, n], &[NONE, List(&[1, m, n])]);
            });
        }
    };
    let bias_dims: &[i64] = if bias { &[n] } else { &[] };
    s.frame(format_args!("nn.Module: Linear_{index}"), Some(index), |s| {
        s.frame(format_args!("torch/nn/modules/linear.py(130): forward"), None, |s| {
            s.frame(format_args!("<built-in function linear>"), None, |s| {
                let types = [BF16, BF16, if bias { BF16 } else { "" }];
                s.op("aten::linear", inputs(&[activations, weight, bias_dims], &types, &[NONE, NONE, NONE]), body);
            });
        });
    });
    s.memory(-2 * m * n);
}

fn rms_norm(s: &mut Sim<'_, '_>, m: i64, index: i64) {
    let dims: &[i64] = &[1, m, HIDDEN];
    let row: &[i64] = &[1, m, 1];
    s.frame(format_args!("nn.Module: Qwen2RMSNorm_{index}"), Some(index), |s| {
        s.frame(format_args!("transformers/models/qwen2/modeling_qwen2.py(204): forward"), None, |s| {
            convert(s, dims, Kernel::ToFloat);
            let steps = [
                Elementwise {
                    name: "aten::pow",
                    kernel: Kernel::Pow,
                    duration: 1500,
                    dims: &[dims, &[]],
                    types: &["float", SCALAR],
                    concrete: &[NONE, Text("2")],
                },
                Elementwise {
                    name: "aten::mean",
                    kernel: Kernel::Mean,
                    duration: 2600,
                    dims: &[dims, &[], &[], &[]],
                    types: &["float", SCALARS, SCALAR, ""],
                    concrete: &[NONE, Text("[-1]"), Text("True"), NONE],
                },
                Elementwise {
                    name: "aten::add",
                    kernel: Kernel::AddScalar,
                    duration: 1300,
                    dims: &[row, &[], &[]],
                    types: &["float", SCALAR, SCALAR],
                    concrete: &[NONE, Text("9.9999999999999995e-07"), Text("1")],
                },
                Elementwise { name: "aten::rsqrt", kernel: Kernel::Rsqrt, duration: 1300, dims: &[row], types: &["float"], concrete: &[] },
            ];
            for step in &steps {
                elementwise(s, step);
            }
            mul(s, dims, row, ["float", "float"]);
            convert(s, dims, Kernel::Copy);
            mul(s, &[HIDDEN], dims, [BF16, BF16]);
        });
    });
}

fn rotary(s: &mut Sim<'_, '_>, m: i64) {
    for heads in [HEADS, KV_HEADS] {
        let dims: &[i64] = &[1, heads, m, HEAD_DIM];
        let table: &[i64] = &[1, 1, m, HEAD_DIM];
        mul(s, dims, table, [BF16, BF16]);
        view(s, "aten::slice", dims, &[NONE, Text("3"), Text("0"), Text("32"), Text("1")]);
        view(s, "aten::slice", dims, &[NONE, Text("3"), Text("32"), Text("9223372036854775807"), Text("1")]);
        let half: &[i64] = &[1, heads, m, HEAD_DIM / 2];
        elementwise(
            s,
            &Elementwise { name: "aten::neg", kernel: Kernel::Neg, duration: 1400, dims: &[half], types: &[BF16], concrete: &[] },
        );
        concatenate(s, dims, "-1", 1800);
        mul(s, dims, table, [BF16, BF16]);
        add(s, dims);
    }
}

fn concatenate(s: &mut Sim<'_, '_>, dims: &[i64], axis: &str, duration: i64) {
    elementwise(
        s,
        &Elementwise {
            name: "aten::cat",
            kernel: Kernel::Cat,
            duration,
            dims: &[dims, &[]],
            types: &["TensorList", SCALAR],
            concrete: &[NONE, Text(axis)],
        },
    );
}

fn attention_kernel(s: &mut Sim<'_, '_>, m: i64, kv: i64) {
    let q: &[i64] = &[1, HEADS, m, HEAD_DIM];
    let k: &[i64] = &[1, HEADS, kv, HEAD_DIM];
    let dims: [&[i64]; 11] = [q, k, k, &[], &[], &[], &[], &[], &[], &[], &[]];
    let mut types = [SCALAR; 11];
    types[..3].fill(BF16);
    let launch = |s: &mut Sim<'_, '_>| {
        let like_types = [BF16, SCALAR, SCALAR, SCALAR, SCALAR, SCALAR];
        s.op("aten::empty_like", inputs(&[q, &[], &[], &[], &[], &[]], &like_types, &[]), |s| {
            s.op("aten::empty_strided", None, |s| s.memory(2 * m * HIDDEN));
        });
        let empty_types = [SCALARS, SCALAR, SCALAR, SCALAR, SCALAR, SCALAR];
        let concrete = [List(&[1, HEADS, m]), Text("6"), Text("0"), Text("0"), Text("False"), NONE];
        s.op("aten::empty", inputs(&[NO_DIMS; 6], &empty_types, &concrete), |s| s.memory(1024));
        s.runtime("cudaFuncSetAttribute", 273, 300, 900);
        s.kernel(Kernel::Flash, 5200 + kv * 9, (1, (kv / 64).max(1)), 128);
        s.kernel(Kernel::FlashCombine, 2100, (2, 1), 128);
    };
    let mut forward_types = types;
    forward_types[3..5].fill("");
    let mut sdpa_types = types;
    sdpa_types[3] = "";
    s.frame(format_args!("<built-in function scaled_dot_product_attention>"), None, |s| {
        let concrete = [NONE, NONE, NONE, NONE, Text("0."), Text("False"), Text("0.125"), Text("False")];
        s.op("aten::scaled_dot_product_attention", inputs(&dims[..8], &sdpa_types[..8], &concrete), |s| {
            let concrete = [NONE, NONE, NONE, Text("0."), Text("False"), Text("False"), Text("0.125")];
            s.op("aten::_scaled_dot_product_flash_attention", inputs(&dims[..7], &types[..7], &concrete), |s| {
                s.op("aten::_flash_attention_forward", inputs(&dims, &forward_types, &[]), launch);
            });
        });
    });
}

fn attention(s: &mut Sim<'_, '_>, m: i64, kv: i64, index: i64) {
    for (offset, n) in (0..).zip([HIDDEN, KV_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM]) {
        linear(s, m, HIDDEN, n, true, index + offset);
        view(s, "aten::view", &[1, m, n], &[NONE, List(&[1, m, -1, HEAD_DIM])]);
        view(s, "aten::transpose", &[1, m, n / HEAD_DIM, HEAD_DIM], &[NONE, Text("1"), Text("2")]);
    }
    for _ in 0..2 {
        view(s, "aten::unsqueeze", &[1, m, HEAD_DIM], &[NONE, Text("1")]);
    }
    rotary(s, m);
    for _ in 0..2 {
        concatenate(s, &[1, KV_HEADS, kv, HEAD_DIM], "-2", 1800 + kv * 2);
    }
    let group = HEADS / KV_HEADS;
    for _ in 0..2 {
        view(s, "aten::expand", &[1, KV_HEADS, 1, kv, HEAD_DIM], &[NONE, List(&[1, KV_HEADS, group, kv, HEAD_DIM]), Text("False")]);
        let dims: [&[i64]; 2] = [&[1, KV_HEADS, group, kv, HEAD_DIM], &[]];
        s.op("aten::reshape", inputs(&dims, &[BF16, SCALARS], &[NONE, List(&[1, HEADS, kv, HEAD_DIM])]), |s| {
            s.op("aten::clone", None, |s| {
                s.op("aten::copy_", None, |s| s.kernel(Kernel::Copy, 1900 + kv * 3, (kv, 1), 128));
            });
        });
    }
    attention_kernel(s, m, kv);
    view(s, "aten::transpose", &[1, HEADS, m, HEAD_DIM], &[NONE, Text("1"), Text("2")]);
    view(s, "aten::reshape", &[1, m, HEADS, HEAD_DIM], &[NONE, List(&[1, m, -1])]);
    linear(s, m, HIDDEN, HIDDEN, false, index + 3);
}

fn mlp(s: &mut Sim<'_, '_>, m: i64, layer: i64, index: i64) {
    let dims: &[i64] = &[1, m, INTERMEDIATE];
    linear(s, m, HIDDEN, INTERMEDIATE, false, index + 4);
    s.frame(format_args!("nn.Module: SiLU_{layer}"), Some(index + 7), |s| {
        s.frame(format_args!("torch/nn/modules/activation.py(460): forward"), None, |s| {
            elementwise(
                s,
                &Elementwise { name: "aten::silu", kernel: Kernel::Silu, duration: 1500, dims: &[dims], types: &[BF16], concrete: &[] },
            );
        });
    });
    linear(s, m, HIDDEN, INTERMEDIATE, false, index + 5);
    mul(s, dims, dims, [BF16, BF16]);
    linear(s, m, INTERMEDIATE, HIDDEN, false, index + 6);
}

fn layer(s: &mut Sim<'_, '_>, layer: i64, m: i64, kv: i64) {
    let index = layer * 12;
    let dims: &[i64] = &[1, m, HIDDEN];
    s.frame(format_args!("nn.Module: Qwen2DecoderLayer_{layer}"), Some(index + 12), |s| {
        s.frame(format_args!("transformers/modeling_layers.py(94): __call__"), None, |s| {
            s.frame(format_args!("torch/nn/modules/module.py(1779): _call_impl"), None, |s| {
                s.frame(format_args!("transformers/models/qwen2/modeling_qwen2.py(231): forward"), None, |s| {
                    rms_norm(s, m, index + 8);
                    s.frame(format_args!("nn.Module: Qwen2Attention_{layer}"), Some(index + 9), |s| {
                        s.frame(format_args!("transformers/models/qwen2/modeling_qwen2.py(137): forward"), None, |s| {
                            attention(s, m, kv, index);
                        });
                    });
                    add(s, dims);
                    rms_norm(s, m, index + 10);
                    s.frame(format_args!("nn.Module: Qwen2MLP_{layer}"), Some(index + 11), |s| {
                        s.frame(format_args!("transformers/models/qwen2/modeling_qwen2.py(46): forward"), None, |s| {
                            mlp(s, m, layer, index);
                        });
                    });
                    add(s, dims);
                });
            });
        });
    });
}

fn forward(s: &mut Sim<'_, '_>, shape: &Shape, m: i64, kv: i64) {
    let types = [BF16, "long int", SCALAR, SCALAR, SCALAR];
    let concrete = [NONE, NONE, Text("-1"), Text("False"), Text("False")];
    s.op("aten::embedding", inputs(&[&[VOCABULARY, HIDDEN], &[1, m], &[], &[], &[]], &types, &concrete), |s| {
        s.op("aten::index_select", None, |s| {
            s.memory(2 * HIDDEN * m);
            s.kernel(Kernel::Embedding, 2200, (14, 1), 128);
        });
    });
    for index in 0..shape.layers {
        layer(s, index, m, kv);
    }
    rms_norm(s, m, 9001);
    linear(s, 1, HIDDEN, VOCABULARY, false, 9002);
}

/// One forward pass, the choice of the next token and its copy to the host.
fn step(s: &mut Sim<'_, '_>, shape: &Shape, name: &'static str, m: i64, kv: i64) {
    s.step(name, |s| {
        s.frame(format_args!("transformers/generation/utils.py(2771): _sample"), None, |s| {
            s.frame(format_args!("nn.Module: Qwen2ForCausalLM_0"), Some(9003), |s| {
                if shape.graph && m == 1 {
                    s.memory_operation("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 8);
                    s.graph_launch(|s| forward(s, shape, m, kv));
                } else {
                    forward(s, shape, m, kv);
                }
                elementwise(
                    s,
                    &Elementwise {
                        name: "aten::argmax",
                        kernel: Kernel::ArgMax,
                        duration: 9100,
                        dims: &[&[1, VOCABULARY], &[], &[]],
                        types: &[BF16, SCALAR, SCALAR],
                        concrete: &[NONE, Text("-1"), Text("False")],
                    },
                );
                s.op("aten::item", inputs(&[&[1]], &["long int"], &[NONE]), |s| {
                    s.op("aten::_local_scalar_dense", inputs(&[&[1]], &["long int"], &[NONE]), |s| {
                        s.memory_operation("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 8);
                        s.synchronize("cudaStreamSynchronize", 131, true);
                    });
                });
                s.memory_operation("gpu_memset", "Memset (Device)", 4);
            });
        });
    });
}

/// The whole run: one prefill and `steps` decode steps, with the loose ends a real window has on both sides.
pub(crate) fn run(s: &mut Sim<'_, '_>, shape: &Shape, steps: u64) {
    let opened = s.now - 535_000;
    for i in 0..3 {
        s.kernel_without_launch(Kernel::Copy, opened + i * 30_000, 18_112);
    }
    step(s, shape, "prefill", shape.prompt, shape.prompt);
    for i in 0..steps {
        step(s, shape, "decode_step", 1, shape.prompt + 1 + i as i64);
    }
    s.op("aten::zero_", None, |s| s.launch_without_kernel(Kernel::Copy));
    s.flush_deferred();
}
