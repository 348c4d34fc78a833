//! The whole model on the host in 64 bits, for shapes that are small enough: what kernels and other implementations are held against.

use crate::config::{Config, HEAD};
use crate::rope;
use crate::weights::{Place, tensors};

/// Weights of a model, rounded as the device has them.
pub struct Weights {
    all: std::collections::HashMap<Place, Vec<f32>>,
}

impl Weights {
    /// The seeded weights of a configuration.
    pub fn random(config: &Config) -> Self {
        let mut all = std::collections::HashMap::<Place, Vec<f32>>::new();
        for tensor in tensors(config) {
            all.entry(tensor.place).or_default().extend(crate::random::Spread::of_weight(&tensor.name).take(tensor.count()));
        }
        Self { all }
    }

    fn get(&self, place: Place) -> &[f32] {
        self.all.get(&place).or_else(|| self.all.get(&Place::Embedding)).map_or(&[], Vec::as_slice)
    }
}

/// A matrix times a vector.
fn times(matrix: &[f32], vector: &[f64]) -> Vec<f64> {
    matrix.chunks_exact(vector.len().max(1)).map(|row| row.iter().zip(vector).map(|(w, x)| f64::from(*w) * x).sum()).collect()
}

/// `x / sqrt(mean(x * x) + epsilon) * weight`.
pub fn rms_norm(x: &[f64], weight: &[f32], epsilon: f32) -> Vec<f64> {
    let mean = x.iter().map(|value| value * value).sum::<f64>() / x.len() as f64;
    let scale = 1.0 / (mean + f64::from(epsilon)).sqrt();
    x.iter().zip(weight).map(|(value, weight)| value * scale * f64::from(*weight)).collect()
}

/// A head normalised and rotated; the tables are those of its position.
pub fn rotated(head: &[f64], weight: &[f32], epsilon: f32, cosines: &[f32], sines: &[f32]) -> Vec<f64> {
    let normed = rms_norm(head, weight, epsilon);
    let half = HEAD / 2;
    let turn = |at: usize| {
        let (pair, upper) = (at % half, at >= half);
        let (cosine, sine) = (f64::from(cosines[pair]), f64::from(sines[pair]));
        if upper { normed[at] * cosine + normed[pair] * sine } else { normed[at] * cosine - normed[at + half] * sine }
    };
    (0..HEAD).map(turn).collect()
}

/// Attention of one query over keys and values, position after position.
pub fn attend(query: &[f64], keys: &[Vec<f64>], values: &[Vec<f64>]) -> Vec<f64> {
    let scores: Vec<f64> = keys.iter().map(|key| query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>() / (HEAD as f64).sqrt()).collect();
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shares: Vec<f64> = scores.iter().map(|score| (score - highest).exp()).collect();
    let total: f64 = shares.iter().sum();
    (0..HEAD).map(|at| shares.iter().zip(values).map(|(share, value)| share * value[at]).sum::<f64>() / total).collect()
}

/// `x * sigmoid(x)`.
pub fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// The logits after each token.
pub fn forward(config: &Config, weights: &Weights, tokens: &[u32]) -> Vec<Vec<f64>> {
    let (cosines, sines) = rope::tables(config.rope_theta, tokens.len());
    let at = |table: &'_ [f32], position: usize| table[position * HEAD / 2..(position + 1) * HEAD / 2].to_vec();
    let table = weights.get(Place::Embedding);
    let width = config.hidden;
    let mut hidden: Vec<Vec<f64>> = tokens
        .iter()
        .map(|token| table[*token as usize * width..(*token as usize + 1) * width].iter().map(|value| f64::from(*value)).collect())
        .collect();
    for layer in 0..config.layers {
        let norm = |place, x: &[f64]| rms_norm(x, weights.get(place), config.epsilon);
        let projected: Vec<Vec<f64>> =
            hidden.iter().map(|x| times(weights.get(Place::Qkv(layer)), &norm(Place::AttentionNorm(layer), x))).collect();
        let head = |position: usize, at: usize| &projected[position][at * HEAD..(at + 1) * HEAD];
        let turned = |position: usize, number: usize, place| {
            rotated(head(position, number), weights.get(place), config.epsilon, &at(&cosines, position), &at(&sines, position))
        };
        let keys: Vec<Vec<Vec<f64>>> = (0..config.kv_heads)
            .map(|kv| (0..tokens.len()).map(|position| turned(position, config.heads + kv, Place::KNorm(layer))).collect())
            .collect();
        let values: Vec<Vec<Vec<f64>>> = (0..config.kv_heads)
            .map(|kv| (0..tokens.len()).map(|position| head(position, config.heads + config.kv_heads + kv).to_vec()).collect())
            .collect();
        for (position, x) in hidden.iter_mut().enumerate() {
            let attended: Vec<f64> = (0..config.heads)
                .flat_map(|number| {
                    let (query, kv) = (turned(position, number, Place::QNorm(layer)), number / config.group());
                    attend(&query, &keys[kv][..=position], &values[kv][..=position])
                })
                .collect();
            let delta = times(weights.get(Place::Output(layer)), &attended);
            x.iter_mut().zip(delta).for_each(|(x, delta)| *x += delta);
            let both = times(weights.get(Place::GateUp(layer)), &norm(Place::MlpNorm(layer), x));
            let (gates, ups) = both.split_at(config.intermediate);
            let activated: Vec<f64> = gates.iter().zip(ups).map(|(gate, up)| silu(*gate) * up).collect();
            let delta = times(weights.get(Place::Down(layer)), &activated);
            x.iter_mut().zip(delta).for_each(|(x, delta)| *x += delta);
        }
    }
    hidden.iter().map(|x| times(weights.get(Place::Head), &rms_norm(x, weights.get(Place::Norm), config.epsilon))).collect()
}

/// The distance of two vectors as a share of the second's length. NaN anywhere gives NaN.
pub fn distance(found: &[f32], expected: &[f64]) -> f64 {
    let apart: f64 = found.iter().zip(expected).map(|(found, expected)| (f64::from(*found) - expected).powi(2)).sum();
    (apart / expected.iter().map(|value| value * value).sum::<f64>()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::tiny;

    #[test]
    fn later_tokens_change_nothing_before_them() {
        let config = tiny();
        let weights = Weights::random(&config);
        let (a, b) = (forward(&config, &weights, &[1, 2, 3, 4]), forward(&config, &weights, &[1, 2, 3, 9]));
        assert_eq!(a[..3], b[..3]);
        assert_ne!(a[3], b[3]);
        assert_eq!((a.len(), a[0].len()), (4, config.vocabulary));
        assert!(a.iter().flatten().all(|logit| logit.is_finite()));
    }

    #[test]
    fn order_counts() {
        let config = tiny();
        let weights = Weights::random(&config);
        let (a, b) = (forward(&config, &weights, &[1, 2, 3]), forward(&config, &weights, &[2, 1, 3]));
        assert!(a[2].iter().zip(&b[2]).any(|(a, b)| (a - b).abs() > 1e-6));
    }

    #[test]
    fn a_rotation_keeps_scores_by_distance() {
        let (cosines, sines) = rope::tables(1e4, 20);
        let table = |table: &[f32], position: usize| table[position * 64..(position + 1) * 64].to_vec();
        let weight = vec![1.0; HEAD];
        let numbers =
            |seed| crate::random::Spread { seed, middle: 0.0, half: 1.0 }.take(HEAD).iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
        let (query, key) = (numbers(1), numbers(2));
        let score = |a: usize, b: usize| {
            let turned = |x: &[f64], position| rotated(x, &weight, 0.0, &table(&cosines, position), &table(&sines, position));
            turned(&query, a).iter().zip(turned(&key, b)).map(|(q, k)| q * k).sum::<f64>()
        };
        assert!((score(3, 1) - score(17, 15)).abs() < 1e-5);
        assert!((score(3, 1) - score(3, 2)).abs() > 1e-3);
    }

    #[test]
    fn attention_is_an_average() {
        let (values, query) = (vec![vec![2.0; HEAD], vec![4.0; HEAD]], vec![0.0; HEAD]);
        assert!(attend(&query, &values, &values).iter().all(|value| (value - 3.0).abs() < 1e-12));
        assert!((silu(1.0) - 0.731_058_578_630_004_9).abs() < 1e-12);
        assert!(distance(&[f32::NAN], &[1.0]).is_nan());
    }
}
