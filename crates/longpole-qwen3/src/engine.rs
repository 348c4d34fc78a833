//! A model on a device: its weights, its cache, and steps that read and write them.
//!
//! All memory is allocated when the engine is made. A prefill is launched kernel by kernel, since each length is another plan. A decode step is recorded
//! once for each bucket of contexts and replayed: token and position lie on the device, the last kernel of a step leaves the next token where the next
//! step reads it, so the host launches step after step and only looks at the tokens.

use std::collections::HashMap;

use longpole_bench::cuda::{Buffer, Cuda, Graph, Mark, Pinned};
use longpole_bench::measure::Driver as _;

use crate::config::Config;
use crate::error::Error;
use crate::executor::Executor;
use crate::gemv;
use crate::generate::Decoder;
use crate::layout::{Layout, Part, Span, bucket};
use crate::nvtx;
use crate::ops::{self, Step, Variant};
use crate::plan::Planner;
use crate::random::Spread;
use crate::rope;
use crate::safetensors::{Halves, Tensors};
use crate::weights::tensors;

/// Tokens that can be under way to the host at once; two are.
const RING: usize = 4;

/// The lowest temperature at which tokens are drawn. Logits over a lower one are so large in 32 bits that the noise added to them is lost, and over the
/// lowest of all infinite.
pub const LEAST_TEMPERATURE: f32 = 1e-6;

/// How decode steps are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Kernel by kernel.
    Eager,
    /// Recorded once, then replayed.
    Graph,
}

/// A model on a device. It must be dropped before the device.
pub struct Engine {
    config: Config,
    layout: Layout,
    arena: Buffer,
    executor: Executor,
    graphs: HashMap<(Variant, usize), Graph>,
    /// Positions in the cache, which the device counts too.
    position: usize,
    pinned: Pinned,
    marks: Vec<Mark>,
    /// Whether kernels of a tuned decode step begin before the ones ahead of them are done.
    overlap: bool,
    /// Tokens asked for, and tokens taken.
    asked: usize,
    taken: usize,
}

impl Engine {
    /// Allocates everything. Weights hold whatever was in memory.
    pub fn new(driver: &mut Cuda, config: Config, capacity: usize, step_tokens: usize) -> Result<Self, Error> {
        let layout = Layout::new(&config, capacity, step_tokens)?;
        if let Some(free) = driver.free_bytes().filter(|free| *free < layout.bytes as u64) {
            let (needed, free) = (layout.bytes as f64 / 1e9, free as f64 / 1e9);
            return Err(Error::Room(format!(
                "{needed:.2} GB of device memory are needed, {free:.2} GB are free; a shorter --context needs less"
            )));
        }
        let executor = Executor::new(driver)?;
        if !gemv::suits(executor.machine(), &config) {
            let bytes = executor.machine().shared_bytes >> 10;
            return Err(Error::Unsupported(format!(
                "a block of this device has {bytes} KiB of shared memory, too few for rows of this model"
            )));
        }
        let arena = driver.allocate(layout.bytes)?;
        let pinned = driver.pinned(RING)?;
        let marks = (0..RING).map(|_| driver.mark()).collect::<Result<_, _>>()?;
        let mut engine =
            Self { config, layout, arena, executor, graphs: HashMap::new(), position: 0, pinned, marks, overlap: true, asked: 0, taken: 0 };
        let (cosines, sines) = rope::tables(engine.config.rope_theta, capacity);
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
        engine.write(driver, Part::Cosines, &bytes(&cosines))?;
        engine.write(driver, Part::Sines, &bytes(&sines))?;
        for part in [Part::SplitsDone, Part::BestDone, Part::Position, Part::Tokens, Part::History, Part::Keys, Part::Values] {
            let Span { offset, bytes } = engine.layout.part(part);
            driver.fill_part(&engine.arena, offset, bytes, 0)?;
        }
        engine.set_sampling(driver, 0.0, 0)?;
        Ok(engine)
    }

    /// What it is.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where everything lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Positions in the cache.
    pub fn position(&self) -> usize {
        self.position
    }

    fn planner(&self) -> Planner<'_> {
        Planner::new(&self.config, &self.layout, self.arena.address(), self.executor.machine())
    }

    fn write(&self, driver: &mut Cuda, part: Part, content: &[u8]) -> Result<(), Error> {
        Ok(driver.write_part(&self.arena, self.layout.part(part).offset, content)?)
    }

    /// Fills the weights with seeded numbers, each tensor with those of its name.
    pub fn fill_random(&mut self, driver: &mut Cuda) -> Result<(), Error> {
        let steps: Vec<Step> = tensors(&self.config)
            .iter()
            .map(|tensor| {
                let at = self.arena.address() + (self.layout.weight(tensor.place).offset + 2 * tensor.offset) as u64;
                ops::random(at, tensor.count(), Spread::of_weight(&tensor.name), self.executor.machine().sms)
            })
            .collect();
        // SAFETY: every tensor lies in its place, which lies in the arena.
        unsafe { self.executor.execute(driver, &steps)? };
        Ok(driver.synchronize()?)
    }

    /// Fills the weights from files.
    pub fn load(&mut self, driver: &mut Cuda, from: &Tensors) -> Result<(), Error> {
        let mut conversions = Vec::new();
        for tensor in tensors(&self.config) {
            let offset = self.layout.weight(tensor.place).offset + 2 * tensor.offset;
            let number =
                from.read(&tensor.name, &tensor.shape, &mut |at, bytes| Ok(driver.write_part(&self.arena, offset + 2 * at, bytes)?))?;
            if number == Halves::Bf16 {
                conversions.push(ops::convert(self.arena.address() + offset as u64, tensor.count(), self.executor.machine().sms));
            }
        }
        // SAFETY: every tensor lies in its place, which lies in the arena.
        unsafe { self.executor.execute(driver, &conversions)? };
        Ok(driver.synchronize()?)
    }

    /// How tokens are chosen from here on: the most likely at a temperature below
    /// [`LEAST_TEMPERATURE`], else drawn, alike for the same seed.
    pub fn set_sampling(&mut self, driver: &mut Cuda, temperature: f32, seed: u32) -> Result<(), Error> {
        let inverse = if temperature >= LEAST_TEMPERATURE { 1.0 / temperature } else { 0.0 };
        let content = [inverse.to_ne_bytes(), seed.to_ne_bytes()].concat();
        self.write(driver, Part::Sampling, &content)
    }

    /// Begins anew, with an empty cache.
    pub fn reset(&mut self) {
        self.position = 0;
        (self.asked, self.taken) = (0, 0);
    }

    /// Reads a prompt. The token that follows it is chosen and under way when this returns.
    pub fn prefill(&mut self, driver: &mut Cuda, variant: Variant, tokens: &[u32]) -> Result<(), Error> {
        let _range = nvtx::range(c"prefill");
        if tokens.is_empty() {
            return Err(Error::Asked("the prompt is empty".to_owned()));
        }
        self.room_for(tokens.len())?;
        tokens.iter().try_for_each(|token| self.known(*token))?;
        for part in tokens.chunks(self.layout.step_tokens) {
            {
                let _range = nvtx::range(c"upload inputs");
                let bytes: Vec<u8> = part.iter().flat_map(|token| token.to_ne_bytes()).collect();
                self.write(driver, Part::Tokens, &bytes)?;
                self.write(driver, Part::Position, &(self.position as u32).to_ne_bytes())?;
            }
            let steps = self.planner().prefill(variant, part.len());
            self.executor.prepare(driver, &steps)?;
            // SAFETY: the plan is of this arena.
            unsafe { self.executor.execute(driver, &steps)? };
            let sample = self.planner().sample(part.len());
            // SAFETY: as above.
            unsafe { self.executor.execute(driver, &[sample])? };
            self.position += part.len();
        }
        self.fetch(driver)
    }

    /// Whether a token is in the vocabulary: kernels take the last row for those that are not.
    fn known(&self, token: u32) -> Result<(), Error> {
        if token as usize >= self.config.vocabulary {
            return Err(Error::Asked(format!("token {token} is not one of the vocabulary's {}", self.config.vocabulary)));
        }
        Ok(())
    }

    fn room_for(&self, tokens: usize) -> Result<(), Error> {
        if self.position + tokens > self.layout.capacity {
            let (before, capacity) = (self.position, self.layout.capacity);
            return Err(Error::Asked(format!("{tokens} tokens after {before} others exceed the {capacity} positions of --context")));
        }
        Ok(())
    }

    /// One decode step with the token that the last one chose.
    pub fn step(&mut self, driver: &mut Cuda, variant: Variant, mode: Mode) -> Result<(), Error> {
        self.room_for(1)?;
        let bucket = bucket(self.position + 1, self.layout.capacity);
        match mode {
            Mode::Eager => {
                let _range = nvtx::range(c"eager step");
                let steps = self.step_plan(variant, bucket, 1);
                // SAFETY: the plan is of this arena.
                unsafe { self.executor.execute(driver, &steps)? };
            }
            Mode::Graph => self.replay(driver, variant, bucket)?,
        }
        self.position += 1;
        Ok(())
    }

    /// The launches of a decode step; its position moves on by `advance`.
    pub fn step_plan(&self, variant: Variant, bucket: usize, advance: usize) -> Vec<Step> {
        let mut steps = self.planner().decode(variant, bucket);
        steps.push(self.planner().sample(advance));
        if self.overlap && variant == Variant::Tile { steps.into_iter().map(Step::early).collect() } else { steps }
    }

    /// Whether kernels of a tuned decode step may begin before the ones ahead of them are done, as they do if nothing is said.
    pub fn set_overlap(&mut self, overlap: bool) {
        self.overlap = overlap;
        self.graphs.clear();
    }

    fn replay(&mut self, driver: &mut Cuda, variant: Variant, bucket: usize) -> Result<(), Error> {
        if !self.graphs.contains_key(&(variant, bucket)) {
            let _range = nvtx::range(c"capture step");
            let steps = self.step_plan(variant, bucket, 1);
            let executor = &self.executor;
            // SAFETY: the plan is of this arena, which outlives the graph.
            let graph = driver.record(&mut |driver| unsafe { executor.execute(driver, &steps) })?;
            self.graphs.insert((variant, bucket), graph);
        }
        let _range = nvtx::range(c"replay step");
        if let Some(graph) = self.graphs.get(&(variant, bucket)) {
            driver.replay(graph)?;
        }
        Ok(())
    }

    /// The next step reads this token instead of the chosen one.
    pub fn force(&mut self, driver: &mut Cuda, token: u32) -> Result<(), Error> {
        self.known(token)?;
        self.write(driver, Part::Tokens, &token.to_ne_bytes())
    }

    /// Sends the last chosen token on its way to the host.
    pub fn fetch(&mut self, driver: &mut Cuda) -> Result<(), Error> {
        let slot = self.asked % RING;
        // The token after a full cache has no place in the history; it lies where the next step would read it.
        let offset = if self.position < self.layout.capacity {
            self.layout.part(Part::History).offset + 4 * self.position
        } else {
            self.layout.part(Part::Tokens).offset
        };
        driver.read_later(&self.arena, offset, &self.pinned, slot)?;
        if let Some(mark) = self.marks.get(slot) {
            driver.set_mark(mark)?;
        }
        self.asked += 1;
        Ok(())
    }

    /// The next of the tokens under way.
    pub fn take(&mut self, driver: &mut Cuda) -> Result<u32, Error> {
        let _range = nvtx::range(c"sample");
        let slot = self.taken % RING;
        let (Some(mark), true) = (self.marks.get(slot), self.taken < self.asked) else {
            return Err(Error::Asked("no token is under way".to_owned()));
        };
        driver.wait_for(mark)?;
        self.taken += 1;
        Ok(self.pinned.word(slot).unwrap_or(u32::MAX))
    }

    /// The logits of the last step.
    pub fn logits(&self, driver: &mut Cuda) -> Result<Vec<f32>, Error> {
        let Span { offset, bytes } = self.layout.part(Part::Logits);
        let content = driver.read_part(&self.arena, offset, bytes)?;
        Ok(content.chunks_exact(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap_or_default())).collect())
    }

    /// Fills the logits with NaN.
    pub fn poison(&self, driver: &mut Cuda) -> Result<(), Error> {
        let Span { offset, bytes } = self.layout.part(Part::Logits);
        Ok(driver.fill_part(&self.arena, offset, bytes, 0xFF)?)
    }

    /// Launches of one prefill of so many tokens from the current position on, products prepared; the position stays.
    pub fn prefill_plan(&mut self, driver: &mut Cuda, variant: Variant, tokens: usize) -> Result<Vec<Step>, Error> {
        let mut steps = self.planner().prefill(variant, tokens);
        steps.push(self.planner().sample(0));
        self.executor.prepare(driver, &steps)?;
        Ok(steps)
    }

    /// Enqueues a plan of this engine.
    pub fn run_plan(&self, driver: &mut Cuda, steps: &[Step]) -> Result<(), Error> {
        // SAFETY: plans are made by this engine alone, for its arena.
        unsafe { self.executor.execute(driver, steps)? };
        Ok(())
    }

    /// Puts the device's position where it is told, and so the host's.
    pub fn seek(&mut self, driver: &mut Cuda, position: usize) -> Result<(), Error> {
        self.position = position;
        self.write(driver, Part::Position, &(position as u32).to_ne_bytes())
    }
}

/// An engine with its device while it generates, and the time that the host spent on launching.
pub struct Generation<'a> {
    /// The engine.
    pub engine: &'a mut Engine,
    /// Its device.
    pub driver: &'a mut Cuda,
    /// Which kernels.
    pub variant: Variant,
    /// How steps are launched.
    pub mode: Mode,
    /// Nanoseconds of the host in launches, by step.
    pub launch_ns: Vec<u64>,
}

impl Decoder for Generation<'_> {
    fn launch(&mut self) -> Result<(), Error> {
        let began = std::time::Instant::now();
        self.engine.step(self.driver, self.variant, self.mode)?;
        self.engine.fetch(self.driver)?;
        self.launch_ns.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        Ok(())
    }

    fn take(&mut self) -> Result<u32, Error> {
        self.engine.take(self.driver)
    }
}
