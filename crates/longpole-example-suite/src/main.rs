//! A suite of benchmarks to start from. `longpole-example-suite list` prints its keys; `longpole bench` and `longpole profile` drive it.
//!
//! | key | what it shows |
//! |---|---|
//! | `Example/ops/copy/stream/vec16` | a copy of 1 GiB by a kernel: what the memory gives, read and written |
//! | `Example/ops/copy/stream/memcpy` | the same by the driver's own copy |
//! | `Example/ops/gemv/decode/thread_row` | a matrix times a vector as one writes it first: a thread a row |
//! | `Example/ops/gemv/decode/warp_row` | the same as the memory likes it: a warp a row, 16 bytes a load |
//! | `Example/ops/rms_norm/decode/block_row` | a kernel of about 2 us, which only a CUDA graph shows as it is |
//! | `Example/ops/rms_norm/prefill/block_row` | the same kernel over many rows |
//! | `Example/ops/gemm/prefill/cublaslt` | a matrix product by cuBLASLt |
//!
//! Kernels are CUDA C++ in `kernels/`, compiled by NVRTC when their benchmark is due. Every result is compared with one computed on the host.

mod copy;
mod gemm;
mod gemv;
mod reference;
mod rms_norm;

use std::process::ExitCode;

use longpole_bench::cuda::{Cuda, peaks};
use longpole_bench::key::{Key, KeyError};
use longpole_bench::protocol::Benchmark;
use longpole_bench::suite::Suite;

/// What a benchmark is called and what one run of it moves and computes.
fn benchmark(key: &str, shape: &[(&str, u64)], bytes: u64, flops: Option<u64>) -> Result<Benchmark, KeyError> {
    let mut benchmark = Benchmark::new(Key::parse(key)?);
    benchmark.shape = Some(shape.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect());
    benchmark.bytes = Some(bytes);
    benchmark.flops = flops;
    Ok(benchmark)
}

fn suite() -> Result<Suite<Cuda>, KeyError> {
    let suite = Suite::new("longpole-example-suite", env!("CARGO_PKG_VERSION"));
    let suite = rms_norm::add(gemv::add(copy::add(suite)?)?)?;
    Ok(gemm::add(suite)?.peaks(peaks))
}

fn main() -> ExitCode {
    match suite() {
        Ok(suite) => suite.main(|| Cuda::open(0)),
        // A key is written wrongly in this program.
        Err(_) => ExitCode::from(70),
    }
}

#[cfg(test)]
mod tests {
    use longpole_bench::measure::Error;

    use super::*;

    fn asked(line: &str) -> (u8, String, String) {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let (mut out, mut complaints) = (Vec::new(), Vec::new());
        let code = suite().unwrap().run(&arguments, || Err(Error::Missing("no device here".to_owned())), &mut out, &mut complaints);
        (code, String::from_utf8(out).unwrap(), String::from_utf8(complaints).unwrap())
    }

    #[test]
    fn the_list_needs_no_device() {
        let (code, out, _) = asked("list --json");
        let list = longpole_bench::protocol::read_list(out.as_bytes()).unwrap();
        assert_eq!((code, list.benchmarks.len()), (0, 7));
        let gemv = list.benchmarks.iter().find(|benchmark| benchmark.key.variant() == "warp_row").unwrap();
        assert_eq!(gemv.key.as_str(), "Example/ops/gemv/decode/warp_row");
        // Weights, input and output of 2 bytes each; a multiplication and an addition for each weight.
        let (rows, columns) = (gemv.shape.as_ref().unwrap()["rows"], gemv.shape.as_ref().unwrap()["columns"]);
        assert_eq!(gemv.bytes, Some(2 * (rows * columns + columns + rows)));
        assert_eq!(gemv.flops, Some(2 * rows * columns));
    }

    #[test]
    fn a_missing_device_is_a_sentence() {
        let (code, out, complaints) = asked("run Example/ops/gemv");
        assert_eq!((code, out.as_str(), complaints.as_str()), (1, "", "longpole-example-suite: no device here\n"));
    }
}
