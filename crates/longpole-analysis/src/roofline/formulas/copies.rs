//! Copies, casts, fills, concatenations.
//!
//! No FLOPs. A copy or cast reads every element once and writes it once, each in its own type; an expanded source is stored, and read,
//! once. A fill writes only. A concatenation or stack reads all its parts and writes as many bytes; splitting into copies reads and
//! writes the whole.

use super::super::dtype::Dtype;
use super::super::shapes::Inputs;
use super::super::work::{Engine, Tally, UnknownWork};
use super::{Formula, Outcome, WorkFamily, moved};

const fn entry(names: &'static [&'static str], work: fn(&Inputs) -> Outcome) -> Formula {
    Formula { names, family: WorkFamily::Copy, work }
}

pub(super) const TABLE: &[Formula] = &[
    entry(&["copy"], |inputs| {
        let (to, from) = (inputs.tensor(0)?, inputs.tensor(1)?);
        moved(Tally::new(from.dtype, Engine::Vector), [from])?.written(to.stored_bytes()?).finish()
    }),
    entry(&["_to_copy"], |inputs| duplicate(inputs, inputs.number(1).and_then(Dtype::from_scalar_type))),
    entry(
        &[
            "clone",
            "contiguous",
            "reshape",
            "_reshape_copy",
            "_unsafe_view",
            "flip",
            "roll",
            "triu",
            "tril",
            "unbind_copy",
            "split_copy",
            "split_with_sizes_copy",
            "permute_copy",
            "transpose_copy",
            "view_copy",
        ],
        |inputs| duplicate(inputs, None),
    ),
    entry(&["repeat", "repeat_interleave", "tile"], |_| Err(UnknownWork::MissingArgument)),
    entry(&["fill", "zero", "normal", "uniform", "random", "bernoulli", "exponential", "log_normal", "cauchy"], |inputs| {
        let tensor = inputs.tensor(0)?;
        Tally::new(tensor.dtype, Engine::Vector).written(tensor.stored_bytes()?).finish()
    }),
    entry(&["cat", "concat", "_cat", "stack", "_stack"], |inputs| {
        let parts = inputs.list(0)?;
        let mut tally = moved(Tally::new(parts.first().ok_or(UnknownWork::UnreadableShapes)?.dtype, Engine::Vector), &parts)?;
        for part in &parts {
            tally = tally.written(part.elements()?.saturating_mul(u128::from(part.dtype.bytes())));
        }
        tally.finish()
    }),
];

fn duplicate(inputs: &Inputs, into: Option<Dtype>) -> Outcome {
    let tensor = inputs.tensor(0)?;
    let out = into.unwrap_or(tensor.dtype);
    let tally = moved(Tally::new(tensor.dtype, Engine::Vector), [tensor])?;
    tally.written(tensor.elements()?.saturating_mul(u128::from(out.bytes()))).finish()
}
