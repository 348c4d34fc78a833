//! Root-mean-square normalisation of rows.

use longpole_bench::cuda::{Arg, Cuda, Function, Grid, Sets, bf16_bytes, f32_of_bf16};
use longpole_bench::key::KeyError;
use longpole_bench::measure::{Body, Error};
use longpole_bench::suite::Suite;

use crate::benchmark;
use crate::reference::{Expected, compare, numbers};

/// Width of a row: eight numbers for each of 512 threads.
const COLUMNS: u32 = 4096;
const THREADS: u32 = COLUMNS / 8;
const EPSILON: f32 = 1e-6;

/// Rows by phase: sixteen sequences decode, or thousands of tokens are read.
const PHASES: [(&str, u32); 2] = [("decode", 16), ("prefill", 8192)];

struct RmsNorm {
    rows: u32,
    sets: Sets,
    kernel: Option<Function>,
    /// Inputs and weights as rounded to bfloat16.
    inputs: Vec<f32>,
    weights: Vec<f32>,
}

fn bytes(rows: u32) -> u64 {
    2 * u64::from(COLUMNS) * (2 * u64::from(rows) + 1)
}

pub(crate) fn add(suite: Suite<Cuda>) -> Result<Suite<Cuda>, KeyError> {
    PHASES.into_iter().try_fold(suite, |suite, (phase, rows)| {
        let shape = [("rows", u64::from(rows)), ("columns", u64::from(COLUMNS))];
        let described = benchmark(&format!("Example/ops/rms_norm/{phase}/block_row"), &shape, bytes(rows), None)?;
        let body = move |_: &mut Cuda| Ok(RmsNorm { rows, sets: Sets::default(), kernel: None, inputs: Vec::new(), weights: Vec::new() });
        Ok(suite.benchmark(described, body))
    })
}

impl Body<Cuda> for RmsNorm {
    fn footprint_bytes(&self) -> u64 {
        bytes(self.rows)
    }

    fn prepare(&mut self, driver: &mut Cuda, sets: u32) -> Result<(), Error> {
        let count = self.rows as usize * COLUMNS as usize;
        let (inputs, weights) = (bf16_bytes(numbers(3, count)), bf16_bytes(numbers(4, COLUMNS as usize)));
        self.sets = Sets::new(driver, sets, &[&inputs, &weights], inputs.len())?;
        (self.inputs, self.weights) = (f32_of_bf16(&inputs), f32_of_bf16(&weights));
        let module = driver.compile(include_str!("../kernels/rms_norm.cu"), "rms_norm.cu")?;
        self.kernel = Some(driver.function(&module, "rms_norm_block_row")?);
        Ok(())
    }

    fn poison(&mut self, driver: &mut Cuda, set: u32) -> Result<(), Error> {
        driver.fill(self.sets.output(set)?, 0xFF)
    }

    fn launch(&mut self, driver: &mut Cuda, set: u32) -> Result<(), Error> {
        let Some(kernel) = &self.kernel else { return Err(Error::Setup("the kernel was not compiled".to_owned())) };
        let buffers = [self.sets.input(set, 0)?, self.sets.input(set, 1)?, self.sets.output(set)?];
        let [inputs, weights, out] = buffers.map(|buffer| Arg::Address(buffer.address()));
        let mut arguments = [inputs, weights, out, Arg::U32(COLUMNS), Arg::F32(EPSILON)];
        // SAFETY: the arguments are those of the kernel, a block touches one row, and the buffers hold a row for each block.
        unsafe { driver.launch(kernel, Grid::line(self.rows, THREADS), &mut arguments) }
    }

    fn check(&mut self, driver: &mut Cuda, set: u32) -> Result<Option<bool>, Error> {
        let found = f32_of_bf16(&driver.content(self.sets.output(set)?)?);
        let columns = COLUMNS as usize;
        let scales: Vec<f64> = self.inputs.chunks_exact(columns).map(scale).collect();
        compare(found.into_iter().enumerate(), |at| {
            let value = f64::from(self.inputs[at]) * scales[at / columns] * f64::from(self.weights[at % columns]);
            Expected { value, magnitude: value.abs() }
        })
    }
}

/// What the numbers of a row are multiplied by.
fn scale(row: &[f32]) -> f64 {
    let squares: f64 = row.iter().map(|value| f64::from(*value).powi(2)).sum();
    1.0 / (squares / row.len() as f64 + f64::from(EPSILON)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaled_row_has_a_mean_square_of_one() {
        let row = numbers(9, 4096);
        let scale = scale(&row);
        let mean = row.iter().map(|value| (f64::from(*value) * scale).powi(2)).sum::<f64>() / 4096.0;
        assert!((mean - 1.0).abs() < 1e-5, "{mean}");
    }
}
