//! The suite: every operation of both models by itself, and whole steps, each in the plain and the tuned way.
//!
//! `tile` is what the tuned engine runs: its own kernels, and cuBLASLt where many tokens meet a matrix. An operation of `decode` is the whole of its
//! row in both variants: the plain way of a linear layer is its norm, its product and what follows, one launch each. Operations of which there is
//! one kernel have the variant `tile` alone.

mod case;
mod decode;
mod host;
mod model;
mod prefill;

use longpole_bench::cuda::{Cuda, peaks};
use longpole_bench::key::{Key, KeyError};
use longpole_bench::protocol::Benchmark;
use longpole_bench::suite::Suite;

use crate::config::Config;
use crate::ops::Variant;

pub use case::{Case, CaseBody, Expected, Input};
pub use model::{CONTEXT, ModelBody, Whole};

/// The models of the suite.
const MODELS: [&str; 2] = ["Qwen3-0.6B", "Qwen3-4B"];

/// Every operation of a model, after `context` positions or of `tokens` tokens.
pub fn cases(config: &Config, context: usize, tokens: usize) -> Vec<Case> {
    decode::cases(config, context).into_iter().chain(prefill::cases(config, tokens)).collect()
}

fn described(model: &str, case: &Case) -> Result<Benchmark, KeyError> {
    let mut benchmark = Benchmark::new(Key::parse(&format!("{model}/ops/{}/{}/{}", case.op, case.phase, case.variant.name()))?);
    benchmark.shape = Some(case.shape.iter().map(|(name, size)| ((*name).to_owned(), *size as u64)).collect());
    benchmark.bytes = Some(case.bytes);
    benchmark.flops = case.flops;
    benchmark.dtype = case.flops.map(|_| "f16".to_owned());
    Ok(benchmark)
}

/// The suite, which needs a device only when something is run.
pub fn suite() -> Result<Suite<Cuda>, KeyError> {
    let mut suite = Suite::new("longpole-qwen3", env!("CARGO_PKG_VERSION")).peaks(peaks);
    for model in MODELS {
        let Some(config) = Config::named(model) else { continue };
        for at in 0..cases(&config, CONTEXT, CONTEXT).len() {
            let mut all = cases(&config, CONTEXT, CONTEXT);
            let benchmark = described(model, &all.swap_remove(at))?;
            let config = config.clone();
            suite = suite.benchmark(benchmark, move |_: &mut Cuda| Ok(CaseBody::new(cases(&config, CONTEXT, CONTEXT).swap_remove(at))));
        }
        for whole in [Whole::Decode, Whole::Prefill(1024), Whole::Prefill(64)] {
            for variant in Variant::ALL {
                let mut benchmark = Benchmark::new(Key::parse(&format!("{model}/model/{}/{}", whole.name(), variant.name()))?);
                benchmark.bytes = Some(whole.bytes(&config));
                benchmark.flops = Some(whole.flops(&config));
                benchmark.dtype = Some("f16".to_owned());
                let config = config.clone();
                suite = suite.benchmark(benchmark, move |_: &mut Cuda| Ok(ModelBody::new(config.clone(), variant, whole)));
            }
        }
    }
    Ok(suite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::tiny;

    #[test]
    fn the_list_needs_no_device() {
        let list = suite().unwrap().list();
        let keys: Vec<&str> = list.benchmarks.iter().map(|benchmark| benchmark.key.as_str()).collect();
        let mut unique = keys.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!((keys.len(), unique.len()), (2 * (13 + 15 + 6), keys.len()));
        for key in ["Qwen3-4B/ops/linear_down/decode/tile", "Qwen3-0.6B/model/decode_step_ctx1024/ref", "Qwen3-4B/model/prefill64/tile"] {
            assert!(keys.contains(&key), "{key}");
        }
        let down = list.benchmarks.iter().find(|benchmark| benchmark.key.as_str() == "Qwen3-4B/ops/linear_down/decode/tile").unwrap();
        // Weights; input, and the hidden state read and written, in 32 bits.
        assert_eq!(down.bytes, Some(2 * 2560 * 9728 + 4 * (9728 + 2 * 2560)));
        let step = list.benchmarks.iter().find(|benchmark| benchmark.key.as_str() == "Qwen3-4B/model/decode_step_ctx1024/tile").unwrap();
        // 4.02 billion weights of two bytes, and 36 layers of 1024 positions of 4 KiB.
        assert_eq!(step.bytes, Some(2 * 4_022_272_000 + 36 * 1024 * 4096));
    }

    #[test]
    fn cases_say_what_they_hold() {
        for case in cases(&tiny(), 40, 24) {
            let addresses: Vec<u64> = (1..=case.inputs.len() as u64).map(|at| at << 32).collect();
            let steps = (case.steps)(crate::gemv::tests::H200, &addresses, 1 << 60);
            assert!(!steps.is_empty(), "{}", case.op);
            let expected = (case.expected)(&[0, case.outputs - 1]);
            assert!(expected.iter().all(|expected| expected.value.is_finite() && expected.magnitude >= 0.0), "{}", case.op);
            assert!(expected.iter().any(|expected| expected.value != 0.0), "{} {}", case.op, case.phase);
        }
    }
}
