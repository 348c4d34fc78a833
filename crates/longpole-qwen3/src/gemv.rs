//! The launches of tuned matrices times vectors: how rows are shared out, and how much of them is under way. Pure arithmetic, as in [`crate::ops`].
//!
//! A block on each multiprocessor streams its share of the rows through a ring in shared memory (`kernels/gemv.cuh`). A large ring holds what comes while
//! a block begins and ends; only one block fits on a multiprocessor then, so the next kernel's begins when it is done. Where a ring
//! would hold a block's whole share, that is too late: with rings of half the size the next kernel's weights come meanwhile.

use longpole_bench::cuda::Arg::{Address, F32, U32};
use longpole_bench::cuda::Grid;

use crate::config::Config;
use crate::kernels::Kernel;
use crate::ops::{Launch, Machine, Matrix, Norm, Step};

/// Bytes of a large ring with the sums beside it. (Measured on an H200: 160 KiB and 200 KiB are alike, 104 KiB costs 4 % of a step of the 4B model.)
const LARGE: u32 = 200 << 10;

/// Of a small one: two fit on a multiprocessor, and attention beside them.
const SMALL: u32 = 104 << 10;

/// Shared memory that kernels declare themselves.
const STATIC: u32 = 1 << 10;

/// Threads of a block at most, without the warp that copies.
const MAX_THREADS: usize = 992;

/// Columns of a row at most: what the threads of a block have, two pieces each.
pub const MAX_COLUMNS: u32 = 8 * 2 * MAX_THREADS as u32;

/// What a kernel is made for.
#[derive(Clone, Copy, Debug)]
struct Shape {
    kernel: Kernel,
    /// Numbers that it makes.
    outputs: usize,
    /// Rows of each.
    rows_each: usize,
    columns: usize,
    /// Rows of a stage of the ring.
    stage_rows: usize,
    /// Pieces of eight columns of a thread.
    pieces: usize,
    /// Threads that are enough.
    threads: usize,
}

impl Shape {
    fn normed(kernel: Kernel, outputs: usize, rows_each: usize, columns: usize) -> Self {
        Self { kernel, outputs, rows_each, columns, stage_rows: 4, pieces: 1, threads: 640 }
    }

    fn added(outputs: usize, columns: usize) -> Self {
        Self { kernel: Kernel::GemvAdd, outputs, rows_each: 1, columns, stage_rows: 2, pieces: 2, threads: 256 }
    }

    /// Threads that have all columns.
    fn group(&self) -> usize {
        (self.columns / 8).div_ceil(self.pieces * 32).max(1) * 32
    }

    /// Bytes of what warps add up, for a block's share of the outputs.
    fn sums(&self, outputs: usize) -> usize {
        let steps = outputs.div_ceil(self.stage_rows / self.rows_each);
        (steps * self.stage_rows * (self.group() / 32) * 4).next_multiple_of(128)
    }

    fn stage(&self) -> usize {
        self.stage_rows * self.columns * 2
    }

    /// Blocks, threads and shared memory; `None` if the device has too little of that.
    fn grid(&self, machine: Machine) -> Option<Grid> {
        let sms = machine.sms.max(1) as usize;
        if !machine.streams {
            let blocks = (2 * sms).min(self.outputs.div_ceil(16)).max(1) as u32;
            let shared_bytes = u32::try_from(4 * self.columns).ok().filter(|bytes| bytes + STATIC <= machine.shared_bytes)?;
            return Some(Grid { shared_bytes, ..Grid::line(blocks, 512) });
        }
        let large = machine.shared_bytes.saturating_sub(STATIC).min(LARGE) as usize;
        // As many rounds of blocks as leave most of the memory to the ring, and room for a stage.
        let room = |rounds: usize| {
            let sums = self.sums(self.outputs.div_ceil(rounds * sms));
            sums <= large / 4 && sums + self.stage() <= large
        };
        let rounds = (1..=64).find(|rounds| room(*rounds))?;
        let blocks = (rounds * sms).min(self.outputs).max(1);
        let outputs = self.outputs.div_ceil(blocks);
        let share = outputs * self.rows_each * self.columns * 2;
        let small = SMALL as usize;
        let shared = if (small..large).contains(&share) { small } else { large };
        let stages = |shared: usize| shared.saturating_sub(self.sums(outputs)) / self.stage();
        let shared = if stages(shared) >= 2 { shared } else { large };
        let groups = (self.threads / self.group()).clamp(1, 2).min(stages(shared));
        if groups == 0 || self.group() > MAX_THREADS {
            return None;
        }
        Some(Grid { shared_bytes: shared as u32, ..Grid::line(blocks as u32, (groups * self.group() + 32) as u32) })
    }

    fn step(&self, machine: Machine, arguments: Vec<longpole_bench::cuda::Arg>) -> Step {
        // [`suits`] was asked when the engine was made.
        let grid = self.grid(machine).unwrap_or_else(|| Grid::line(1, 32));
        Step::Launch(Launch { kernel: self.kernel, grid, arguments, early: false })
    }
}

fn normed(machine: Machine, shape: Shape, w: Matrix, x: u64, norm: Norm, out: u64) -> Step {
    let sizes = [shape.outputs, w.columns].map(|size| U32(size as u32));
    let arguments = [w.at, x, norm.at, out].map(Address).into_iter().chain(sizes).chain([F32(norm.epsilon)]).collect();
    shape.step(machine, arguments)
}

/// Queries, keys and values of one token from its hidden state, in 32 bits.
pub fn qkv(machine: Machine, w: Matrix, x: u64, norm: Norm, out: u64) -> Step {
    normed(machine, Shape::normed(Kernel::GemvQkv, w.rows, 1, w.columns), w, x, norm, out)
}

/// `silu(gate) * up` of one token from its hidden state, in 32 bits; the matrix holds gates, then ups.
pub fn gate_up(machine: Machine, w: Matrix, x: u64, norm: Norm, out: u64) -> Step {
    normed(machine, Shape::normed(Kernel::GemvGateUp, w.rows / 2, 2, w.columns), w, x, norm, out)
}

/// Logits of one token from its hidden state.
pub fn lm_head(machine: Machine, w: Matrix, x: u64, norm: Norm, out: u64) -> Step {
    normed(machine, Shape::normed(Kernel::GemvLmHead, w.rows, 1, w.columns), w, x, norm, out)
}

/// `out = residual + w x` of one token, all but the weights in 32 bits.
pub fn add(machine: Machine, w: Matrix, x: u64, residual: u64, out: u64) -> Step {
    let sizes = [w.rows, w.columns].map(|size| U32(size as u32));
    let arguments = [w.at, x, residual, out].map(Address).into_iter().chain(sizes).collect();
    Shape::added(w.rows, w.columns).step(machine, arguments)
}

/// Bytes of shared memory that a launch here asks for at most.
pub fn most_shared(machine: Machine) -> u32 {
    let most = if machine.streams { LARGE } else { 4 * MAX_COLUMNS };
    machine.shared_bytes.saturating_sub(STATIC).min(most)
}

/// Whether the device has the shared memory that a model's rows need.
pub fn suits(machine: Machine, config: &Config) -> bool {
    let Config { hidden, intermediate, vocabulary, .. } = *config;
    [
        Shape::normed(Kernel::GemvQkv, config.qkv_width(), 1, hidden),
        Shape::normed(Kernel::GemvGateUp, intermediate, 2, hidden),
        Shape::normed(Kernel::GemvLmHead, vocabulary, 1, hidden),
        Shape::added(hidden, config.q_width()),
        Shape::added(hidden, intermediate),
    ]
    .iter()
    .all(|shape| shape.grid(machine).is_some())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::tests::tiny;

    pub(crate) const H200: Machine = Machine { sms: 132, shared_bytes: 227 << 10, streams: true };

    #[test]
    fn a_block_on_each_multiprocessor_streams_its_share() {
        let grid = |shape: Shape| shape.grid(H200).map(|grid| (grid.blocks[0], grid.threads[0], grid.shared_bytes >> 10)).unwrap();
        assert_eq!(grid(Shape::normed(Kernel::GemvQkv, 6144, 1, 2560)), (132, 2 * 320 + 32, 200));
        assert_eq!(grid(Shape::normed(Kernel::GemvGateUp, 9728, 2, 2560)), (132, 2 * 320 + 32, 200));
        // A ring of 200 KiB would hold all of the share of 160 KiB.
        assert_eq!(grid(Shape::added(2560, 4096)), (132, 256 + 32, 104));
        assert_eq!(grid(Shape::added(2560, 9728)), (132, 608 + 32, 200));
        assert_eq!(grid(Shape::normed(Kernel::GemvLmHead, 151_936, 1, 2560)), (132, 2 * 320 + 32, 200));
        assert_eq!(grid(Shape::added(1024, 2048)), (132, 2 * 128 + 32, 200));
        // No more blocks than there are rows.
        assert_eq!(grid(Shape::added(2, 256)).0, 2);
    }

    #[test]
    fn sums_and_a_stage_for_each_group_fit() {
        for machine in
            [H200, Machine { sms: 84, shared_bytes: 99 << 10, streams: true }, Machine { sms: 8, shared_bytes: 99 << 10, streams: true }]
        {
            for shape in [
                Shape::normed(Kernel::GemvLmHead, 151_936, 1, 2560),
                Shape::normed(Kernel::GemvGateUp, 9728, 2, 2560),
                Shape::added(2560, 4096),
                Shape::added(2560, 9728),
                Shape::added(1024, 3072),
                Shape::normed(Kernel::GemvQkv, 512, 1, 256),
            ] {
                let grid = shape.grid(machine).unwrap();
                let outputs = shape.outputs.div_ceil(grid.blocks[0] as usize);
                let groups = (grid.threads[0] as usize - 32) / shape.group();
                assert!(groups >= 1 && groups * shape.group() + 32 == grid.threads[0] as usize);
                assert!(shape.sums(outputs) + groups * shape.stage() <= grid.shared_bytes as usize, "{shape:?} {grid:?}");
                assert!(grid.shared_bytes + STATIC <= machine.shared_bytes);
            }
        }
    }

    #[test]
    fn too_little_shared_memory_is_said() {
        assert!(suits(H200, &Config::qwen3_4b()) && suits(H200, &tiny()));
        let small = Machine { sms: 20, shared_bytes: 32 << 10, streams: true };
        assert!(!suits(small, &Config::qwen3_4b()) && suits(small, &tiny()));
        let older = Machine { sms: 108, shared_bytes: 163 << 10, streams: false };
        assert!(suits(older, &Config::qwen3_4b()));
        assert_eq!(Shape::added(2560, 9728).grid(older).map(|grid| grid.shared_bytes), Some(4 * 9728));
    }
}
