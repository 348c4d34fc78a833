//! A matrix product by cuBLASLt.

use longpole_bench::cuda::{Cuda, Matmul, Number, Sets, bf16_bytes, f32_of_bf16};
use longpole_bench::fake::Random;
use longpole_bench::key::KeyError;
use longpole_bench::measure::{Body, Error};
use longpole_bench::suite::Suite;

use crate::benchmark;
use crate::reference::{compare, dot, numbers};

/// Tokens, outputs and inputs of a linear layer.
const M: u32 = 4096;
const N: u32 = 4096;
const K: u32 = 4096;

const BYTES: u64 = 2 * (M as u64 * K as u64 + N as u64 * K as u64 + M as u64 * N as u64);

/// Elements that are compared: all of them would take the host minutes, and a product that is wrong is wrong in far more than one in a
/// thousand.
const CHECKED: usize = 20_000;

#[derive(Default)]
struct Gemm {
    parts: Option<(Matmul, Sets)>,
    inputs: Vec<f32>,
    weights: Vec<f32>,
}

impl Gemm {
    fn parts(&self) -> Result<&(Matmul, Sets), Error> {
        self.parts.as_ref().ok_or_else(|| Error::Setup("the product was not prepared".to_owned()))
    }
}

pub(crate) fn add(suite: Suite<Cuda>) -> Result<Suite<Cuda>, KeyError> {
    let [m, n, k] = [M, N, K].map(u64::from);
    let mut described = benchmark("Example/ops/gemm/prefill/cublaslt", &[("m", m), ("n", n), ("k", k)], BYTES, Some(2 * m * n * k))?;
    described.dtype = Some("bf16".to_owned());
    Ok(suite.benchmark(described, |_: &mut Cuda| Ok(Gemm::default())))
}

impl Body<Cuda> for Gemm {
    fn footprint_bytes(&self) -> u64 {
        BYTES
    }

    fn prepare(&mut self, driver: &mut Cuda, sets: u32) -> Result<(), Error> {
        let inputs = bf16_bytes(numbers(5, M as usize * K as usize));
        let weights = bf16_bytes(numbers(6, N as usize * K as usize));
        let sets = Sets::new(driver, sets, &[&inputs, &weights], 2 * M as usize * N as usize)?;
        (self.inputs, self.weights) = (f32_of_bf16(&inputs), f32_of_bf16(&weights));
        self.parts = Some((Matmul::new(driver, Number::Bf16, M, N, K)?, sets));
        Ok(())
    }

    fn poison(&mut self, driver: &mut Cuda, set: u32) -> Result<(), Error> {
        driver.fill(self.parts()?.1.output(set)?, 0xFF)
    }

    fn launch(&mut self, driver: &mut Cuda, set: u32) -> Result<(), Error> {
        let (matmul, sets) = self.parts()?;
        matmul.launch(driver, sets.input(set, 0)?, sets.input(set, 1)?, sets.output(set)?)
    }

    fn check(&mut self, driver: &mut Cuda, set: u32) -> Result<Option<bool>, Error> {
        let found = f32_of_bf16(&driver.content(self.parts()?.1.output(set)?)?);
        if let Some(at) = found.iter().position(|value| !value.is_finite()) {
            return Err(Error::Wrong(format!("element {at} is {}", found[at])));
        }
        let mut random = Random::new(7);
        let places = (0..CHECKED).map(|_| (random.bits() % found.len() as u64) as usize);
        let (k, n) = (K as usize, N as usize);
        compare(places.map(|at| (at, found[at])), |at| {
            let (row, column) = (at / n, at % n);
            dot(&self.inputs[row * k..(row + 1) * k], &self.weights[column * k..(column + 1) * k])
        })
    }
}
