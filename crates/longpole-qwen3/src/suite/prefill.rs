//! Operations of many tokens.

use crate::config::{Config, HEAD};
use crate::ops::{self, Cache, HeadNorms, Matrix, Norm, Variant};
use crate::random;
use crate::reference::silu;

use super::case::{Case, Expected, Input};
use super::host::{Projections, activations, attended, dot, normed, norms, plain, row, weights};

/// As in decode; longer sums go through the same units.
const SLACK: f64 = 3e-4;

pub(super) fn cases(config: &Config, tokens: usize) -> Vec<Case> {
    let mut all = Vec::new();
    for variant in Variant::ALL {
        // What is added to the hidden state has 32 bits, as that has.
        for (op, rows, columns, wide) in [
            ("linear_qkv", config.qkv_width(), config.hidden, false),
            ("linear_o", config.hidden, config.q_width(), true),
            ("linear_gate_up", 2 * config.intermediate, config.hidden, false),
            ("linear_down", config.hidden, config.intermediate, true),
        ] {
            all.push(linear(op, [tokens, rows, columns], variant, wide));
        }
        all.push(attention(config, variant, tokens));
    }
    all.push(embedding(config, tokens));
    all.push(rms_norm(config, tokens));
    all.push(add_rms_norm(config, tokens));
    all.push(q_inputs(config, tokens));
    all.push(swiglu(config, tokens));
    all
}

fn numbers(seed: u32, count: usize) -> Input {
    Input::Numbers(activations(seed), count)
}

fn linear(op: &'static str, [tokens, rows, columns]: [usize; 3], variant: Variant, wide: bool) -> Case {
    Case {
        op,
        phase: "prefill",
        variant,
        shape: vec![("tokens", tokens), ("rows", rows), ("columns", columns)],
        bytes: (2 * (rows * columns + tokens * columns) + if wide { 4 } else { 2 } * tokens * rows) as u64,
        flops: Some((2 * tokens * rows * columns) as u64),
        inputs: vec![Input::Numbers(weights(7), rows * columns), numbers(1, tokens * columns)],
        outputs: tokens * rows,
        wide,
        slack: SLACK,
        steps: Box::new(move |_, at, out| vec![ops::gemm(variant, Matrix { at: at[0], rows, columns }, at[1], out, tokens, wide)]),
        expected: Box::new(move |places| {
            places.iter().map(|at| dot(weights(7), at % rows, &row(activations(1), at / rows, columns))).collect()
        }),
    }
}

fn attention(config: &Config, variant: Variant, tokens: usize) -> Case {
    let (host, launches, capacity) = (config.clone(), config.clone(), tokens);
    let cache_numbers = config.kv_heads * HEAD * capacity;
    Case {
        op: "attention",
        phase: "prefill",
        variant,
        shape: vec![("heads", config.heads), ("kv_heads", config.kv_heads), ("tokens", tokens)],
        bytes: (2 * (2 * cache_numbers + 2 * tokens * config.q_width())) as u64,
        // A token sees itself and all before it.
        flops: Some((4 * config.q_width() * tokens * (tokens + 1) / 2) as u64),
        inputs: vec![numbers(41, tokens * config.q_width()), numbers(42, cache_numbers), numbers(43, cache_numbers), Input::Words(vec![0])],
        outputs: tokens * config.q_width(),
        wide: false,
        // The tuned kernel rounds shares to the eleven bits of half precision before it weighs values with them.
        slack: 1.0 / 4096.0 + 3e-4,
        steps: Box::new(move |_, at, out| {
            let cache = Cache { keys: at[1], values: at[2], capacity, cosines: 0, sines: 0, position: at[3] };
            vec![ops::attention(variant, &launches, at[0], cache, out, tokens)]
        }),
        expected: Box::new(move |places| {
            let one = |at: &usize| {
                let (line, number) = (at / HEAD, at % HEAD);
                let (token, head) = (line / host.heads, line % host.heads);
                let seen = |spread| {
                    let first = head / host.group() * capacity;
                    (0..=token).map(|position| row(spread, first + position, HEAD)).collect::<Vec<_>>()
                };
                attended(&row(activations(41), line, HEAD), &seen(activations(42)), &seen(activations(43)))[number]
            };
            places.iter().map(one).collect()
        }),
    }
}

fn embedding(config: &Config, tokens: usize) -> Case {
    let (rows, columns) = (config.vocabulary, config.hidden);
    let words = random::tokens(5, tokens, rows);
    let asked = words.clone();
    Case {
        op: "embedding",
        phase: "prefill",
        variant: Variant::Tile,
        shape: vec![("tokens", tokens), ("columns", columns)],
        bytes: (6 * tokens * columns) as u64,
        flops: None,
        inputs: vec![Input::Numbers(weights(7), rows * columns), Input::Words(words)],
        outputs: tokens * columns,
        wide: true,
        slack: 0.0,
        steps: Box::new(move |_, at, out| vec![ops::embedding(Matrix { at: at[0], rows, columns }, at[1], tokens, out)]),
        expected: Box::new(move |places| {
            let number = |at: &usize| u64::from(asked[at / columns]) * columns as u64 + (at % columns) as u64;
            places.iter().map(|at| plain(f64::from(weights(7).at(number(at))))).collect()
        }),
    }
}

fn rms_norm(config: &Config, tokens: usize) -> Case {
    let (columns, epsilon) = (config.hidden, config.epsilon);
    Case {
        op: "rms_norm",
        phase: "prefill",
        variant: Variant::Tile,
        shape: vec![("tokens", tokens), ("columns", columns)],
        bytes: (2 * columns * (3 * tokens + 1)) as u64,
        flops: None,
        inputs: vec![Input::Wide(activations(1), tokens * columns), Input::Numbers(norms(2), columns)],
        outputs: tokens * columns,
        wide: false,
        slack: SLACK,
        steps: Box::new(move |_, at, out| vec![ops::rms_norm(at[0], Norm { at: at[1], epsilon }, out, tokens, columns)]),
        expected: Box::new(move |places| {
            let one = |at: &usize| normed(&row(activations(1), at / columns, columns), norms(2), epsilon)[at % columns];
            places.iter().map(|at| plain(one(at))).collect()
        }),
    }
}

fn add_rms_norm(config: &Config, tokens: usize) -> Case {
    let (columns, epsilon) = (config.hidden, config.epsilon);
    let count = tokens * columns;
    Case {
        op: "add_rms_norm",
        phase: "prefill",
        variant: Variant::Tile,
        shape: vec![("tokens", tokens), ("columns", columns)],
        bytes: (2 * columns * (7 * tokens + 1)) as u64,
        flops: None,
        inputs: vec![
            Input::Wide(activations(1), count),
            Input::Wide(activations(6), count),
            Input::Numbers(norms(2), columns),
            Input::Zeros(4 * count),
        ],
        outputs: count,
        wide: false,
        slack: SLACK,
        steps: Box::new(move |_, at, out| {
            vec![ops::add_rms_norm(at[0], at[1], Norm { at: at[2], epsilon }, at[3], out, [tokens, columns])]
        }),
        expected: Box::new(move |places| {
            let one = |at: &usize| {
                let parts = [1, 6].map(|seed| row(activations(seed), at / columns, columns));
                let sum: Vec<f64> = parts[0].iter().zip(&parts[1]).map(|(a, b)| a + b).collect();
                normed(&sum, norms(2), epsilon)[at % columns]
            };
            places.iter().map(|at| plain(one(at))).collect()
        }),
    }
}

fn q_inputs(config: &Config, tokens: usize) -> Case {
    let (host, launches) = (config.clone(), config.clone());
    let theta = config.rope_theta;
    Case {
        op: "q_inputs",
        phase: "prefill",
        variant: Variant::Tile,
        shape: vec![("heads", config.heads), ("tokens", tokens)],
        bytes: (4 * tokens * config.q_width()) as u64,
        flops: None,
        inputs: vec![
            numbers(31, tokens * config.qkv_width()),
            Input::Numbers(norms(32), HEAD),
            Input::Cosines(theta, tokens),
            Input::Sines(theta, tokens),
            Input::Words(vec![0]),
        ],
        outputs: tokens * config.q_width(),
        wide: false,
        // A difference of two products can be much smaller than they are.
        slack: 0.0,
        steps: Box::new(move |_, at, out| {
            let cache = Cache { keys: 0, values: 0, capacity: tokens, cosines: at[2], sines: at[3], position: at[4] };
            vec![ops::q_inputs(&launches, at[0], HeadNorms { q: at[1], k: at[1], epsilon: launches.epsilon }, cache, out, tokens)]
        }),
        expected: Box::new(move |places| {
            let projections = Projections::new(&host, tokens);
            let one = |at: &usize| {
                let (token, head) = (at / HEAD / host.heads, at / HEAD % host.heads);
                projections.query(token, head, token)[at % HEAD]
            };
            places.iter().map(|at| plain(one(at))).collect()
        }),
    }
}

fn swiglu(config: &Config, tokens: usize) -> Case {
    let columns = config.intermediate;
    Case {
        op: "swiglu",
        phase: "prefill",
        variant: Variant::Tile,
        shape: vec![("tokens", tokens), ("columns", columns)],
        bytes: (6 * tokens * columns) as u64,
        flops: None,
        inputs: vec![numbers(1, 2 * tokens * columns)],
        outputs: tokens * columns,
        wide: false,
        slack: SLACK,
        steps: Box::new(move |_, at, out| vec![ops::swiglu(at[0], out, [tokens, columns])]),
        expected: Box::new(move |places| {
            let at = |row: usize, column: usize| f64::from(activations(1).at((row * 2 * columns + column) as u64));
            let one = |place: &usize| {
                let (row, column) = (place / columns, place % columns);
                silu(at(row, column)) * at(row, columns + column)
            };
            places.iter().map(|place| Expected { value: one(place), magnitude: one(place).abs() }).collect()
        }),
    }
}
