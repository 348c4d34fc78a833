//! The launches of each operation: which kernel, on how many blocks, with which arguments. Pure arithmetic on addresses, so that it is tested without
//! a device.

use longpole_bench::cuda::Arg::{self, Address, F32, U32};
use longpole_bench::cuda::Grid;

use crate::config::{Config, HEAD};
use crate::kernels::Kernel;
use crate::layout::SAMPLE_BLOCKS;

/// The two ways that everything is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variant {
    /// Plain kernels, one for each operation.
    Ref,
    /// Tuned and fused ones, and cuBLASLt for matrix products.
    Tile,
}

impl Variant {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ref, Self::Tile];

    /// Its name in keys and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ref => "ref",
            Self::Tile => "tile",
        }
    }
}

/// A launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Of which kernel.
    pub kernel: Kernel,
    /// On how many blocks.
    pub grid: Grid,
    /// With which arguments.
    pub arguments: Vec<Arg>,
    /// Whether it may begin while the launch before it still runs: it waits for it by itself.
    pub early: bool,
}

/// A launch or a matrix product of the library.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// One of our kernels.
    Launch(Launch),
    /// `out[m][n] = sum over k of a[m][k] * b[n][k]` by cuBLASLt.
    Product {
        /// Tokens, outputs, inputs.
        sizes: [u32; 3],
        /// Addresses of inputs, weights and outputs.
        addresses: [u64; 3],
    },
}

impl Step {
    /// The same, beginning early if its kernel can: those of a tuned decode step wait by themselves.
    #[must_use]
    pub fn early(self) -> Self {
        let waits = |kernel: Kernel| {
            matches!(
                kernel,
                Kernel::Embedding
                    | Kernel::GemvQkv
                    | Kernel::GemvAdd
                    | Kernel::GemvGateUp
                    | Kernel::GemvLmHead
                    | Kernel::AttentionDecode1
                    | Kernel::AttentionDecode2
                    | Kernel::AttentionDecode4
                    | Kernel::Sample
            )
        };
        match self {
            Self::Launch(launch) if waits(launch.kernel) => Self::Launch(Launch { early: true, ..launch }),
            other => other,
        }
    }
}

/// A matrix of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Its address.
    pub at: u64,
    /// Outputs.
    pub rows: usize,
    /// Inputs.
    pub columns: usize,
}

/// A norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    /// The address of its weights.
    pub at: u64,
    /// What is added to the mean of squares.
    pub epsilon: f32,
}

/// The cache of one layer and the rotation's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Address of the keys.
    pub keys: u64,
    /// Address of the values.
    pub values: u64,
    /// Positions of a head.
    pub capacity: usize,
    /// Address of the cosines.
    pub cosines: u64,
    /// Address of the sines.
    pub sines: u64,
    /// Address of the first token's position.
    pub position: u64,
}

/// The norms of heads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadNorms {
    /// Address of that of queries.
    pub q: u64,
    /// Address of that of keys.
    pub k: u64,
    /// What is added to the mean of squares.
    pub epsilon: f32,
}

fn launch(kernel: Kernel, blocks: [u32; 3], threads: u32, shared_bytes: u32, arguments: Vec<Arg>) -> Step {
    Step::Launch(Launch { kernel, grid: Grid { blocks, threads: [threads, 1, 1], shared_bytes }, arguments, early: false })
}

fn line(kernel: Kernel, blocks: usize, threads: u32, arguments: Vec<Arg>) -> Step {
    launch(kernel, [blocks as u32, 1, 1], threads, 0, arguments)
}

fn number(value: usize) -> Arg {
    U32(value as u32)
}

/// The rows of the table that tokens name.
pub fn embedding(table: Matrix, tokens: u64, count: usize, out: u64) -> Step {
    let arguments = vec![Address(table.at), Address(tokens), Address(out), number(table.rows), number(table.columns)];
    line(Kernel::Embedding, count, 128, arguments)
}

/// Threads of a block that normalises a row: 16 bytes each, as far as a block has threads.
fn norm_threads(columns: usize) -> u32 {
    (columns as u32 / 8).next_multiple_of(32).clamp(32, 1024)
}

/// Rows, normalised.
pub fn rms_norm(x: u64, norm: Norm, out: u64, rows: usize, columns: usize) -> Step {
    let arguments = vec![Address(x), Address(norm.at), Address(out), number(columns), F32(norm.epsilon)];
    line(Kernel::RmsNorm, rows, norm_threads(columns), arguments)
}

/// `kept = residual + delta`, and that normalised.
pub fn add_rms_norm(residual: u64, delta: u64, norm: Norm, kept: u64, out: u64, [rows, columns]: [usize; 2]) -> Step {
    let addresses = [residual, delta, norm.at, kept, out].map(Address);
    let arguments = addresses.into_iter().chain([number(columns), F32(norm.epsilon)]).collect();
    line(Kernel::AddRmsNorm, rows, norm_threads(columns), arguments)
}

/// A tuned GEMV over so many groups of rows, a warp each: as many blocks as there is work for, which the device takes up as others end.
fn gemv(kernel: Kernel, groups: usize, columns: usize, threads: u32, arguments: Vec<Arg>) -> Step {
    let blocks = (groups as u32).div_ceil(threads / 32).max(1);
    launch(kernel, [blocks, 1, 1], threads, columns as u32 * 2, arguments)
}

/// Queries, keys and values of one token from its hidden state.
pub fn gemv_qkv(w: Matrix, x: u64, norm: Norm, out: u64) -> Step {
    let arguments = vec![Address(w.at), Address(x), Address(norm.at), Address(out), number(w.rows), number(w.columns), F32(norm.epsilon)];
    gemv(Kernel::GemvQkv, w.rows, w.columns, 512, arguments)
}

/// `out = residual + w x` of one token.
pub fn gemv_add(w: Matrix, x: u64, residual: u64, out: u64) -> Step {
    let arguments = vec![Address(w.at), Address(x), Address(residual), Address(out), number(w.rows), number(w.columns)];
    gemv(Kernel::GemvAdd, w.rows, w.columns, 256, arguments)
}

/// `silu(gate) * up` of one token from its hidden state; the matrix holds gates, then ups.
pub fn gemv_gate_up(w: Matrix, x: u64, norm: Norm, out: u64) -> Step {
    let groups = w.rows / 2;
    let arguments = vec![Address(w.at), Address(x), Address(norm.at), Address(out), number(groups), number(w.columns), F32(norm.epsilon)];
    gemv(Kernel::GemvGateUp, groups, w.columns, 512, arguments)
}

/// Logits of one token from its hidden state.
pub fn gemv_lm_head(w: Matrix, x: u64, norm: Norm, out: u64) -> Step {
    let arguments = vec![Address(w.at), Address(x), Address(norm.at), Address(out), number(w.rows), number(w.columns), F32(norm.epsilon)];
    gemv(Kernel::GemvLmHead, w.rows / 2, w.columns, 512, arguments)
}

/// A matrix times a vector, plainly; `wide` results have 32 bits.
pub fn gemv_ref(w: Matrix, x: u64, out: u64, wide: bool) -> Step {
    let arguments = vec![Address(w.at), Address(x), Address(out), number(w.rows), number(w.columns), U32(u32::from(wide))];
    line(Kernel::GemvRef, w.rows.div_ceil(8), 256, arguments)
}

/// A linear layer of many tokens.
pub fn gemm(variant: Variant, w: Matrix, x: u64, out: u64, tokens: usize) -> Step {
    let sizes = [tokens, w.rows, w.columns].map(|size| size as u32);
    match variant {
        Variant::Tile => Step::Product { sizes, addresses: [x, w.at, out] },
        Variant::Ref => {
            let blocks = [sizes[1].div_ceil(64), sizes[0].div_ceil(64), 1];
            let arguments = [x, w.at, out].map(Address).into_iter().chain(sizes.map(U32)).collect();
            launch(Kernel::GemmRef, blocks, 256, 0, arguments)
        }
    }
}

/// Queries normalised and rotated.
pub fn q_inputs(config: &Config, qkv: u64, norms: HeadNorms, cache: Cache, out: u64, tokens: usize) -> Step {
    let addresses = [qkv, norms.q, cache.cosines, cache.sines, cache.position, out].map(Address);
    let sizes = [tokens, config.heads, config.kv_heads].map(number);
    let arguments = addresses.into_iter().chain(sizes).chain([F32(norms.epsilon)]).collect();
    line(Kernel::QInputs, (tokens * config.heads).div_ceil(4), 128, arguments)
}

/// Keys normalised and rotated, and values, into the cache.
pub fn kv_inputs(config: &Config, qkv: u64, norms: HeadNorms, cache: Cache, tokens: usize) -> Step {
    let addresses = [qkv, norms.k, cache.cosines, cache.sines, cache.position, cache.keys, cache.values].map(Address);
    let sizes = [tokens, config.heads, config.kv_heads, cache.capacity].map(number);
    let arguments = addresses.into_iter().chain(sizes).chain([F32(norms.epsilon)]).collect();
    line(Kernel::KvInputs, (tokens * config.kv_heads).div_ceil(4), 128, arguments)
}

/// Bytes of shared memory of a block of attention over many tokens: keys and values of 64 positions, twice each.
pub const ATTENTION_SHARED: u32 = 4 * 64 * HEAD as u32 * 2;

/// Attention from queries and a filled cache.
pub fn attention(variant: Variant, config: &Config, queries: u64, cache: Cache, out: u64, tokens: usize) -> Step {
    let addresses = [queries, cache.keys, cache.values, cache.position, out].map(Address);
    let arguments = addresses.into_iter().chain([tokens, config.heads, config.kv_heads, cache.capacity].map(number)).collect();
    match variant {
        Variant::Ref => line(Kernel::AttentionRef, (tokens * config.heads).div_ceil(4), 128, arguments),
        Variant::Tile => {
            let blocks = [tokens.div_ceil(64) as u32, config.heads as u32, 1];
            launch(Kernel::AttentionPrefill, blocks, 128, ATTENTION_SHARED, arguments)
        }
    }
}

/// Attention of one token from its projections, in one launch: `scratch` is where splits leave their sums, and where they are counted.
pub fn attention_decode(config: &Config, qkv: u64, norms: HeadNorms, cache: Cache, scratch: [u64; 2], out: u64, splits: u32) -> Step {
    let kernel = match config.group() {
        1 => Kernel::AttentionDecode1,
        2 => Kernel::AttentionDecode2,
        _ => Kernel::AttentionDecode4,
    };
    let Cache { keys, values, capacity, cosines, sines, position } = cache;
    let addresses = [qkv, norms.q, norms.k, cosines, sines, position, keys, values, scratch[0], scratch[1], out].map(Address);
    let arguments = addresses.into_iter().chain([number(config.kv_heads), number(capacity), F32(norms.epsilon)]).collect();
    launch(kernel, [config.kv_heads as u32, splits, 1], 256, 0, arguments)
}

/// `silu(gate) * up` of many tokens.
pub fn swiglu(gate_up: u64, out: u64, [rows, columns]: [usize; 2]) -> Step {
    let arguments = vec![Address(gate_up), Address(out), number(rows), number(columns)];
    line(Kernel::Swiglu, (rows * columns / 8).div_ceil(256), 256, arguments)
}

/// Addresses of what choosing a token reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// Logits.
    pub logits: u64,
    /// Inverse temperature and seed.
    pub sampling: u64,
    /// The best of each block, and how many are done.
    pub scratch: [u64; 2],
    /// The position, which moves on.
    pub position: u64,
    /// Where the next step reads its token.
    pub token: u64,
    /// Tokens by position.
    pub history: u64,
}

/// Chooses a token and moves the position on by `advance`.
pub fn sample(at: Sampler, vocabulary: usize, advance: usize, capacity: usize) -> Step {
    let arguments = [Address(at.logits), number(vocabulary), Address(at.sampling), number(advance)]
        .into_iter()
        .chain([at.scratch[0], at.scratch[1], at.position, at.token, at.history].map(Address))
        .chain([number(capacity)])
        .collect();
    launch(Kernel::Sample, [SAMPLE_BLOCKS, 1, 1], 256, 0, arguments)
}

/// Seeded numbers.
pub fn random(out: u64, count: usize, spread: crate::random::Spread, sms: u32) -> Step {
    let arguments = vec![Address(out), Arg::U64(count as u64), U32(spread.seed), F32(spread.middle), F32(spread.half)];
    line(Kernel::Random, count.div_ceil(256).min(sms.max(1) as usize * 8), 256, arguments)
}
