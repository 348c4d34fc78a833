//! Softmax.
//!
//! FLOPs an element: 5 (maximum, difference, exponential, sum, quotient); backward 4. Bytes: input read once, output written once;
//! backward reads the gradient and the output, and writes one gradient. A half-precision input may give an fp32 output (`half_to_float`).

use super::super::dtype::Dtype;
use super::super::shapes::Inputs;
use super::super::work::{Engine, Tally};
use super::{Formula, Outcome, WorkFamily, moved};

const fn entry(names: &'static [&'static str], work: fn(&Inputs) -> Outcome) -> Formula {
    Formula { names, family: WorkFamily::Softmax, work }
}

pub(super) const TABLE: &[Formula] = &[
    entry(&["_softmax", "_log_softmax", "softmax", "log_softmax", "_safe_softmax"], forward),
    entry(&["_softmax_backward_data", "_log_softmax_backward_data"], |inputs| {
        let (gradient, output) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let elements = output.elements()?;
        let tally = Tally::new(output.dtype, Engine::Vector).flops(elements.saturating_mul(4));
        moved(tally, [gradient, output])?.written(elements.saturating_mul(u128::from(output.dtype.bytes()))).finish()
    }),
];

fn forward(inputs: &Inputs) -> Outcome {
    let input = inputs.tensor(0)?;
    let elements = input.elements()?;
    // The third argument is a flag of the internal operator, and a type of the public one.
    let out = match inputs.value(2) {
        Some("True") => Dtype::F32,
        _ => inputs.number(2).and_then(Dtype::from_scalar_type).unwrap_or(input.dtype),
    };
    let tally = Tally::new(input.dtype, Engine::Vector).flops(elements.saturating_mul(5));
    moved(tally, [input])?.written(elements.saturating_mul(u128::from(out.bytes()))).finish()
}
