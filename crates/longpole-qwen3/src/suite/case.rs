//! One operation with its inputs, its launches and what it should give: measured by the suite, and held against the host by `check`.

use std::rc::Rc;

use longpole_bench::cuda::{Buffer, Cuda};
use longpole_bench::measure::{Body, Driver as _, Error};

use crate::executor::Executor;
use crate::ops::{self, Machine, Step, Variant};
use crate::random::{Spread, f32_of_f16, mixed};
use crate::rope::{self, PAIRS};

/// Relative error of rounding to the eleven bits of half precision, and the absolute one of its smallest numbers.
const ROUNDING: [f64; 2] = [1.0 / 2048.0, 1.0 / 16_777_216.0];

/// Inputs of decode up to so many bytes are the same in every set: what the kernel ahead has just written, and so in the second-level cache whatever else
/// went through it, as it is in a step.
const JUST_WRITTEN: usize = 1 << 20;

/// Outputs that are compared with the host. All are looked at for numbers that nobody wrote.
const CHECKED: usize = 96;

/// A value that an output should have, and the sum of the magnitudes that it was added up from.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The value.
    pub value: f64,
    /// What its error is measured by, beside itself.
    pub magnitude: f64,
}

/// What a buffer holds before a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Seeded numbers of 16 bits.
    Numbers(Spread, usize),
    /// The same numbers in 32 bits, as hidden states are.
    Wide(Spread, usize),
    /// 32-bit words.
    Words(Vec<u32>),
    /// Cosines by position, of a base of frequencies and so many positions.
    Cosines(f64, usize),
    /// Sines, likewise.
    Sines(f64, usize),
    /// Zeros, so many bytes.
    Zeros(usize),
}

/// Launches by the device, the addresses of the inputs and that of the output.
pub(super) type Steps = Box<dyn Fn(Machine, &[u64], u64) -> Vec<Step>>;

/// Outputs at places, computed on the host.
pub(super) type Reference = Box<dyn Fn(&[usize]) -> Vec<Expected>>;

/// An operation.
pub struct Case {
    /// Its name in keys.
    pub op: &'static str,
    /// `decode` or `prefill`.
    pub phase: &'static str,
    /// Which kernels.
    pub variant: Variant,
    /// Its sizes by name.
    pub shape: Vec<(&'static str, usize)>,
    /// Bytes that it reads and writes at least.
    pub bytes: u64,
    /// Floating-point operations, if they are a fair measure.
    pub flops: Option<u64>,
    /// What it reads.
    pub inputs: Vec<Input>,
    /// Numbers that it writes.
    pub outputs: usize,
    /// Whether these have 32 bits.
    pub wide: bool,
    /// How far sums may be off, as a share of their magnitude.
    pub slack: f64,
    /// Its launches.
    pub steps: Steps,
    /// What it should give.
    pub expected: Reference,
}

struct Set {
    inputs: Vec<Rc<Buffer>>,
    out: Buffer,
    steps: Vec<Step>,
}

/// A case on a device.
pub struct CaseBody {
    case: Case,
    executor: Option<Executor>,
    sets: Vec<Set>,
    /// The largest error of the last check as a share of what is allowed.
    pub worst: f64,
}

impl CaseBody {
    /// A case that is not yet on the device.
    pub fn new(case: Case) -> Self {
        Self { case, executor: None, sets: Vec::new(), worst: 0.0 }
    }

    fn set(&self, set: u32) -> Result<&Set, Error> {
        self.sets.get(set as usize).ok_or_else(|| Error::Setup(format!("there is no set {set}")))
    }
}

fn bytes_of(input: &Input) -> usize {
    match input {
        Input::Numbers(_, count) => 2 * count,
        Input::Wide(_, count) => 4 * count,
        Input::Words(words) => 4 * words.len(),
        Input::Cosines(_, positions) | Input::Sines(_, positions) => 4 * PAIRS * positions,
        Input::Zeros(bytes) => *bytes,
    }
}

fn made(driver: &mut Cuda, executor: &Executor, input: &Input) -> Result<Buffer, Error> {
    let buffer = driver.allocate(bytes_of(input))?;
    match input {
        Input::Numbers(spread, count) => {
            let step = ops::random(buffer.address(), *count, *spread, executor.machine().sms);
            // SAFETY: the buffer holds so many numbers, and lives until they have been waited for.
            unsafe { executor.execute(driver, &[step])? };
        }
        Input::Wide(spread, count) => {
            let bytes: Vec<u8> = spread.take(*count).into_iter().flat_map(f32::to_ne_bytes).collect();
            driver.write_part(&buffer, 0, &bytes)?;
        }
        Input::Words(words) => {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            driver.write_part(&buffer, 0, &bytes)?;
        }
        Input::Cosines(theta, positions) | Input::Sines(theta, positions) => {
            let (cosines, sines) = rope::tables(*theta, *positions);
            let values = if matches!(input, Input::Cosines(..)) { cosines } else { sines };
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
            driver.write_part(&buffer, 0, &bytes)?;
        }
        Input::Zeros(_) => driver.fill(&buffer, 0)?,
    }
    driver.synchronize()?;
    Ok(buffer)
}

impl Body<Cuda> for CaseBody {
    fn footprint_bytes(&self) -> u64 {
        self.case.bytes
    }

    fn prepare(&mut self, driver: &mut Cuda, sets: u32) -> Result<(), Error> {
        let mut executor = Executor::new(driver)?;
        self.sets.clear();
        for _ in 0..sets.max(1) {
            let mut inputs = Vec::new();
            for (at, input) in self.case.inputs.iter().enumerate() {
                let just_written = self.case.phase == "decode" && bytes_of(input) <= JUST_WRITTEN;
                let first = self.sets.first().and_then(|set: &Set| set.inputs.get(at)).filter(|_| just_written);
                inputs.push(match first {
                    Some(buffer) => buffer.clone(),
                    None => Rc::new(made(driver, &executor, input)?),
                });
            }
            let out = driver.allocate(self.case.outputs * if self.case.wide { 4 } else { 2 })?;
            let addresses: Vec<u64> = inputs.iter().map(|buffer| buffer.address()).collect();
            let mut steps = (self.case.steps)(executor.machine(), &addresses, out.address());
            if self.case.phase == "decode" && self.case.variant == Variant::Tile {
                // As the engine launches them.
                steps = steps.into_iter().map(Step::early).collect();
            }
            executor.prepare(driver, &steps)?;
            self.sets.push(Set { inputs, out, steps });
        }
        self.executor = Some(executor);
        Ok(())
    }

    fn poison(&mut self, driver: &mut Cuda, set: u32) -> Result<(), Error> {
        driver.fill(&self.set(set)?.out, 0xFF)
    }

    fn launch(&mut self, driver: &mut Cuda, set: u32) -> Result<(), Error> {
        let Some(executor) = &self.executor else { return Err(Error::Setup("the case was not prepared".to_owned())) };
        let set = self.set(set)?;
        debug_assert_eq!(set.inputs.len(), self.case.inputs.len());
        // SAFETY: the case's launches are made for buffers of the sizes that it names.
        unsafe { executor.execute(driver, &set.steps) }
    }

    fn check(&mut self, driver: &mut Cuda, set: u32) -> Result<Option<bool>, Error> {
        let content = driver.content(&self.set(set)?.out)?;
        let found: Vec<f32> = if self.case.wide {
            content.chunks_exact(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap_or_default())).collect()
        } else {
            content.chunks_exact(2).map(|bytes| f32_of_f16(u16::from_ne_bytes([bytes[0], bytes[1]]))).collect()
        };
        if let Some(at) = found.iter().position(|value| !value.is_finite()) {
            return Err(Error::Wrong(format!("element {at} is {}", found[at])));
        }
        let places = places(found.len());
        self.worst = 0.0;
        for (at, Expected { value, magnitude }) in places.iter().zip((self.case.expected)(&places)) {
            let allowed = ROUNDING[0] * value.abs() + ROUNDING[1] + self.case.slack * magnitude;
            let off = (f64::from(found[*at]) - value).abs();
            self.worst = self.worst.max(if allowed > 0.0 { off / allowed } else { off });
            if off.is_nan() || off > allowed {
                return Err(Error::Wrong(format!("element {at} is {}, {value:.6} was expected, within {allowed:.1e}", found[*at])));
            }
        }
        Ok(Some(true))
    }
}

/// The first, the last, and seeded ones between.
fn places(count: usize) -> Vec<usize> {
    if count <= CHECKED {
        return (0..count).collect();
    }
    let between = (0..CHECKED as u32).map(|at| mixed(at.wrapping_mul(0x9E37_79B1)) as usize % count);
    [0, count - 1].into_iter().chain(between).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_spread() {
        assert_eq!(places(3), [0, 1, 2]);
        let found = places(100_000);
        assert!(found.iter().all(|at| *at < 100_000) && found.contains(&99_999) && found.contains(&0));
        assert!(found.iter().filter(|at| **at > 50_000).count() > CHECKED / 4);
    }
}
