//! The launches of a whole step, in order.
//!
//! A tuned decode step has five launches a layer: projections of the normalised hidden state; attention, which also prepares its inputs and puts its
//! splits together; the output added to the hidden state; the feed-forward part's two. With embedding, logits and sampling that is 143 for 28 layers
//! and 183 for 36. The plain one has ten a layer.

use crate::config::{Config, HEAD};
use crate::gemv;
use crate::layout::{Layout, Part, splits};
use crate::ops::{self, Cache, HeadNorms, Machine, Matrix, Norm, Sampler, Splits, Step, Variant};
use crate::weights::Place;

/// Addresses of everything of a model on a device.
#[derive(Clone, Copy, Debug)]
pub struct Planner<'a> {
    config: &'a Config,
    layout: &'a Layout,
    base: u64,
    machine: Machine,
}

impl<'a> Planner<'a> {
    /// Plans for a layout that begins at the address `base`.
    pub fn new(config: &'a Config, layout: &'a Layout, base: u64, machine: Machine) -> Self {
        Self { config, layout, base, machine }
    }

    fn at(&self, part: Part) -> u64 {
        self.base + self.layout.part(part).offset as u64
    }

    fn matrix(&self, place: Place, rows: usize, columns: usize) -> Matrix {
        Matrix { at: self.base + self.layout.weight(place).offset as u64, rows, columns }
    }

    fn norm(&self, place: Place) -> Norm {
        Norm { at: self.base + self.layout.weight(place).offset as u64, epsilon: self.config.epsilon }
    }

    fn table(&self, place: Place) -> Matrix {
        self.matrix(place, self.config.vocabulary, self.config.hidden)
    }

    fn cache(&self, layer: usize) -> Cache {
        let Layout { capacity, .. } = *self.layout;
        let before = (2 * layer * self.config.kv_heads * HEAD * capacity) as u64;
        Cache {
            keys: self.at(Part::Keys) + before,
            values: self.at(Part::Values) + before,
            capacity,
            cosines: self.at(Part::Cosines),
            sines: self.at(Part::Sines),
            position: self.at(Part::Position),
        }
    }

    fn head_norms(&self, layer: usize) -> HeadNorms {
        HeadNorms { q: self.norm(Place::QNorm(layer)).at, k: self.norm(Place::KNorm(layer)).at, epsilon: self.config.epsilon }
    }

    /// The four matrices of a layer: queries, keys and values; output; gates and ups; down.
    fn matrices(&self, layer: usize) -> [Matrix; 4] {
        let Config { hidden, intermediate, .. } = *self.config;
        [
            self.matrix(Place::Qkv(layer), self.config.qkv_width(), hidden),
            self.matrix(Place::Output(layer), hidden, self.config.q_width()),
            self.matrix(Place::GateUp(layer), 2 * intermediate, hidden),
            self.matrix(Place::Down(layer), hidden, intermediate),
        ]
    }

    /// One token through the model to its logits, for contexts of up to `bucket` positions.
    pub fn decode(&self, variant: Variant, bucket: usize) -> Vec<Step> {
        match variant {
            Variant::Tile => self.fused(bucket),
            Variant::Ref => self.plain(Variant::Ref, 1),
        }
    }

    fn fused(&self, bucket: usize) -> Vec<Step> {
        let machine = self.machine;
        let hidden = self.at(Part::Hidden);
        let [qkv, attended, activated] = [Part::TokenQkv, Part::TokenAttended, Part::TokenActivated].map(|part| self.at(part));
        let split = Splits { count: splits(bucket), scratch: [Part::Splits, Part::SplitsDone].map(|part| self.at(part)) };
        let mut steps = vec![ops::embedding(self.table(Place::Embedding), self.at(Part::Tokens), 1, hidden)];
        for layer in 0..self.config.layers {
            let [w_qkv, w_out, w_gate_up, w_down] = self.matrices(layer);
            let (norms, cache) = (self.head_norms(layer), self.cache(layer));
            steps.push(gemv::qkv(machine, w_qkv, hidden, self.norm(Place::AttentionNorm(layer)), qkv));
            steps.push(ops::attention_decode(machine, self.config, qkv, norms, cache, split, attended));
            steps.push(gemv::add(machine, w_out, attended, hidden, hidden));
            steps.push(gemv::gate_up(machine, w_gate_up, hidden, self.norm(Place::MlpNorm(layer)), activated));
            steps.push(gemv::add(machine, w_down, activated, hidden, hidden));
        }
        steps.push(gemv::lm_head(machine, self.table(Place::Head), hidden, self.norm(Place::Norm), self.at(Part::Logits)));
        steps
    }

    /// So many tokens through the model to the logits of the last.
    pub fn prefill(&self, variant: Variant, tokens: usize) -> Vec<Step> {
        self.plain(variant, tokens)
    }

    /// An operation a launch.
    fn plain(&self, variant: Variant, tokens: usize) -> Vec<Step> {
        let config = self.config;
        let Config { hidden: width, intermediate, .. } = *config;
        let [hidden, normed, qkv, queries] = [Part::Hidden, Part::Normed, Part::Qkv, Part::Queries].map(|part| self.at(part));
        let [attended, delta, gate_up, activated] = [Part::Attended, Part::Delta, Part::GateUp, Part::Activated].map(|part| self.at(part));
        // The plain way of one token is a matrix times a vector.
        let linear = |w: Matrix, x: u64, out: u64, wide: bool| {
            if variant == Variant::Ref && tokens == 1 {
                ops::gemv_ref(w, x, out, wide)
            } else {
                ops::gemm(variant, w, x, out, tokens, wide)
            }
        };
        let add = |norm: Norm| ops::add_rms_norm(hidden, delta, norm, hidden, normed, [tokens, width]);
        let mut steps = vec![ops::embedding(self.table(Place::Embedding), self.at(Part::Tokens), tokens, hidden)];
        if config.layers > 0 {
            steps.push(ops::rms_norm(hidden, self.norm(Place::AttentionNorm(0)), normed, tokens, width));
        }
        for layer in 0..config.layers {
            let [w_qkv, w_out, w_gate_up, w_down] = self.matrices(layer);
            let (norms, cache) = (self.head_norms(layer), self.cache(layer));
            let next = if layer + 1 < config.layers { Place::AttentionNorm(layer + 1) } else { Place::Norm };
            steps.extend([
                linear(w_qkv, normed, qkv, false),
                ops::q_inputs(config, qkv, norms, cache, queries, tokens),
                ops::kv_inputs(config, qkv, norms, cache, tokens),
                ops::attention(variant, config, queries, cache, attended, tokens),
                linear(w_out, attended, delta, true),
                add(self.norm(Place::MlpNorm(layer))),
                linear(w_gate_up, normed, gate_up, false),
                ops::swiglu(gate_up, activated, [tokens, intermediate]),
                linear(w_down, activated, delta, true),
                add(self.norm(next)),
            ]);
        }
        let last = ((tokens - 1) * width) as u64;
        let (head, logits) = (self.table(Place::Head), self.at(Part::Logits));
        steps.push(match variant {
            Variant::Ref => ops::gemv_ref(head, normed + 2 * last, logits, true),
            Variant::Tile => gemv::lm_head(self.machine, head, hidden + 4 * last, self.norm(Place::Norm), logits),
        });
        steps
    }

    /// Chooses a token and moves the position on.
    pub fn sample(&self, advance: usize) -> Step {
        let at = Sampler {
            logits: self.at(Part::Logits),
            sampling: self.at(Part::Sampling),
            scratch: [Part::Best, Part::BestDone].map(|part| self.at(part)),
            position: self.at(Part::Position),
            token: self.at(Part::Tokens),
            history: self.at(Part::History),
        };
        ops::sample(at, self.config.vocabulary, advance, self.layout.capacity)
    }
}

#[cfg(test)]
mod tests {
    use longpole_bench::cuda::Arg;

    use super::*;
    use crate::gemv::tests::H200;
    use crate::kernels::Kernel;

    const BASE: u64 = 0x7F00_0000_0000;

    fn launches(steps: &[Step], kernel: Kernel) -> usize {
        steps.iter().filter(|step| matches!(step, Step::Launch(launch) if launch.kernel == kernel)).count()
    }

    /// Every address of a step, and whether it lies at the beginning of a 16-byte piece of the allocation.
    fn sound(steps: &[Step], layout: &Layout) {
        for step in steps {
            let addresses: Vec<u64> = match step {
                Step::Launch(launch) => {
                    let Arg::Address(_) = launch.arguments[0] else { panic!("{launch:?}") };
                    assert!(launch.grid.blocks.iter().all(|blocks| *blocks > 0) && launch.grid.threads[0].is_multiple_of(32));
                    assert!(
                        launch.grid.blocks[1] < 65_536
                            && launch.grid.threads[0] <= 1024
                            && launch.grid.blocks[0].is_multiple_of(launch.grid.cluster)
                    );
                    launch.arguments.iter().filter_map(|argument| if let Arg::Address(at) = argument { Some(*at) } else { None }).collect()
                }
                Step::Product { addresses, .. } => addresses.to_vec(),
            };
            for at in addresses {
                assert!(at >= BASE && at < BASE + layout.bytes as u64 && at.is_multiple_of(16), "{at:x} of {step:?}");
            }
        }
    }

    #[test]
    fn a_tuned_decode_step_has_five_launches_a_layer() {
        for (config, expected) in [(Config::qwen3_0_6b(), 143), (Config::qwen3_4b(), 183)] {
            let layout = Layout::new(&config, 2048, 1024).unwrap();
            let planner = Planner::new(&config, &layout, BASE, H200);
            let mut steps = planner.decode(Variant::Tile, 1024);
            steps.push(planner.sample(1));
            assert_eq!(steps.len(), expected);
            sound(&steps, &layout);
            assert_eq!(launches(&steps, Kernel::GemvAdd), 2 * config.layers);
            let plain = planner.decode(Variant::Ref, 1024);
            assert_eq!(plain.len(), 3 + 10 * config.layers);
            sound(&plain, &layout);
            assert_eq!(launches(&plain, Kernel::GemvRef), 4 * config.layers + 1);
        }
    }

    #[test]
    fn a_prefill_multiplies_matrices() {
        let config = Config::qwen3_4b();
        let layout = Layout::new(&config, 2048, 1024).unwrap();
        let planner = Planner::new(&config, &layout, BASE, H200);
        let steps = planner.prefill(Variant::Tile, 1000);
        sound(&steps, &layout);
        let products: Vec<[u32; 3]> =
            steps.iter().filter_map(|step| if let Step::Product { sizes, .. } = step { Some(*sizes) } else { None }).collect();
        assert_eq!(products.len(), 4 * 36);
        assert_eq!(products[..4], [[1000, 6144, 2560], [1000, 2560, 4096], [1000, 19_456, 2560], [1000, 2560, 9728]]);
        assert_eq!(launches(&planner.prefill(Variant::Ref, 1000), Kernel::GemmRef), 4 * 36);
    }

    #[test]
    fn layers_have_caches_of_their_own() {
        let config = Config::qwen3_0_6b();
        let layout = Layout::new(&config, 512, 64).unwrap();
        let planner = Planner::new(&config, &layout, BASE, H200);
        let (first, last) = (planner.cache(0), planner.cache(27));
        let bytes = (config.kv_heads * HEAD * 512 * 2) as u64;
        assert_eq!(last.keys - first.keys, 27 * bytes);
        assert_eq!(last.values + bytes, BASE + (layout.part(Part::Values).offset + layout.part(Part::Values).bytes) as u64);
    }

    #[test]
    fn only_kernels_that_wait_begin_early() {
        let config = Config::qwen3_0_6b();
        let layout = Layout::new(&config, 512, 64).unwrap();
        let planner = Planner::new(&config, &layout, BASE, H200);
        let early = |steps: Vec<Step>| {
            steps.into_iter().map(Step::early).filter(|step| matches!(step, Step::Launch(launch) if launch.early)).count()
        };
        assert_eq!(early(planner.decode(Variant::Tile, 512)), 142);
        // Embedding is shared; nothing else of the plain way waits by itself.
        assert_eq!(early(planner.decode(Variant::Ref, 512)), 1);
        for kernel in Kernel::ALL {
            let source = std::fs::read_to_string(format!("{}/kernels/{}.cu", env!("CARGO_MANIFEST_DIR"), kernel.file())).unwrap();
            let waits = source.contains("wait_for_previous();") || source.contains("#include \"gemv.cuh\"");
            let launch =
                ops::Launch { kernel: *kernel, grid: longpole_bench::cuda::Grid::line(1, 32), arguments: Vec::new(), early: false };
            assert_eq!(matches!(Step::Launch(launch).early(), Step::Launch(launch) if launch.early), waits, "{kernel:?}");
        }
    }
}
