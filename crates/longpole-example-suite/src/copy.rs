//! A copy of one buffer into another.

use longpole_bench::cuda::{Arg, Cuda, Function, Grid, Sets};
use longpole_bench::key::KeyError;
use longpole_bench::measure::{Body, Error};
use longpole_bench::suite::Suite;

use crate::benchmark;

/// Many times any cache.
const BYTES: usize = 1 << 30;

/// Threads of a block, as the kernel is bounded to.
const THREADS: u32 = 256;

/// Bytes that one block copies: four loads of 16 bytes a thread.
const BLOCK_BYTES: u32 = 4 * 16 * THREADS;

/// How it is done.
#[derive(Clone, Copy)]
enum Way {
    /// A kernel, 16 bytes a load.
    Vec16,
    /// The driver.
    Memcpy,
}

struct Copy {
    way: Way,
    sets: Sets,
    kernel: Option<Function>,
    content: Vec<u8>,
}

pub(crate) fn add(suite: Suite<Cuda>) -> Result<Suite<Cuda>, KeyError> {
    let ways = [(Way::Vec16, "vec16"), (Way::Memcpy, "memcpy")];
    ways.into_iter().try_fold(suite, |suite, (way, variant)| {
        let described = benchmark(&format!("Example/ops/copy/stream/{variant}"), &[("bytes", BYTES as u64)], 2 * BYTES as u64, None)?;
        let body = move |_: &mut Cuda| Ok(Copy { way, sets: Sets::default(), kernel: None, content: Vec::new() });
        Ok(suite.benchmark(described, body))
    })
}

impl Body<Cuda> for Copy {
    fn footprint_bytes(&self) -> u64 {
        2 * BYTES as u64
    }

    fn prepare(&mut self, driver: &mut Cuda, sets: u32) -> Result<(), Error> {
        // A period of 251 shows bytes that land in a wrong place of any power of two.
        self.content = (0..BYTES).map(|at| (at % 251) as u8).collect();
        self.sets = Sets::new(driver, sets, &[&self.content], BYTES)?;
        if let Way::Vec16 = self.way {
            let module = driver.compile(include_str!("../kernels/copy.cu"), "copy.cu")?;
            self.kernel = Some(driver.function(&module, "copy_vec16")?);
        }
        Ok(())
    }

    fn poison(&mut self, driver: &mut Cuda, set: u32) -> Result<(), Error> {
        driver.fill(self.sets.output(set)?, 0xFF)
    }

    fn launch(&mut self, driver: &mut Cuda, set: u32) -> Result<(), Error> {
        let (from, to) = (self.sets.input(set, 0)?, self.sets.output(set)?);
        let Some(kernel) = &self.kernel else { return driver.copy(from, to) };
        let mut arguments = [Arg::Address(from.address()), Arg::Address(to.address())];
        let blocks = BYTES as u32 / BLOCK_BYTES;
        // SAFETY: the arguments are those of `copy_vec16`; its blocks touch `BYTES` of each buffer, which is their length.
        unsafe { driver.launch(kernel, Grid::line(blocks, THREADS), &mut arguments) }
    }

    fn check(&mut self, driver: &mut Cuda, set: u32) -> Result<Option<bool>, Error> {
        let found = driver.content(self.sets.output(set)?)?;
        match found.iter().zip(&self.content).position(|(found, expected)| found != expected) {
            Some(at) => Err(Error::Wrong(format!("byte {at} is {}, {} was expected", found[at], self.content[at]))),
            None => Ok(Some(true)),
        }
    }
}
