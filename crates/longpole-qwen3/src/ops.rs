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
        /// Whether outputs have 32 bits.
        wide: bool,
        /// Addresses of inputs, weights and outputs.
        addresses: [u64; 3],
    },
}

impl Step {
    /// The same, beginning early if its kernel can: those of a tuned decode step wait by themselves.
    #[must_use]
    pub fn early(self) -> Self {
        match self {
            Self::Launch(launch) if launch.kernel.begins_early() => Self::Launch(Launch { early: true, ..launch }),
            other => other,
        }
    }
}

/// What launches depend on of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Multiprocessors.
    pub sms: u32,
    /// Bytes of shared memory that a block may ask for.
    pub shared_bytes: u32,
    /// Whether it has compute capability 9.0 or later: copies that no thread waits for, clusters, early launches.
    pub streams: bool,
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
    Step::Launch(Launch { kernel, grid: Grid { blocks, threads: [threads, 1, 1], shared_bytes, cluster: 1 }, arguments, early: false })
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

/// A matrix times a vector, plainly; `wide` results have 32 bits.
pub fn gemv_ref(w: Matrix, x: u64, out: u64, wide: bool) -> Step {
    let arguments = vec![Address(w.at), Address(x), Address(out), number(w.rows), number(w.columns), U32(u32::from(wide))];
    line(Kernel::GemvRef, w.rows.div_ceil(8), 256, arguments)
}

/// A linear layer of many tokens; `wide` results have 32 bits.
pub fn gemm(variant: Variant, w: Matrix, x: u64, out: u64, tokens: usize, wide: bool) -> Step {
    let sizes = [tokens, w.rows, w.columns].map(|size| size as u32);
    match variant {
        Variant::Tile => Step::Product { sizes, wide, addresses: [x, w.at, out] },
        Variant::Ref => {
            let blocks = [sizes[1].div_ceil(64), sizes[0].div_ceil(64), 1];
            let arguments = [x, w.at, out].map(Address).into_iter().chain(sizes.map(U32)).chain([U32(u32::from(wide))]).collect();
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

/// Threads of a block of attention of one token: ten warps, each of which takes 16 positions at a time.
const ATTENTION_THREADS: u32 = 320;

/// Query heads of a block at most: of the eight columns of a product, half are their upper parts and half the lower ones.
const ATTENTION_HEADS: usize = 4;

/// How the context of one token is split over blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splits {
    /// Into so many parts.
    pub count: u32,
    /// Where blocks leave their sums, and where they count themselves, on a device without clusters.
    pub scratch: [u64; 2],
}

/// Attention of one token from its projections, in one launch.
pub fn attention_decode(
    machine: Machine,
    config: &Config,
    qkv: u64,
    norms: HeadNorms,
    cache: Cache,
    Splits { count, scratch }: Splits,
    out: u64,
) -> Step {
    let Cache { keys, values, capacity, cosines, sines, position } = cache;
    let addresses = [qkv, norms.q, norms.k, cosines, sines, position, keys, values, scratch[0], scratch[1], out].map(Address);
    let sizes = [config.heads, config.kv_heads, capacity].map(number);
    let arguments = addresses.into_iter().chain(sizes).chain([F32(norms.epsilon)]).collect();
    let rows = config.kv_heads * config.group().div_ceil(ATTENTION_HEADS);
    let cluster = if machine.streams { count } else { 1 };
    let grid = Grid { blocks: [count, rows as u32, 1], threads: [ATTENTION_THREADS, 1, 1], shared_bytes: 0, cluster };
    Step::Launch(Launch { kernel: Kernel::AttentionDecode, grid, arguments, early: false })
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

/// Numbers as files have them, bfloat16, to numbers as kernels read them, in place.
pub fn convert(at: u64, count: usize, sms: u32) -> Step {
    line(Kernel::Convert, count.div_ceil(2048).min(sms.max(1) as usize * 8), 256, vec![Address(at), Arg::U64(count as u64)])
}

/// Seeded numbers.
pub fn random(out: u64, count: usize, spread: crate::random::Spread, sms: u32) -> Step {
    let arguments = vec![Address(out), Arg::U64(count as u64), U32(spread.seed), F32(spread.middle), F32(spread.half)];
    line(Kernel::Random, count.div_ceil(256).min(sms.max(1) as usize * 8), 256, arguments)
}
