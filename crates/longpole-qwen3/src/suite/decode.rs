//! Operations of one token.

use crate::config::{Config, HEAD};
use crate::gemv;
use crate::layout::{MAX_SPLITS, splits};
use crate::ops::{self, Cache, HeadNorms, Matrix, Norm, Splits, Variant};
use crate::reference::silu;

use super::case::{Case, Expected, Input};
use super::host::{Projections, activations, as_f16, attended, dot, normed, norms, plain, row, weights};

/// Sums of products in 32 bits, plainly of a vector that was rounded on the way: a wrong element is hundreds of times further off.
const SLACK: f64 = 3e-4;

pub(super) fn cases(config: &Config, context: usize) -> Vec<Case> {
    let mut all = Vec::new();
    for variant in Variant::ALL {
        all.push(qkv(config, variant));
        all.push(output("linear_o", config.q_width(), config, variant));
        all.push(gate_up(config, variant));
        all.push(output("linear_down", config.intermediate, config, variant));
        all.push(lm_head(config, variant));
        all.push(attention(config, variant, context));
    }
    all.push(embedding(config));
    all
}

/// A vector as a variant gets it: the tuned kernels pass 32 bits on.
fn vector(seed: u32, count: usize, variant: Variant) -> Input {
    if tuned(variant) { Input::Wide(activations(seed), count) } else { Input::Numbers(activations(seed), count) }
}

fn tuned(variant: Variant) -> bool {
    variant == Variant::Tile
}

/// Bytes of a number that a variant passes on.
fn passed(variant: Variant) -> usize {
    if tuned(variant) { 4 } else { 2 }
}

/// A hidden state.
fn hidden_input(count: usize) -> Input {
    Input::Wide(activations(1), count)
}

fn matrix(rows: usize, columns: usize) -> Input {
    Input::Numbers(weights(7), rows * columns)
}

/// The hidden state as linear layers get it: normalised, and rounded on the plain way.
fn hidden(config: &Config, variant: Variant) -> Vec<f64> {
    let exact = normed(&row(activations(1), 0, config.hidden), norms(2), config.epsilon);
    if tuned(variant) { exact } else { as_f16(exact) }
}

/// Weights, and what is read and written beside them.
fn linear_bytes(rows: usize, columns: usize, other_bytes: usize) -> u64 {
    (2 * rows * columns + other_bytes) as u64
}

fn qkv(config: &Config, variant: Variant) -> Case {
    let (rows, columns, epsilon) = (config.qkv_width(), config.hidden, config.epsilon);
    let host = config.clone();
    Case {
        op: "linear_qkv",
        phase: "decode",
        variant,
        shape: vec![("rows", rows), ("columns", columns)],
        bytes: linear_bytes(rows, columns, 6 * columns + passed(variant) * rows),
        flops: Some((2 * rows * columns) as u64),
        inputs: vec![matrix(rows, columns), hidden_input(columns), Input::Numbers(norms(2), columns), Input::Zeros(2 * columns)],
        outputs: rows,
        wide: tuned(variant),
        slack: SLACK,
        steps: Box::new(move |machine, at, out| {
            let (w, norm) = (Matrix { at: at[0], rows, columns }, Norm { at: at[2], epsilon });
            match variant {
                Variant::Tile => vec![gemv::qkv(machine, w, at[1], norm, out)],
                Variant::Ref => vec![ops::rms_norm(at[1], norm, at[3], 1, columns), ops::gemv_ref(w, at[3], out, false)],
            }
        }),
        expected: Box::new(move |places| {
            let x = hidden(&host, variant);
            places.iter().map(|at| dot(weights(7), *at, &x)).collect()
        }),
    }
}

fn lm_head(config: &Config, variant: Variant) -> Case {
    let (rows, columns, epsilon) = (config.vocabulary, config.hidden, config.epsilon);
    let host = config.clone();
    Case {
        op: "lm_head",
        phase: "decode",
        variant,
        shape: vec![("rows", rows), ("columns", columns)],
        bytes: linear_bytes(rows, columns, 6 * columns + 4 * rows),
        flops: Some((2 * rows * columns) as u64),
        inputs: vec![matrix(rows, columns), hidden_input(columns), Input::Numbers(norms(2), columns), Input::Zeros(2 * columns)],
        outputs: rows,
        wide: true,
        slack: SLACK,
        steps: Box::new(move |machine, at, out| {
            let (w, norm) = (Matrix { at: at[0], rows, columns }, Norm { at: at[2], epsilon });
            match variant {
                Variant::Tile => vec![gemv::lm_head(machine, w, at[1], norm, out)],
                Variant::Ref => vec![ops::rms_norm(at[1], norm, at[3], 1, columns), ops::gemv_ref(w, at[3], out, true)],
            }
        }),
        expected: Box::new(move |places| {
            let x = hidden(&host, variant);
            places.iter().map(|at| dot(weights(7), *at, &x)).collect()
        }),
    }
}

/// A projection added to the hidden state.
fn output(op: &'static str, columns: usize, config: &Config, variant: Variant) -> Case {
    let (rows, epsilon) = (config.hidden, config.epsilon);
    Case {
        op,
        phase: "decode",
        variant,
        shape: vec![("rows", rows), ("columns", columns)],
        bytes: linear_bytes(rows, columns, passed(variant) * columns + 8 * rows),
        flops: Some((2 * rows * columns) as u64),
        inputs: vec![
            matrix(rows, columns),
            vector(3, columns, variant),
            Input::Wide(activations(4), rows),
            Input::Zeros(4 * rows),
            Input::Numbers(norms(2), rows),
            Input::Zeros(2 * rows),
        ],
        outputs: rows,
        wide: true,
        slack: SLACK,
        steps: Box::new(move |machine, at, out| {
            let w = Matrix { at: at[0], rows, columns };
            match variant {
                Variant::Tile => vec![gemv::add(machine, w, at[1], at[2], out)],
                // The plain way adds and normalises at once; what is kept is the sum.
                Variant::Ref => vec![
                    ops::gemv_ref(w, at[1], at[3], true),
                    ops::add_rms_norm(at[2], at[3], Norm { at: at[4], epsilon }, out, at[5], [1, rows]),
                ],
            }
        }),
        expected: Box::new(move |places| {
            let x = row(activations(3), 0, columns);
            let with = |at: &usize| {
                let (product, before) = (dot(weights(7), *at, &x), f64::from(activations(4).at(*at as u64)));
                Expected { value: product.value + before, magnitude: product.magnitude }
            };
            places.iter().map(with).collect()
        }),
    }
}

fn gate_up(config: &Config, variant: Variant) -> Case {
    let (rows, columns, epsilon) = (config.intermediate, config.hidden, config.epsilon);
    let host = config.clone();
    Case {
        op: "linear_gate_up",
        phase: "decode",
        variant,
        shape: vec![("rows", 2 * rows), ("columns", columns)],
        bytes: linear_bytes(2 * rows, columns, 6 * columns + passed(variant) * rows),
        flops: Some((4 * rows * columns) as u64),
        inputs: vec![
            matrix(2 * rows, columns),
            hidden_input(columns),
            Input::Numbers(norms(2), columns),
            Input::Zeros(2 * columns),
            Input::Zeros(4 * rows),
        ],
        outputs: rows,
        wide: tuned(variant),
        slack: SLACK,
        steps: Box::new(move |machine, at, out| {
            let (w, norm) = (Matrix { at: at[0], rows: 2 * rows, columns }, Norm { at: at[2], epsilon });
            match variant {
                Variant::Tile => vec![gemv::gate_up(machine, w, at[1], norm, out)],
                Variant::Ref => vec![
                    ops::rms_norm(at[1], norm, at[3], 1, columns),
                    ops::gemv_ref(w, at[3], at[4], false),
                    ops::swiglu(at[4], out, [1, rows]),
                ],
            }
        }),
        expected: Box::new(move |places| {
            let x = hidden(&host, variant);
            let both = |at: &usize| {
                let (gate, up) = (dot(weights(7), *at, &x), dot(weights(7), rows + at, &x));
                let value = silu(gate.value) * up.value;
                // Each side's error reaches the product by the other side, and the plain way rounds both.
                let magnitude = gate.magnitude * up.value.abs() + up.magnitude * gate.value.abs() + 4.0 * value.abs();
                Expected { value, magnitude }
            };
            places.iter().map(both).collect()
        }),
    }
}

/// The device's side of attention over a cache: what lies where among the inputs.
fn attention(config: &Config, variant: Variant, context: usize) -> Case {
    let (host, capacity) = (config.clone(), context);
    let cache_numbers = config.kv_heads * HEAD * capacity;
    let theta = config.rope_theta;
    let qkv = config.qkv_width();
    let launches = config.clone();
    Case {
        op: "attention",
        phase: "decode",
        variant,
        shape: vec![("heads", config.heads), ("kv_heads", config.kv_heads), ("positions", context)],
        bytes: (4 * cache_numbers + passed(variant) * (qkv + config.q_width())) as u64,
        flops: Some((4 * config.q_width() * context) as u64),
        inputs: vec![
            vector(31, qkv, variant),
            Input::Numbers(norms(32), HEAD),
            Input::Numbers(norms(33), HEAD),
            Input::Cosines(theta, capacity),
            Input::Sines(theta, capacity),
            Input::Words(vec![context as u32 - 1]),
            Input::Numbers(activations(34), cache_numbers),
            Input::Numbers(activations(35), cache_numbers),
            Input::Zeros(config.heads * MAX_SPLITS * (HEAD + 2) * 4),
            Input::Zeros(config.heads * 4),
            Input::Zeros(2 * config.q_width()),
        ],
        outputs: config.q_width(),
        wide: tuned(variant),
        slack: 3e-4,
        steps: Box::new(move |machine, at, out| {
            let config = &launches;
            let cache = Cache { keys: at[6], values: at[7], capacity, cosines: at[3], sines: at[4], position: at[5] };
            let norms = HeadNorms { q: at[1], k: at[2], epsilon: config.epsilon };
            let split = Splits { count: splits(context), scratch: [at[8], at[9]] };
            match variant {
                Variant::Tile => {
                    vec![ops::attention_decode(machine, config, at[0], norms, cache, split, out)]
                }
                Variant::Ref => vec![
                    ops::q_inputs(config, at[0], norms, cache, at[10], 1),
                    ops::kv_inputs(config, at[0], norms, cache, 1),
                    ops::attention(Variant::Ref, config, at[10], cache, out, 1),
                ],
            }
        }),
        expected: Box::new(move |places| {
            let projections = Projections::new(&host, context);
            let last = context - 1;
            let mut known = std::collections::BTreeMap::new();
            let mut value_at = |at: usize| {
                let head = at / HEAD;
                let of_head = known.entry(head).or_insert_with(|| {
                    let kv = head / host.group();
                    let line = |spread, position| row(spread, kv * context + position, HEAD);
                    let mut keys: Vec<Vec<f64>> = (0..last).map(|position| line(activations(34), position)).collect();
                    let mut values: Vec<Vec<f64>> = (0..last).map(|position| line(activations(35), position)).collect();
                    keys.push(as_f16(projections.key(0, kv, last)));
                    values.push(projections.value(0, kv));
                    attended(&projections.query(0, head, last), &keys, &values)
                });
                of_head[at % HEAD]
            };
            places.iter().map(|at| value_at(*at)).collect()
        }),
    }
}

fn embedding(config: &Config) -> Case {
    // Few rows: a run touches one, so a cold cache takes thousands of tables.
    let (rows, columns) = (64, config.hidden);
    let token = rows / 3;
    Case {
        op: "embedding",
        phase: "decode",
        variant: Variant::Tile,
        shape: vec![("tokens", 1), ("columns", columns)],
        bytes: (6 * columns) as u64,
        flops: None,
        inputs: vec![matrix(rows, columns), Input::Words(vec![token as u32])],
        outputs: columns,
        wide: true,
        slack: 0.0,
        steps: Box::new(move |_, at, out| vec![ops::embedding(Matrix { at: at[0], rows, columns }, at[1], 1, out)]),
        expected: Box::new(move |places| places.iter().map(|at| plain(f64::from(weights(7).at((token * columns + at) as u64)))).collect()),
    }
}
