//! `check`: every operation against the host, and a whole small model against the host's, on a device.

use std::io::Write;

use longpole_bench::cuda::Cuda;
use longpole_bench::measure::{Body as _, Driver as _};

use crate::config::Config;
use crate::engine::{Engine, Generation, Mode};
use crate::error::Error;
use crate::generate::Decoder as _;
use crate::ops::Variant;
use crate::random;
use crate::reference::{Weights, distance, forward};
use crate::suite::{CaseBody, cases};

/// Models that the host can run: queries that share keys by ones, twos, threes, fours and fives, lengths that fill no tile.
fn small() -> Vec<(&'static str, Config)> {
    let base = Config::small();
    vec![
        ("small", base.clone()),
        ("small-group4", Config { hidden: 320, intermediate: 1056, heads: 8, vocabulary: 1002, tied: false, ..base.clone() }),
        ("small-group3", Config { heads: 6, layers: 2, ..base.clone() }),
        ("small-group5", Config { heads: 10, layers: 2, ..base.clone() }),
        ("small-group1", Config { heads: 2, layers: 3, ..base }),
    ]
}

/// Logits may be so far from exact ones, as a share of their length.
const ALLOWED: f64 = 2e-3;

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Small shapes, which take a second, and minutes under a tool that looks at every access.
    Small,
    /// And every operation of both real models.
    All,
}

fn line(out: &mut dyn Write, name: &str, found: Result<String, String>, failed: &mut u32) -> Result<(), Error> {
    let (verdict, text) = match found {
        Ok(text) => ("ok", text),
        Err(text) => {
            *failed += 1;
            ("WRONG", text)
        }
    };
    writeln!(out, "{verdict:<6} {name:<52} {text}").map_err(Error::Output)
}

/// Checks and prints a line each; the number of failures.
pub fn check(driver: &mut Cuda, extent: Extent, out: &mut dyn Write) -> Result<u32, Error> {
    let mut failed = 0;
    let mut models: Vec<(&str, Config, [usize; 2])> = Vec::new();
    for (name, config) in small() {
        // One split and several, contexts and prompts that are no multiple of anything.
        models.push((name, config.clone(), [37, 5]));
        models.push((name, config.clone(), [1001, 131]));
    }
    if extent == Extent::All {
        models.push(("Qwen3-0.6B", Config::qwen3_0_6b(), [1024, 1024]));
        models.push(("Qwen3-4B", Config::qwen3_4b(), [1024, 1024]));
    }
    for (model, config, [context, tokens]) in &models {
        for case in cases(config, *context, *tokens) {
            let name = format!("{model} {}/{}/{} {context}/{tokens}", case.op, case.phase, case.variant.name());
            let mut body = CaseBody::new(case);
            // Twice on the second of two sets: what a launch leaves behind must not spoil the next.
            let mut run = || {
                body.prepare(driver, 2)?;
                for set in [0, 1, 1] {
                    body.poison(driver, set)?;
                    body.launch(driver, set)?;
                    body.check(driver, set)?;
                }
                driver.synchronize()
            };
            let found = run().map_err(|error| error.to_string());
            line(out, &name, found.map(|()| format!("{:.2} of the allowed error", body.worst)), &mut failed)?;
        }
    }
    for (name, config) in small() {
        let tokens = random::tokens(2, 90, config.vocabulary);
        let expected = forward(&config, &Weights::random(&config), &tokens);
        for variant in Variant::ALL {
            let found = whole(driver, &config, variant, &tokens, &expected);
            let title = format!("{name} whole model {}", variant.name());
            line(out, &title, found.map_err(|error| error.to_string()), &mut failed)?;
        }
        let found = sampling(driver, &config).map_err(|error| error.to_string());
        line(out, &format!("{name} generation and sampling"), found, &mut failed)?;
    }
    Ok(failed)
}

/// Prefill in parts of two sizes, then tokens one by one, eagerly and replayed, against the host's logits.
fn whole(driver: &mut Cuda, config: &Config, variant: Variant, tokens: &[u32], expected: &[Vec<f64>]) -> Result<String, Error> {
    let mut engine = Engine::new(driver, config.clone(), 512, 48)?;
    engine.fill_random(driver)?;
    let mut worst = 0.0f64;
    let mut compare = |engine: &Engine, driver: &mut Cuda, at: usize, what: &str| {
        let apart = distance(&engine.logits(driver)?, &expected[at]);
        worst = worst.max(apart);
        if apart.is_nan() || apart > ALLOWED {
            return Err(Error::Asked(format!("logits after {what} of token {at} are {apart:.4} of their length off")));
        }
        Ok(())
    };
    let prompt = tokens.len() - 20;
    engine.poison(driver)?;
    engine.prefill(driver, variant, &tokens[..prompt])?;
    engine.take(driver)?;
    compare(&engine, driver, prompt - 1, "the prefill")?;
    for (at, token) in tokens.iter().enumerate().skip(prompt) {
        let mode = if at % 3 == 0 { Mode::Eager } else { Mode::Graph };
        engine.poison(driver)?;
        engine.force(driver, *token)?;
        engine.step(driver, variant, mode)?;
        compare(&engine, driver, at, "the step")?;
    }
    Ok(format!("logits at most {worst:.4} of their length off"))
}

/// Greedy generation takes the largest logit and is the same replayed as eagerly; draws are alike for one seed and differ between two.
fn sampling(driver: &mut Cuda, config: &Config) -> Result<String, Error> {
    let prompt = random::tokens(3, 9, config.vocabulary);
    let mut made = |variant: Variant, mode: Mode, temperature: f32, seed: u32| {
        let mut engine = Engine::new(driver, config.clone(), 300, 64)?;
        engine.fill_random(driver)?;
        engine.set_sampling(driver, temperature, seed)?;
        engine.prefill(driver, variant, &prompt)?;
        let logits = engine.logits(driver)?;
        let mut generation = Generation { engine: &mut engine, driver, variant, mode, launch_ns: Vec::new() };
        let mut tokens = Vec::new();
        crate::generate::generate(&mut generation, 270, &[], &mut |token| {
            tokens.push(token);
            Ok(())
        })?;
        if generation.take().is_ok() {
            return Err(Error::Asked("a token was left under way".to_owned()));
        }
        let mut best = 0;
        for (at, logit) in logits.iter().enumerate() {
            if *logit > logits[best] {
                best = at;
            }
        }
        Ok::<_, Error>((tokens, best as u32))
    };
    let wrong = |what: &str| Err(Error::Asked(what.to_owned()));
    let (greedy, best) = made(Variant::Tile, Mode::Graph, 0.0, 1)?;
    if greedy.first() != Some(&best) {
        return wrong("the first token is not that of the largest logit");
    }
    if made(Variant::Tile, Mode::Eager, 0.0, 2)?.0 != greedy {
        return wrong("eager and replayed steps choose other tokens");
    }
    let (drawn, _) = made(Variant::Tile, Mode::Graph, 1.0, 1)?;
    if made(Variant::Tile, Mode::Graph, 1.0, 1)?.0 != drawn {
        return wrong("one seed draws different tokens");
    }
    let other = made(Variant::Tile, Mode::Graph, 1.0, 2)?.0;
    let alike = drawn.iter().zip(&other).filter(|(a, b)| a == b).count();
    if alike > drawn.len() / 4 || drawn.iter().any(|token| *token as usize >= config.vocabulary) {
        return wrong("two seeds draw the same tokens");
    }
    Ok("greedy, replayed and drawn tokens as they should be".to_owned())
}
