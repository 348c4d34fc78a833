//! Embeddings, gathers and scatters.
//!
//! No FLOPs, but for those that add (one an element). The index is read once and every element looked up is written once. How many
//! different elements were looked up depends on the data: at least one row (none for an empty index), at most one for each index or all
//! there are; so the bytes have a least and a most. With one index, as in decoding one sequence, the two are equal.

use super::super::shapes::{Inputs, Tensor};
use super::super::work::{Engine, Tally, UnknownWork, product};
use super::{Formula, Outcome, WorkFamily, moved};

const fn entry(names: &'static [&'static str], work: fn(&Inputs) -> Outcome) -> Formula {
    Formula { names, family: WorkFamily::Indexing, work }
}

pub(super) const TABLE: &[Formula] = &[
    entry(&["embedding"], |inputs| {
        let (weight, indices) = (inputs.tensor(0)?, inputs.tensor(1)?);
        rows(weight, 0, indices)
    }),
    entry(&["index_select"], |inputs| {
        let dim = inputs.number(1).ok_or(UnknownWork::MissingArgument)?;
        rows(inputs.tensor(0)?, dim, inputs.tensor(2)?)
    }),
    entry(&["gather"], |inputs| gather(inputs.tensor(0)?, inputs.tensor(2)?)),
    entry(&["take"], |inputs| gather(inputs.tensor(0)?, inputs.tensor(1)?)),
    entry(&["index", "index_put", "_index_put_impl", "masked_select", "nonzero", "masked_scatter"], |inputs| {
        // The sizes of a list of optional tensors are not recorded.
        let _ = inputs.tensor(0)?;
        Err(UnknownWork::MissingArgument)
    }),
    entry(&["scatter", "scatter_add", "index_add", "index_copy", "scatter_reduce"], scatter),
];

fn bytes(tensor: &Tensor, elements: u128) -> u128 {
    elements.saturating_mul(u128::from(tensor.dtype.bytes()))
}

/// Whole slices of a tensor across one dimension, one for each index.
fn rows(table: &Tensor, dim: i64, indices: &Tensor) -> Outcome {
    let all = table.dim(dim)?;
    let row = table.elements()?.checked_div(u128::from(all)).unwrap_or(0);
    let looked_up = indices.elements()?;
    let out = looked_up.checked_mul(row).ok_or(UnknownWork::TooLarge)?;
    let tally = moved(Tally::new(table.dtype, Engine::Vector), [indices])?;
    let (least, most) = (looked_up.min(1), looked_up.min(u128::from(all)));
    tally.written(bytes(table, out)).bytes_between(bytes(table, least * row), bytes(table, most.saturating_mul(row))).finish()
}

/// Single elements, one for each element of the index.
fn gather(table: &Tensor, indices: &Tensor) -> Outcome {
    let looked_up = indices.elements()?;
    let tally = moved(Tally::new(table.dtype, Engine::Vector), [indices])?.written(bytes(table, looked_up));
    tally.bytes_between(bytes(table, looked_up.min(1)), bytes(table, looked_up.min(table.elements()?))).finish()
}

/// `scatter(self, dim, index, src)`: source and index read once; the elements written are at least one, at most as many as are in the
/// source. Adding reads them first, which is left out of the least. Out of place, the rest of `self` is copied as well, which is left out
/// too.
fn scatter(inputs: &Inputs) -> Outcome {
    let (target, index) = (inputs.tensor(0)?, inputs.tensor(2)?);
    let source = inputs.optional_tensor(3)?;
    let count = source.map_or_else(|| index.elements(), Tensor::elements)?;
    let tally = moved(moved(Tally::new(target.dtype, Engine::Vector), [index])?, source)?;
    tally
        .written_between(bytes(target, count.min(1)), bytes(target, count.saturating_mul(2)).max(bytes(target, product(&target.dims)?)))
        .finish()
}
