//! What operations should give, from the seeds of their inputs, in 64 bits.

use crate::config::{Config, HEAD};
use crate::random::{self, Spread};
use crate::reference;
use crate::rope;

use super::case::Expected;

/// Inputs of operations: hidden states and projections reach to 1, weights are as small as trained ones are at the beginning, norms lie around 1.
pub(super) fn activations(seed: u32) -> Spread {
    Spread { seed, middle: 0.0, half: 1.0 }
}

/// Weights of a linear layer.
pub(super) fn weights(seed: u32) -> Spread {
    Spread::deviation(seed, 0.02)
}

/// Weights of a norm.
pub(super) fn norms(seed: u32) -> Spread {
    Spread { seed, middle: 1.0, half: 0.25 }
}

/// Numbers of a row.
pub(super) fn row(spread: Spread, at: usize, columns: usize) -> Vec<f64> {
    (0..columns as u64).map(|column| f64::from(spread.at(at as u64 * columns as u64 + column))).collect()
}

/// As the device holds them between two operations.
pub(super) fn as_f16(values: Vec<f64>) -> Vec<f64> {
    values.into_iter().map(|value| f64::from(random::as_f16(value as f32))).collect()
}

/// Row `at` of a matrix times a vector.
pub(super) fn dot(matrix: Spread, at: usize, vector: &[f64]) -> Expected {
    let products = row(matrix, at, vector.len()).into_iter().zip(vector).map(|(w, x)| w * x);
    let (value, magnitude) = products.fold((0.0, 0.0), |(value, magnitude), product| (value + product, magnitude + f64::abs(product)));
    Expected { value, magnitude }
}

/// A value that was not added up from others.
pub(super) fn plain(value: f64) -> Expected {
    Expected { value, magnitude: value.abs() }
}

/// A row normalised.
pub(super) fn normed(x: &[f64], norm: Spread, epsilon: f32) -> Vec<f64> {
    reference::rms_norm(x, &norm.take(x.len()), epsilon)
}

/// A token's heads: queries, keys and values lie in a row of projections.
pub(super) struct Projections {
    pub(super) spread: Spread,
    pub(super) config: Config,
    pub(super) tables: (Vec<f32>, Vec<f32>),
    pub(super) q_norm: Spread,
    pub(super) k_norm: Spread,
}

impl Projections {
    pub(super) fn new(config: &Config, positions: usize) -> Self {
        let tables = rope::tables(config.rope_theta, positions);
        Self { spread: activations(31), config: config.clone(), tables, q_norm: norms(32), k_norm: norms(33) }
    }

    fn head(&self, token: usize, number: usize) -> Vec<f64> {
        let heads = self.config.heads + 2 * self.config.kv_heads;
        row(self.spread, token * heads + number, HEAD)
    }

    fn turned(&self, token: usize, number: usize, norm: Spread, position: usize) -> Vec<f64> {
        let at = position * HEAD / 2..(position + 1) * HEAD / 2;
        let (cosines, sines) = (&self.tables.0[at.clone()], &self.tables.1[at]);
        reference::rotated(&self.head(token, number), &norm.take(HEAD), self.config.epsilon, cosines, sines)
    }

    pub(super) fn query(&self, token: usize, head: usize, position: usize) -> Vec<f64> {
        self.turned(token, head, self.q_norm, position)
    }

    pub(super) fn key(&self, token: usize, head: usize, position: usize) -> Vec<f64> {
        self.turned(token, self.config.heads + head, self.k_norm, position)
    }

    pub(super) fn value(&self, token: usize, head: usize) -> Vec<f64> {
        self.head(token, self.config.heads + self.config.kv_heads + head)
    }
}

/// Attention of one query, each number with the magnitude it was added up from.
pub(super) fn attended(query: &[f64], keys: &[Vec<f64>], values: &[Vec<f64>]) -> Vec<Expected> {
    let magnitudes: Vec<Vec<f64>> = values.iter().map(|value| value.iter().map(|value| value.abs()).collect()).collect();
    let sums = reference::attend(query, keys, values).into_iter().zip(reference::attend(query, keys, &magnitudes));
    sums.map(|(value, magnitude)| Expected { value, magnitude }).collect()
}
