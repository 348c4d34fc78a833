//! The rates that a device reaches: a copy within its memory, and a large matrix product.

use crate::fake::Random;
use crate::key::Key;
use crate::measure::{Body, Error, Settings, measure};
use crate::protocol::{Benchmark, Event, Peak, PeakKind};

use super::{Buffer, Cuda, Matmul, Number, Sets, bf16_bytes};

/// Bytes copied at once: many times any cache.
const COPY_BYTES: usize = 2 << 30;

/// Rows and columns of the matrices, the faster of which counts: the larger keeps every multiprocessor busy, the smaller draws less power,
/// which on an H200 is worth more.
const SIDES: [u32; 2] = [4096, 8192];

/// Time for each rate.
const PEAK_NS: u64 = 2_000_000_000;

/// Measures the copy rate and the matrix rates of bf16, f16 and tf32, and hands each on.
///
/// A rate is that of the fastest sample, which is a mean over a millisecond or more: a ceiling is what was reached, and device clocks do not run
/// fast by accident. It lies after the warm-up, where a power limit has lowered the clocks already, so a short burst can be faster still. The matrices hold random numbers: zeros take less power, so clocks stay up and the rate is one that
/// no real product reaches.
///
/// # Errors
///
/// What went wrong first. The copy needs the driver alone, so its rate is known even where cuBLASLt is missing.
pub fn peaks(driver: &mut Cuda, found: &mut dyn FnMut(Peak) -> Result<(), Error>) -> Result<(), Error> {
    let copied = 2 * COPY_BYTES as u64;
    let per_second = rate(driver, &mut Copy { buffers: None }, copied)?;
    found(Peak { kind: PeakKind::CopyBytesPerS, dtype: None, value: per_second })?;
    for number in [Number::Bf16, Number::F16, Number::Tf32] {
        let mut per_second = 0.0f64;
        for side in SIDES {
            let flops = 2 * u64::from(side).pow(3);
            per_second = per_second.max(rate(driver, &mut Product { number, side, parts: None }, flops)?);
        }
        found(Peak { kind: PeakKind::FlopsPerS, dtype: Some(number.name().to_owned()), value: per_second })?;
    }
    Ok(())
}

/// So many units a second.
fn rate(driver: &mut Cuda, body: &mut dyn Body<Cuda>, units: u64) -> Result<f64, Error> {
    let key = Key::parse("device/peaks/rate/none/library").map_err(|error| Error::Setup(error.to_string()))?;
    let settings = Settings { max_ns: PEAK_NS, ..Settings::default() };
    let mut fastest: Option<u64> = None;
    measure(driver, body, &Benchmark::new(key), &settings, &mut |event| {
        if let Event::Sample(sample) = event {
            fastest = Some(fastest.map_or(sample.time_ps, |time| time.min(sample.time_ps)));
        }
        Ok(())
    })?;
    let fastest = fastest.filter(|time| *time > 0);
    fastest.map(|time| units as f64 / (time as f64 * 1e-12)).ok_or_else(|| Error::Setup("there was no sample".to_owned()))
}

struct Copy {
    buffers: Option<[Buffer; 2]>,
}

impl Copy {
    fn buffers(&self) -> Result<&[Buffer; 2], Error> {
        self.buffers.as_ref().ok_or_else(|| Error::Setup("the copy was not prepared".to_owned()))
    }
}

impl Body<Cuda> for Copy {
    fn footprint_bytes(&self) -> u64 {
        2 * COPY_BYTES as u64
    }

    /// One pair whatever is asked for: it is many times the cache by itself.
    fn prepare(&mut self, driver: &mut Cuda, _: u32) -> Result<(), Error> {
        let buffers = [driver.allocate(COPY_BYTES)?, driver.allocate(COPY_BYTES)?];
        driver.fill(&buffers[0], 0x5A)?;
        self.buffers = Some(buffers);
        Ok(())
    }

    fn poison(&mut self, driver: &mut Cuda, _: u32) -> Result<(), Error> {
        driver.fill(&self.buffers()?[1], 0xFF)
    }

    fn launch(&mut self, driver: &mut Cuda, _: u32) -> Result<(), Error> {
        let [from, to] = self.buffers()?;
        driver.copy(from, to)
    }

    fn check(&mut self, _: &mut Cuda, _: u32) -> Result<Option<bool>, Error> {
        Ok(None)
    }
}

struct Product {
    number: Number,
    side: u32,
    parts: Option<(Matmul, Sets)>,
}

impl Product {
    fn parts(&self) -> Result<&(Matmul, Sets), Error> {
        self.parts.as_ref().ok_or_else(|| Error::Setup("the product was not prepared".to_owned()))
    }
}

impl Body<Cuda> for Product {
    fn footprint_bytes(&self) -> u64 {
        3 * u64::from(self.side).pow(2) * self.number.bytes() as u64
    }

    fn prepare(&mut self, driver: &mut Cuda, sets: u32) -> Result<(), Error> {
        let matmul = Matmul::new(driver, self.number, self.side, self.side, self.side)?;
        let mut random = Random::new(11);
        let count = self.side as usize * self.side as usize;
        let mut content = || -> Vec<u8> {
            let mut values = (0..count).map(|_| (random.uniform() - 0.5) as f32);
            match self.number {
                Number::Bf16 => bf16_bytes(values),
                // Between a quarter and one in magnitude: sign and mantissa are random, the exponent is one of two.
                Number::F16 => values.flat_map(|value| half_bits(value).to_ne_bytes()).collect(),
                Number::Tf32 => values.by_ref().flat_map(f32::to_ne_bytes).collect(),
            }
        };
        let (a, b) = (content(), content());
        let output = count * self.number.bytes();
        self.parts = Some((matmul, Sets::new(driver, sets, &[&a, &b], output)?));
        Ok(())
    }

    fn poison(&mut self, driver: &mut Cuda, set: u32) -> Result<(), Error> {
        driver.fill(self.parts()?.1.output(set)?, 0xFF)
    }

    fn launch(&mut self, driver: &mut Cuda, set: u32) -> Result<(), Error> {
        let (matmul, sets) = self.parts()?;
        matmul.launch(driver, sets.input(set, 0)?, sets.input(set, 1)?, sets.output(set)?)
    }

    fn check(&mut self, _: &mut Cuda, _: u32) -> Result<Option<bool>, Error> {
        Ok(None)
    }
}

/// A half-precision number with sign and ten bits of mantissa from `value`, and an exponent of -1 or -2: random operands, no more.
fn half_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 31 << 15) as u16;
    let exponent = if bits & 1 == 0 { 14 } else { 13 };
    sign | exponent << 10 | (bits >> 13 & 0x3FF) as u16
}
