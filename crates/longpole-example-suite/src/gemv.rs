//! A matrix times a vector, two ways.

use longpole_bench::cuda::{Arg, Cuda, Function, Grid, Sets, bf16_bytes, f32_of_bf16};
use longpole_bench::key::KeyError;
use longpole_bench::measure::{Body, Error};
use longpole_bench::suite::Suite;

use crate::benchmark;
use crate::reference::{compare, dot, numbers};

/// The output of a layer of a model of some billions of parameters.
const ROWS: u32 = 4096;
/// And its input. A multiple of 8.
const COLUMNS: u32 = 12_288;

const BYTES: u64 = 2 * (ROWS as u64 * COLUMNS as u64 + COLUMNS as u64 + ROWS as u64);

/// A kernel of `kernels/gemv.cu` and its threads for a row.
#[derive(Clone, Copy)]
struct Way {
    variant: &'static str,
    kernel: &'static str,
    threads_per_row: u32,
}

const WAYS: [Way; 2] = [
    Way { variant: "thread_row", kernel: "gemv_thread_row", threads_per_row: 1 },
    Way { variant: "warp_row", kernel: "gemv_warp_row", threads_per_row: 32 },
];

/// Threads of a block.
const THREADS: u32 = 256;

struct Gemv {
    way: Way,
    sets: Sets,
    kernel: Option<Function>,
    /// Matrix and vector as rounded to bfloat16.
    matrix: Vec<f32>,
    vector: Vec<f32>,
}

pub(crate) fn add(suite: Suite<Cuda>) -> Result<Suite<Cuda>, KeyError> {
    WAYS.into_iter().try_fold(suite, |suite, way| {
        let shape = [("rows", u64::from(ROWS)), ("columns", u64::from(COLUMNS))];
        let flops = 2 * u64::from(ROWS) * u64::from(COLUMNS);
        let mut described = benchmark(&format!("Example/ops/gemv/decode/{}", way.variant), &shape, BYTES, Some(flops))?;
        described.dtype = Some("bf16".to_owned());
        let body = move |_: &mut Cuda| Ok(Gemv { way, sets: Sets::default(), kernel: None, matrix: Vec::new(), vector: Vec::new() });
        Ok(suite.benchmark(described, body))
    })
}

impl Body<Cuda> for Gemv {
    fn footprint_bytes(&self) -> u64 {
        BYTES
    }

    fn prepare(&mut self, driver: &mut Cuda, sets: u32) -> Result<(), Error> {
        let matrix = bf16_bytes(numbers(1, ROWS as usize * COLUMNS as usize));
        let vector = bf16_bytes(numbers(2, COLUMNS as usize));
        self.sets = Sets::new(driver, sets, &[&matrix, &vector], 2 * ROWS as usize)?;
        (self.matrix, self.vector) = (f32_of_bf16(&matrix), f32_of_bf16(&vector));
        let module = driver.compile(include_str!("../kernels/gemv.cu"), "gemv.cu")?;
        self.kernel = Some(driver.function(&module, self.way.kernel)?);
        Ok(())
    }

    fn poison(&mut self, driver: &mut Cuda, set: u32) -> Result<(), Error> {
        driver.fill(self.sets.output(set)?, 0xFF)
    }

    fn launch(&mut self, driver: &mut Cuda, set: u32) -> Result<(), Error> {
        let Some(kernel) = &self.kernel else { return Err(Error::Setup("the kernel was not compiled".to_owned())) };
        let (matrix, vector, out) = (self.sets.input(set, 0)?, self.sets.input(set, 1)?, self.sets.output(set)?);
        let addresses = [matrix, vector, out].map(|buffer| Arg::Address(buffer.address()));
        let mut arguments = [addresses[0], addresses[1], addresses[2], Arg::U32(ROWS), Arg::U32(COLUMNS)];
        let blocks = (ROWS * self.way.threads_per_row).div_ceil(THREADS);
        // SAFETY: both kernels take these arguments and stay within `ROWS` and `COLUMNS`, which the buffers were made for.
        unsafe { driver.launch(kernel, Grid::line(blocks, THREADS), &mut arguments) }
    }

    fn check(&mut self, driver: &mut Cuda, set: u32) -> Result<Option<bool>, Error> {
        let found = f32_of_bf16(&driver.content(self.sets.output(set)?)?);
        let row = |at: usize| &self.matrix[at * COLUMNS as usize..(at + 1) * COLUMNS as usize];
        compare(found.into_iter().enumerate(), |at| dot(row(at), &self.vector))
    }
}
