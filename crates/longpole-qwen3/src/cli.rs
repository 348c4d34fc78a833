//! The command line: what is asked for, and doing it.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use longpole_bench::cuda::Cuda;
use longpole_bench::measure::Driver as _;

use crate::check::{Extent, check};
use crate::engine::{Engine, Generation, LEAST_TEMPERATURE, Mode};
use crate::error::Error;
use crate::generate::{Ended, generate};
use crate::models::Model;
use crate::ops::Variant;
use crate::prepared::Prepared;
use crate::tokenizer::Stream;
use crate::workload::{Workload, workload};

/// What the program answers to.
pub const USAGE: &str = "\
longpole-qwen3: a decoder for Qwen3-0.6B and Qwen3-4B on one NVIDIA device

Usage:
  run MODEL [PROMPT] [options]     write on from a prompt
  logits MODEL -o FILE [options]   logits after each of some tokens, as 32-bit numbers
  workload [MODEL...] [options]    windows to record: prefills of 1,024 tokens, and decode after 1,024 positions
  check [--all]                    every kernel and small models against the host
  suite list|run|profile|peaks     benchmarks, see docs/suite-protocol.md

MODEL is a folder with config.json, tokenizer.json and safetensors, a name in the local Hugging Face cache
(Qwen/Qwen3-0.6B), or --random Qwen3-0.6B|Qwen3-4B: the right shapes with seeded weights, whose tokens are printed as numbers.

Options:
  --max-new-tokens N   tokens to write at most [128]
  --temperature T      0 takes the most likely token, more draws [0]
  --seed N             which draws [0]
  --chat               put the prompt into the model's chat form
  --prompt-tokens N    N seeded tokens instead of a prompt
  --tokens A,B,C       these tokens instead of a prompt
  --prefill N          of logits: tokens read at once, the others follow one by one [1]
  --context N          positions to have room for [4096]
  --variant ref|tile   plain or tuned kernels [tile]
  --eager              launch steps kernel by kernel instead of replaying them
  --no-overlap         no kernel begins before the one ahead of it is done
  --warm-up            read the prompt once before it counts, so that nothing is loaded for the first time
  --stats              times on standard error
  --                   what follows is no option: a prompt may begin with -

Options of workload, whose models are Qwen3-0.6B and Qwen3-4B with seeded weights, both if none is named, or a folder or a name as above:
  --seconds S          run each phase untraced for so long first [1]
  --variant, --no-overlap
It runs each phase untraced, then once more inside an NVTX range `window`: longpole steps --run --range nvtx:window -- longpole-qwen3 workload

Exit codes: 0 done; 1 a result of check (or suite) is wrong; 2 the command line makes no sense or asks for what does not fit;
3 nothing could be run or printed: the model's files cannot be used, or there is no device, no driver, not enough of its memory.
";

/// What is fed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A text.
    Text(String),
    /// So many seeded tokens.
    Seeded(usize),
    /// These tokens.
    Tokens(Vec<u32>),
}

/// Everything that `run` and `logits` take.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Which model.
    pub model: Model,
    /// Which prompt.
    pub prompt: Prompt,
    /// Tokens to write.
    pub count: usize,
    /// How hot to draw them.
    pub temperature: f32,
    /// Which draws.
    pub seed: u32,
    /// Whether the prompt is a turn of a chat.
    pub chat: bool,
    /// Tokens read at once, of `logits`.
    pub prefill: usize,
    /// Positions.
    pub context: usize,
    /// Which kernels.
    pub variant: Variant,
    /// How steps are launched.
    pub mode: Mode,
    /// Whether kernels begin before the ones ahead are done.
    pub overlap: bool,
    /// Whether the prompt is read once before it counts.
    pub warm_up: bool,
    /// Whether times are printed.
    pub stats: bool,
    /// Where logits go.
    pub output: Option<PathBuf>,
}

/// A command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Help was asked for.
    Help,
    /// Write text.
    Run(Job),
    /// Write logits.
    Logits(Job),
    /// Run windows to record.
    Workload(Workload),
    /// Check kernels.
    Check(Extent),
    /// Speak the suite protocol.
    Suite(Vec<String>),
}

/// Which kernels `--variant` names.
pub(crate) fn variant(text: &str) -> Result<Variant, String> {
    let found = Variant::ALL.into_iter().find(|variant| variant.name() == text);
    found.ok_or_else(|| format!("--variant is ref or tile, not {text}"))
}

pub(crate) fn value_of<'a>(name: &str, rest: &mut std::slice::Iter<'a, String>) -> Result<&'a str, String> {
    rest.next().map(String::as_str).ok_or_else(|| format!("{name} needs a value"))
}

pub(crate) fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name} needs a number, not {text}"))
}

/// The temperature `--temperature` names: 0, or one whose inverse is a number that logits can be told apart with.
fn temperature(text: &str) -> Result<f32, String> {
    // In 64 bits, since 32 would make a 0 of what is not.
    let value: f64 = number("--temperature", text)?;
    let (least, most) = (f64::from(LEAST_TEMPERATURE), 1.0 / f64::from(LEAST_TEMPERATURE));
    if value == 0.0 || (least..=most).contains(&value) {
        Ok(value as f32)
    } else {
        Err(format!("--temperature is 0, or 0.000001 to 1000000, not {text}"))
    }
}

/// Takes an argument that is no option: the model first, then the prompt.
fn place(argument: &str, model: &mut Option<Model>, prompt: &mut Option<Prompt>) -> Result<(), String> {
    match (&model, &prompt) {
        (None, _) => *model = Some(Model::Named(argument.to_owned())),
        (_, None) => *prompt = Some(Prompt::Text(argument.to_owned())),
        _ => return Err(format!("`{argument}` is one argument too many")),
    }
    Ok(())
}

impl Command {
    /// Reads the arguments after the program's name.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let Some((command, rest)) = arguments.split_first() else { return Err("say run, logits, workload, check or suite".to_owned()) };
        let options = arguments.iter().take_while(|argument| *argument != "--");
        match command.as_str() {
            "suite" => return Ok(Self::Suite(rest.to_vec())),
            _ if options.into_iter().any(|argument| argument == "--help" || argument == "-h") => return Ok(Self::Help),
            "check" => match rest.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                [] => return Ok(Self::Check(Extent::Small)),
                ["--all"] => return Ok(Self::Check(Extent::All)),
                _ => return Err(format!("`{}` is no option of check", rest.join(" "))),
            },
            "workload" => return Workload::parse(rest).map(Self::Workload),
            "run" | "logits" => {}
            other => return Err(format!("`{other}` is no command: say run, logits, workload, check or suite")),
        }
        let job = Self::job(rest)?;
        if command == "run" {
            return if job.output.is_some() {
                Err("-o is an option of logits; run writes to standard output".to_owned())
            } else {
                Ok(Self::Run(job))
            };
        }
        if job.output.is_none() {
            return Err("logits need -o FILE".to_owned());
        }
        Ok(Self::Logits(job))
    }

    fn job(arguments: &[String]) -> Result<Job, String> {
        let (mut model, mut prompt) = (None, None);
        let mut job = Job {
            model: Model::Random(String::new()),
            prompt: Prompt::Text(String::new()),
            count: 128,
            temperature: 0.0,
            seed: 0,
            chat: false,
            prefill: 1,
            context: 4096,
            variant: Variant::Tile,
            mode: Mode::Graph,
            overlap: true,
            warm_up: false,
            stats: false,
            output: None,
        };
        let mut rest = arguments.iter();
        let mut optional = true;
        while let Some(argument) = rest.next() {
            let name = argument.as_str();
            match name {
                other if !optional => place(other, &mut model, &mut prompt)?,
                "--" => optional = false,
                "--random" => model = Some(Model::Random(value_of(name, &mut rest)?.to_owned())),
                "--max-new-tokens" => job.count = number(name, value_of(name, &mut rest)?)?,
                "--temperature" => job.temperature = temperature(value_of(name, &mut rest)?)?,
                "--seed" => job.seed = number(name, value_of(name, &mut rest)?)?,
                "--prompt-tokens" => prompt = Some(Prompt::Seeded(number(name, value_of(name, &mut rest)?)?)),
                "--tokens" => {
                    let tokens = value_of(name, &mut rest)?.split(',').map(|text| number(name, text.trim()));
                    prompt = Some(Prompt::Tokens(tokens.collect::<Result<_, _>>()?));
                }
                "--prefill" => job.prefill = number(name, value_of(name, &mut rest)?)?,
                "--context" => job.context = number(name, value_of(name, &mut rest)?)?,
                "--variant" => job.variant = variant(value_of(name, &mut rest)?)?,
                "--chat" => job.chat = true,
                "--eager" => job.mode = Mode::Eager,
                "--no-overlap" => job.overlap = false,
                "--warm-up" => job.warm_up = true,
                "--stats" => job.stats = true,
                "-o" => match value_of(name, &mut rest)? {
                    "" => return Err("-o needs the name of a file, not an empty one".to_owned()),
                    path => job.output = Some(PathBuf::from(path)),
                },
                other if other.len() > 1 && other.starts_with('-') => {
                    return Err(format!("`{other}` is no option; a prompt that begins so stands behind --"));
                }
                other => place(other, &mut model, &mut prompt)?,
            }
        }
        if job.context == 0 {
            return Err("--context is 1 or more".to_owned());
        }
        job.model = model.ok_or("say which model: a folder, a name, or --random Qwen3-0.6B")?;
        job.prompt = prompt.ok_or("say what to begin with: a prompt, --prompt-tokens or --tokens")?;
        Ok(job)
    }
}

/// Opens the device and puts the model there.
fn ready(job: &Job, prepared: &Prepared) -> Result<(Cuda, Engine), Error> {
    let found = &prepared.found;
    let mut driver = Cuda::open(0)?;
    let mut engine = Engine::new(&mut driver, found.config.clone(), prepared.capacity, prepared.step_tokens)?;
    match &found.tensors {
        Some(tensors) => engine.load(&mut driver, tensors)?,
        None => engine.fill_random(&mut driver)?,
    }
    engine.set_overlap(job.overlap);
    engine.set_sampling(&mut driver, job.temperature, job.seed)?;
    Ok((driver, engine))
}

/// Writes text.
pub fn run(job: &Job, out: &mut dyn Write, notes: &mut dyn Write) -> Result<(), Error> {
    let prepared = Prepared::run(job)?;
    let (mut driver, mut engine) = ready(job, &prepared)?;
    let Prepared { found, tokens, .. } = prepared;
    if job.warm_up {
        engine.prefill(&mut driver, job.variant, &tokens)?;
        engine.step(&mut driver, job.variant, job.mode)?;
        engine.reset();
    }
    driver.synchronize()?;
    let began = Instant::now();
    engine.prefill(&mut driver, job.variant, &tokens)?;
    let mut stream = Stream::default();
    let (mut written, mut first, mut last) = (0usize, None, began);
    // A random model knows no end.
    let ends = if found.tensors.is_some() { found.config.ends.as_slice() } else { &[] };
    let mut generation =
        Generation { engine: &mut engine, driver: &mut driver, variant: job.variant, mode: job.mode, launch_ns: Vec::new() };
    let ended = generate(&mut generation, job.count, ends, &mut |token| {
        last = Instant::now();
        first.get_or_insert(last);
        written += 1;
        let text = match &found.tokenizer {
            Some(tokenizer) => stream.push(tokenizer.bytes_of(token)),
            None => format!("{token} "),
        };
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output)
    })?;
    writeln!(out, "{}", stream.finish()).map_err(Error::Output)?;
    if job.stats {
        let mut launches = generation.launch_ns;
        let per_token = first.filter(|_| written > 1).map(|first| (last - first).as_secs_f64() / (written - 1) as f64);
        // What comes first is captured, so the median says what a replay costs.
        launches.sort_unstable();
        let launch_us = launches.get(launches.len() / 2).map_or(0.0, |ns| *ns as f64 / 1e3);
        let prefill_ms = first.map_or(0.0, |first| (first - began).as_secs_f64() * 1e3);
        let bytes = found.config.decode_bytes(tokens.len() + written / 2) as f64;
        let mut lines = vec![format!("prefill   {prefill_ms:>9.3} ms   {} tokens, to the first new one", tokens.len())];
        if let Some(seconds) = per_token {
            let (ms, rate) = (seconds * 1e3, 1.0 / seconds);
            lines.push(format!("decode    {ms:>9.3} ms   a token, {rate:.1} tokens/s, {written} tokens"));
            lines.push(format!("bytes     {:>9.3} GB   a token at least, {:.0} GB/s reached", bytes / 1e9, bytes / seconds / 1e9));
        }
        lines.push(format!("host      {launch_us:>9.3} us   a token to launch, median"));
        let why = if ended == Ended::ByModel { "the model ended the text" } else { "as many tokens as asked for" };
        lines.push(format!("end       {why}\n"));
        notes.write_all(lines.join("\n").as_bytes()).map_err(Error::Output)?;
    }
    Ok(())
}

/// Writes the logits after each token from the last of the prefill on.
pub fn logits(job: &Job, notes: &mut dyn Write) -> Result<(), Error> {
    let prepared = Prepared::logits(job)?;
    let (mut driver, mut engine) = ready(job, &prepared)?;
    let Prepared { found, tokens, at_once, output, .. } = prepared;
    let mut output = output.ok_or_else(|| Error::Asked("logits need -o FILE".to_owned()))?;
    let mut write = |engine: &Engine, driver: &mut Cuda| {
        let bytes: Vec<u8> = engine.logits(driver)?.iter().flat_map(|logit| logit.to_le_bytes()).collect();
        output.write(&bytes)
    };
    engine.prefill(&mut driver, job.variant, &tokens[..at_once])?;
    engine.take(&mut driver)?;
    write(&engine, &mut driver)?;
    for token in &tokens[at_once..] {
        engine.force(&mut driver, *token)?;
        engine.step(&mut driver, job.variant, job.mode)?;
        write(&engine, &mut driver)?;
    }
    output.finish()?;
    let (rows, columns) = (tokens.len() - at_once + 1, found.config.vocabulary);
    let path = job.output.clone().unwrap_or_default();
    writeln!(notes, "{rows} x {columns} logits in {}", path.display()).map_err(Error::Output)
}

/// Answers the arguments as the system hands them over; the exit code. Those that are no text are refused: replaced by something, they would mean
/// another file or another prompt.
pub fn start(arguments: Vec<OsString>, out: &mut dyn Write, notes: &mut dyn Write) -> u8 {
    match arguments.into_iter().map(OsString::into_string).collect::<Result<Vec<_>, _>>() {
        Ok(arguments) => main(&arguments, out, notes),
        Err(argument) => {
            let _ = writeln!(notes, "longpole-qwen3: the argument {} is no text in UTF-8", argument.display());
            2
        }
    }
}

/// Answers a command line; the exit code.
pub fn main(arguments: &[String], out: &mut dyn Write, notes: &mut dyn Write) -> u8 {
    let command = match Command::parse(arguments) {
        Ok(command) => command,
        Err(complaint) => {
            // Nobody is left to be told that this could not be written.
            let _ = writeln!(notes, "longpole-qwen3: {complaint}\n\n{USAGE}");
            return 2;
        }
    };
    let done = match command {
        Command::Help => out.write_all(USAGE.as_bytes()).map(|()| 0).map_err(Error::Output),
        Command::Run(job) => run(&job, out, notes).map(|()| 0),
        Command::Logits(job) => logits(&job, notes).map(|()| 0),
        Command::Workload(asked) => workload(&asked, out).map(|()| 0),
        Command::Check(extent) => Cuda::open(0).map_err(Error::from).and_then(|mut driver| {
            let failed = check(&mut driver, extent, out)?;
            Ok(u8::from(failed > 0))
        }),
        Command::Suite(arguments) => match crate::suite::suite() {
            Ok(suite) => Ok(suite.run(&arguments, || Cuda::open(0), out, notes)),
            Err(error) => Err(Error::Asked(error.to_string())),
        },
    };
    match done {
        Ok(code) => code,
        // The reader has gone: it has what it wanted.
        Err(Error::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            let _ = writeln!(notes, "longpole-qwen3: {error}");
            error.exit_code()
        }
    }
}

#[cfg(test)]
mod tests;
