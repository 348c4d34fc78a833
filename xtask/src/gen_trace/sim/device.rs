//! What the process asks of the device, and what the device does: API calls, kernels, copies, graph replays.

use std::fmt::Write as _;

use super::{Gap, Kernel, PID, Replay, STREAM, Section, Sim, TID};

impl Sim<'_, '_> {
    /// A runtime or driver call of a known duration. Calls that launch nothing carry an unmatched flow end, as Kineto writes them.
    fn api(&mut self, category: &'static str, name: &str, cbid: i64, duration: i64, launches: bool, in_op: bool) -> (i64, i64) {
        let start = self.now;
        let correlation = self.correlation;
        self.now += duration;
        self.count(category);
        if self.section == Section::Cupti {
            let owner = self.current_op;
            self.complete(category, name.as_bytes(), (PID, TID), start, duration);
            if in_op {
                self.writer.int("External id", Gap::Space, owner);
            }
            self.writer.int("cbid", Gap::Wide, cbid);
            self.writer.int("correlation", Gap::Space, correlation);
            self.writer.end();
        }
        self.flow(launches, correlation, (PID, TID), start);
        (correlation, start)
    }

    /// A runtime call that launches nothing.
    pub(crate) fn runtime(&mut self, name: &str, cbid: i64, low: i64, high: i64) {
        if self.replay.is_some() {
            return;
        }
        self.correlation += 1;
        let duration = self.rng.skewed(low, high);
        self.api("cuda_runtime", name, cbid, duration, false, true);
    }

    /// Waits until the device has done all its work.
    pub(crate) fn synchronize(&mut self, name: &str, cbid: i64, in_op: bool) {
        self.correlation += 2;
        let slack = self.rng.skewed(1000, 3000);
        let wait = (self.gpu_free_at - self.now + slack).max(1500);
        self.api("cuda_runtime", name, cbid, wait, false, in_op);
    }

    /// Puts `duration` of work on the stream once it is free and `ready` has come.
    fn occupy(&mut self, ready: i64, duration: i64) -> i64 {
        let start = if self.gpu_free_at >= ready { self.gpu_free_at + self.rng.skewed(0, 900) } else { ready };
        self.gpu_free_at = start + duration;
        self.gpu_first.get_or_insert(start);
        self.gpu_last = start + duration;
        // One stream, in order: the union of the device's work is its sum.
        self.truth.gpu_busy_ns += duration;
        start
    }

    /// Launches a kernel, or inside a graph replay emits it as one of the graph's nodes.
    pub(crate) fn kernel(&mut self, kernel: Kernel, duration: i64, grid: (i64, i64), block: i64) {
        let (correlation, launched_at) = self.launch(kernel);
        let duration = (duration * (9200 + self.rng.below(2000) as i64) / 10_000).max(700);
        let latency = self.rng.skewed(2200, 4200);
        let start = self.occupy(launched_at + latency, duration);
        self.kernel_record(kernel, correlation, start, duration, grid, block);
    }

    /// The launch of a kernel that runs after the window has closed.
    pub(crate) fn launch_without_kernel(&mut self, kernel: Kernel) {
        self.launch(kernel);
        self.truth.launch_without_kernel += 1;
    }

    /// A kernel whose launch came before the window opened.
    pub(crate) fn kernel_without_launch(&mut self, kernel: Kernel, start: i64, duration: i64) {
        self.correlation += 4;
        self.truth.gpu_busy_ns += duration;
        self.truth.kernel_without_launch += 1;
        self.kernel_record(kernel, self.correlation, start, duration, (17_888, 1), 128);
    }

    fn launch(&mut self, kernel: Kernel) -> (i64, i64) {
        if let Some(replay) = &mut self.replay {
            replay.node += 1;
            return (replay.correlation, replay.launched_at);
        }
        self.correlation += 4;
        let cost = self.rng.skewed(2600, 9000);
        if kernel.launched_by_driver() {
            self.api("cuda_driver", "cuLaunchKernelEx", 652, cost, true, true)
        } else {
            self.api("cuda_runtime", "cudaLaunchKernel", 211, cost, true, true)
        }
    }

    fn kernel_record(&mut self, kernel: Kernel, correlation: i64, start: i64, duration: i64, grid: (i64, i64), block: i64) {
        self.count("kernel");
        self.truth.kernel_ns += duration;
        let total = &mut self.truth.kernels[kernel as usize];
        total.0 += 1;
        total.1 += duration;
        if self.section == Section::Cupti {
            let name = std::mem::take(&mut self.kernel_names[kernel as usize]);
            self.complete("kernel", name.as_bytes(), (0, STREAM), start, duration);
            self.kernel_names[kernel as usize] = name;
            let owner = self.current_op;
            let node = self.replay.map(|replay| replay.node);
            let w = &mut *self.writer;
            if owner != 0 && node.is_none() {
                w.int("External id", Gap::Space, owner);
            }
            w.int("queued", Gap::Wide, 0);
            w.int("device", Gap::Space, 0);
            w.int("context", Gap::Space, 1);
            w.int("stream", Gap::Wide, STREAM);
            w.int("correlation", Gap::Space, correlation);
            if let Some(node) = node {
                w.int("graph id", Gap::Wide, 3);
                w.int("graph node id", Gap::Space, 12_884_901_888 + node);
            }
            let blocks = grid.0 * grid.1;
            let blocks_per_sm = blocks * 1_000_000 / 132;
            w.int("registers per thread", Gap::Wide, kernel.registers());
            w.int("shared memory", Gap::Wide, if block == 128 { 0 } else { 49_152 });
            w.millionths("blocks per SM", Gap::Wide, blocks_per_sm);
            w.millionths("warps per SM", Gap::Wide, blocks_per_sm * block / 32);
            self.scratch.clear();
            // Writing to a string does not fail.
            let _ = write!(self.scratch, "[{}, {}, 1][{block}, 1, 1]", grid.0, grid.1);
            let split = self.scratch.find(']').map_or(0, |at| at + 1);
            w.json("grid", Gap::Wide, &self.scratch.as_bytes()[..split]);
            w.json("block", Gap::Wide, &self.scratch.as_bytes()[split..]);
            w.int("est. achieved occupancy %", Gap::Wide, (blocks * 10 / 132).min(100));
            w.end();
        }
        self.flow(false, correlation, (0, STREAM), start);
    }

    /// A copy or a fill, with its launching call.
    pub(crate) fn memory_operation(&mut self, category: &'static str, name: &str, bytes: i64) {
        self.correlation += 3;
        let fill = category == "gpu_memset";
        let (call, cbid, cost) = if fill {
            ("cudaMemsetAsync", 51, self.rng.skewed(2500, 7000))
        } else {
            ("cudaMemcpyAsync", 41, self.rng.skewed(3500, 12_000))
        };
        let (correlation, launched_at) = self.api("cuda_runtime", call, cbid, cost, true, true);
        let duration = 900 + bytes / 1500;
        let start = self.occupy(launched_at + 2500, duration);
        self.count(category);
        self.truth.gpu_mem_ns += duration;
        if self.section == Section::Cupti {
            let owner = self.current_op;
            self.complete(category, name.as_bytes(), (0, STREAM), start, duration);
            let w = &mut *self.writer;
            w.int("External id", Gap::Space, owner);
            w.int("device", Gap::Wide, 0);
            w.int("context", Gap::Space, 1);
            w.int("stream", Gap::Wide, STREAM);
            w.int("correlation", Gap::Space, correlation);
            w.int("bytes", Gap::Wide, bytes);
            w.millionths("memory bandwidth (GB/s)", Gap::Space, bytes * 1_000_000 / duration);
            w.end();
        }
        self.flow(false, correlation, (0, STREAM), start);
    }

    /// One graph launch; the kernels of `body` are its nodes.
    pub(crate) fn graph_launch(&mut self, body: impl FnOnce(&mut Self)) {
        self.correlation += 4;
        let cost = self.rng.skewed(8000, 30_000);
        let (correlation, launched_at) = self.api("cuda_runtime", "cudaGraphLaunch", 311, cost, true, true);
        self.replay = Some(Replay { correlation, launched_at, node: 0 });
        body(self);
        self.replay = None;
    }
}
