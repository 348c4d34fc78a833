//! Whole steps of a model.

use longpole_bench::cuda::Cuda;
use longpole_bench::measure::{Body, Error as Measured};

use crate::config::Config;
use crate::engine::Engine;
use crate::error::Error;
use crate::layout::bucket;
use crate::ops::{Step, Variant};
use crate::random;

/// Positions before a measured decode step.
pub const CONTEXT: usize = 1024;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// One token after [`CONTEXT`] others.
    Decode,
    /// So many tokens at once.
    Prefill(usize),
}

impl Whole {
    /// Its name in keys.
    pub fn name(self) -> String {
        match self {
            Self::Decode => format!("decode_step_ctx{CONTEXT}"),
            Self::Prefill(tokens) => format!("prefill{tokens}"),
        }
    }

    /// Bytes that it reads at least: every weight, and the cache of what was before.
    pub fn bytes(self, config: &Config) -> u64 {
        match self {
            Self::Decode => config.decode_bytes(CONTEXT),
            Self::Prefill(_) => config.decode_bytes(0),
        }
    }

    /// Floating-point operations.
    pub fn flops(self, config: &Config) -> u64 {
        match self {
            Self::Decode => config.flops(1, CONTEXT),
            Self::Prefill(tokens) => config.flops(tokens, 0),
        }
    }
}

/// A whole step on a device. The position stays, so that every run does the same.
pub struct ModelBody {
    config: Config,
    variant: Variant,
    whole: Whole,
    engine: Option<Engine>,
    /// The step as measured, and as the other variant does it.
    steps: [Vec<Step>; 2],
}

/// How far the logits of the two variants may be apart, as a share of their length. Roundings to half precision in 36 layers put the plain one up to four
/// thousandths off; a wrong kernel puts them as far apart as two random vectors.
const APART: f64 = 0.01;

impl ModelBody {
    /// A step that is not yet on the device.
    pub fn new(config: Config, variant: Variant, whole: Whole) -> Self {
        Self { config, variant, whole, engine: None, steps: [Vec::new(), Vec::new()] }
    }

    fn engine(&mut self) -> Result<&mut Engine, Measured> {
        self.engine.as_mut().ok_or_else(|| Measured::Setup("the model was not prepared".to_owned()))
    }

    fn prepared(&self, driver: &mut Cuda) -> Result<(Engine, [Vec<Step>; 2]), Error> {
        let tokens = match self.whole {
            Whole::Decode => CONTEXT,
            Whole::Prefill(tokens) => tokens,
        };
        let mut engine = Engine::new(driver, self.config.clone(), 2 * CONTEXT, CONTEXT)?;
        engine.fill_random(driver)?;
        engine.prefill(driver, Variant::Tile, &random::tokens(1, tokens, self.config.vocabulary))?;
        let mut steps = [Vec::new(), Vec::new()];
        let other = if self.variant == Variant::Tile { Variant::Ref } else { Variant::Tile };
        for (steps, variant) in steps.iter_mut().zip([self.variant, other]) {
            *steps = match self.whole {
                Whole::Decode => engine.step_plan(variant, bucket(CONTEXT + 1, 2 * CONTEXT), 0),
                Whole::Prefill(tokens) => engine.prefill_plan(driver, variant, tokens)?,
            };
        }
        if let Whole::Prefill(_) = self.whole {
            engine.seek(driver, 0)?;
        }
        Ok((engine, steps))
    }
}

/// What went wrong, as those who measure say it.
fn measured(error: Error) -> Measured {
    match error {
        Error::Device(error) => error,
        other => Measured::Setup(other.to_string()),
    }
}

impl Body<Cuda> for ModelBody {
    fn footprint_bytes(&self) -> u64 {
        self.whole.bytes(&self.config)
    }

    /// One set whatever is asked for: the weights are many times the cache.
    fn prepare(&mut self, driver: &mut Cuda, _: u32) -> Result<(), Measured> {
        self.engine = None;
        let (engine, steps) = self.prepared(driver).map_err(measured)?;
        (self.engine, self.steps) = (Some(engine), steps);
        Ok(())
    }

    /// The first token is set anew too, since each run leaves the one it chose there.
    fn poison(&mut self, driver: &mut Cuda, _: u32) -> Result<(), Measured> {
        let engine = self.engine()?;
        engine.poison(driver).and_then(|()| engine.force(driver, 17)).map_err(measured)
    }

    fn launch(&mut self, driver: &mut Cuda, _: u32) -> Result<(), Measured> {
        let Some(engine) = &self.engine else { return Err(Measured::Setup("the model was not prepared".to_owned())) };
        engine.run_plan(driver, &self.steps[0]).map_err(measured)
    }

    fn check(&mut self, driver: &mut Cuda, set: u32) -> Result<Option<bool>, Measured> {
        let found = self.engine()?.logits(driver).map_err(measured)?;
        self.poison(driver, set)?;
        let other = std::mem::take(&mut self.steps[1]);
        let engine = self.engine()?;
        let expected = engine.run_plan(driver, &other).and_then(|()| engine.logits(driver)).map_err(measured)?;
        self.steps[1] = other;
        let expected: Vec<f64> = expected.into_iter().map(f64::from).collect();
        let apart = crate::reference::distance(&found, &expected);
        if apart.is_nan() || apart > APART {
            return Err(Measured::Wrong(format!("the logits of the two variants are {apart:.4} of their length apart")));
        }
        Ok(Some(true))
    }
}
