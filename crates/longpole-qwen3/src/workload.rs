//! Windows to record: for each model prefills of 1,024 tokens, then decode steps after 1,024 positions, replayed from graphs.
//!
//! Each phase runs untraced first, for a second, so that clocks have risen and nothing is loaded or captured for the first time; that run is timed.
//! Then it runs once more inside an NVTX range `window`, which is what a recorder is to record. Inside it stands a range with the model's name, so
//! that steps of two models under one marker are told apart, and in that the steps: `prefill`, `decode step`.

use std::ffi::CString;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use longpole_bench::cuda::Cuda;
use longpole_bench::measure::Driver as _;

use crate::cli::{number, value_of, variant};
use crate::config::Config;
use crate::engine::{Engine, Mode};
use crate::error::Error;
use crate::layout::Layout;
use crate::models::{Found, Model, find};
use crate::nvtx;
use crate::ops::Variant;
use crate::random;
use crate::suite::CONTEXT;

/// Models where none is named.
const MODELS: [&str; 2] = ["Qwen3-0.6B", "Qwen3-4B"];
/// Prefills in a window.
const PREFILLS: usize = 10;
/// Decode steps in a window, and between two returns to [`CONTEXT`] positions before it: never far from there.
const STEPS: usize = 60;
/// Positions that a model has room for meanwhile.
const POSITIONS: usize = 2 * CONTEXT;

/// What is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Models, in order.
    pub models: Vec<String>,
    /// Untraced running of each phase.
    pub untraced: Duration,
    /// Which kernels.
    pub variant: Variant,
    /// Whether kernels begin before the ones ahead are done.
    pub overlap: bool,
}

impl Workload {
    /// Reads the arguments after the command's name.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut asked = Self { models: Vec::new(), untraced: Duration::from_secs(1), variant: Variant::Tile, overlap: true };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let name = argument.as_str();
            match name {
                "--seconds" => {
                    let seconds: f64 = number(name, value_of(name, &mut rest)?)?;
                    let sound = (0.0..=3600.0).contains(&seconds);
                    asked.untraced = sound.then(|| Duration::from_secs_f64(seconds)).ok_or("--seconds is 0 to 3600")?;
                }
                "--variant" => asked.variant = variant(value_of(name, &mut rest)?)?,
                "--no-overlap" => asked.overlap = false,
                other if other.starts_with('-') => return Err(format!("`{other}` is no option of workload")),
                other => asked.models.push(other.to_owned()),
            }
        }
        if asked.models.is_empty() {
            asked.models = MODELS.map(str::to_owned).to_vec();
        }
        Ok(asked)
    }
}

/// A model by what stands on the command line: the name of one with seeded weights, a folder, or a name of the hub. And its name in ranges.
fn named(text: &str) -> (Model, String) {
    // With a slash it is a path or a name of the hub.
    if !text.contains('/') && Config::named(text).is_some() {
        return (Model::Random(text.to_owned()), text.to_owned());
    }
    let path = Path::new(text);
    let folder = path.is_dir().then(|| path.canonicalize().ok()?.file_name().map(|name| name.to_string_lossy().into_owned())).flatten();
    (Model::Named(text.to_owned()), folder.unwrap_or_else(|| text.to_owned()))
}

/// Something that is done over and over.
trait Phase {
    /// Goes back to where every run begins, and waits until the device is there.
    fn begin(&mut self) -> Result<(), Error>;
    /// Does it so many times, and waits for the last.
    fn run(&mut self, count: usize) -> Result<(), Error>;
}

/// How long something took that was done over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timed {
    count: u64,
    total: Duration,
}

impl Timed {
    fn mean_ms(self) -> f64 {
        self.total.as_secs_f64() * 1e3 / self.count.max(1) as f64
    }
}

/// Runs a phase `at_once` times after each beginning, once before it counts and then until so much time has passed on the clock.
fn untraced(phase: &mut dyn Phase, at_once: usize, least: Duration, clock: &mut dyn FnMut() -> Duration) -> Result<Timed, Error> {
    phase.begin()?;
    phase.run(at_once)?;
    let mut timed = Timed { count: 0, total: Duration::ZERO };
    let first = clock();
    loop {
        phase.begin()?;
        let began = clock();
        phase.run(at_once)?;
        let ended = clock();
        timed.count += at_once as u64;
        timed.total += ended.saturating_sub(began);
        if ended.saturating_sub(first) >= least {
            return Ok(timed);
        }
    }
}

/// A model on a device.
struct Running<'a> {
    engine: &'a mut Engine,
    driver: &'a mut Cuda,
    variant: Variant,
    prompt: &'a [u32],
}

/// Prefills, each waited for before the next, as a prompt is.
struct Prefill<'a, 'r>(&'a mut Running<'r>);

impl Phase for Prefill<'_, '_> {
    fn begin(&mut self) -> Result<(), Error> {
        Ok(self.0.driver.synchronize()?)
    }

    fn run(&mut self, count: usize) -> Result<(), Error> {
        let Running { engine, driver, variant, prompt } = &mut *self.0;
        for _ in 0..count {
            engine.reset();
            engine.prefill(driver, *variant, prompt)?;
            engine.take(driver)?;
        }
        Ok(())
    }
}

/// Decode steps, the next launched before the last token is looked at.
struct Decode<'a, 'r>(&'a mut Running<'r>);

impl Phase for Decode<'_, '_> {
    fn begin(&mut self) -> Result<(), Error> {
        self.0.engine.seek(self.0.driver, CONTEXT)?;
        Ok(self.0.driver.synchronize()?)
    }

    fn run(&mut self, count: usize) -> Result<(), Error> {
        let Running { engine, driver, variant, .. } = &mut *self.0;
        for at in 0..count {
            {
                let _range = nvtx::range(c"decode step");
                engine.step(driver, *variant, Mode::Graph)?;
                engine.fetch(driver)?;
            }
            if at > 0 {
                engine.take(driver)?;
            }
        }
        if count > 0 { engine.take(driver).map(drop) } else { Ok(()) }
    }
}

/// Runs a phase untraced and then in a window, and says how long it took untraced.
fn windowed(
    phase: &mut dyn Phase,
    (at_once, in_window): (usize, usize),
    (model, what): (&str, &str),
    least: Duration,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let started = Instant::now();
    let timed = untraced(phase, at_once, least, &mut || started.elapsed())?;
    let name = CString::new(model).map_err(|_| Error::Asked("the name of the model holds a zero".to_owned()))?;
    phase.begin()?;
    {
        let _window = nvtx::range(c"window");
        let _model = nvtx::range(&name);
        phase.run(in_window)?;
    }
    writeln!(out, "{}", line(model, what, timed)).and_then(|()| out.flush()).map_err(Error::Output)
}

fn line(model: &str, what: &str, timed: Timed) -> String {
    format!("{model:<12}  {what:<32}  {:>9.3} ms   mean of {}, untraced", timed.mean_ms(), timed.count)
}

/// The same if the model has as many positions as its phases need.
fn sufficient(found: Found, name: &str) -> Result<Found, Error> {
    let positions = found.config.max_positions;
    if positions < POSITIONS {
        return Err(Error::Unsupported(format!("{name} has {positions} positions, workload needs {POSITIONS}")));
    }
    Layout::new(&found.config, POSITIONS, CONTEXT)?;
    Ok(found)
}

/// Runs every model's phases, one after the other in this process.
pub fn workload(asked: &Workload, out: &mut dyn Write) -> Result<(), Error> {
    // What cannot be found is said before anything runs.
    let found = asked
        .models
        .iter()
        .map(|text| named(text))
        .map(|(model, name)| Ok((sufficient(find(&model)?, &name)?, name)))
        .collect::<Result<Vec<_>, Error>>()?;
    let mut driver = Cuda::open(0)?;
    for (found, model) in &found {
        let mut engine = Engine::new(&mut driver, found.config.clone(), POSITIONS, CONTEXT)?;
        match &found.tensors {
            Some(tensors) => engine.load(&mut driver, tensors)?,
            None => engine.fill_random(&mut driver)?,
        }
        engine.set_overlap(asked.overlap);
        let prompt = random::tokens(1, CONTEXT, found.config.vocabulary);
        let mut running = Running { engine: &mut engine, driver: &mut driver, variant: asked.variant, prompt: &prompt };
        let (prefill, decode) = ("prefill of 1,024 tokens", "decode step after 1,024 positions");
        windowed(&mut Prefill(&mut running), (1, PREFILLS), (model, prefill), asked.untraced, out)?;
        // The last prefill has left the cache and the next token as decode needs them.
        windowed(&mut Decode(&mut running), (STEPS, STEPS), (model, decode), asked.untraced, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Workload, String> {
        Workload::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn both_models_run_unless_some_are_named() {
        assert_eq!(parse("").unwrap().models, MODELS);
        let asked = parse("Qwen3-4B --seconds 0.5 --variant ref --no-overlap").unwrap();
        assert_eq!((asked.models, asked.untraced), (vec!["Qwen3-4B".to_owned()], Duration::from_millis(500)));
        assert!(asked.variant == Variant::Ref && !asked.overlap);
        for (line, said) in
            [("--seconds -1", "0 to 3600"), ("--seconds x", "needs a number"), ("--fast", "no option"), ("--variant best", "ref or tile")]
        {
            let complaint = parse(line).unwrap_err();
            assert!(complaint.contains(said), "{line}: {complaint}");
        }
    }

    #[test]
    fn a_folder_is_called_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("my-qwen");
        std::fs::create_dir(&model).unwrap();
        let text = model.to_str().unwrap();
        assert_eq!(named(text), (Model::Named(text.to_owned()), "my-qwen".to_owned()));
        assert_eq!(named("Qwen3-4B"), (Model::Random("Qwen3-4B".to_owned()), "Qwen3-4B".to_owned()));
        assert_eq!(named("Qwen/Qwen3-4B").1, "Qwen/Qwen3-4B");
    }

    #[test]
    fn a_model_with_few_positions_is_refused_before_any_runs() {
        let with = |max_positions: usize| {
            let config = Config { max_positions, ..Config::small() };
            sufficient(Found { config, tokenizer: None, tensors: None }, "small").map(drop)
        };
        let error = with(2047).unwrap_err();
        assert_eq!(error.to_string(), "unsupported model: small has 2047 positions, workload needs 2048");
        assert_eq!(error.exit_code(), 3);
        with(2048).unwrap();
    }

    /// Takes 10 ms to begin and 3 ms for each time, by a clock of its own.
    #[derive(Default)]
    struct Counting {
        log: Vec<usize>,
        now: std::rc::Rc<std::cell::Cell<u64>>,
    }

    impl Phase for Counting {
        fn begin(&mut self) -> Result<(), Error> {
            self.now.set(self.now.get() + 10);
            self.log.push(0);
            Ok(())
        }

        fn run(&mut self, count: usize) -> Result<(), Error> {
            self.now.set(self.now.get() + 3 * count as u64);
            self.log.push(count);
            Ok(())
        }
    }

    #[test]
    fn what_comes_first_and_beginnings_do_not_count() {
        let mut phase = Counting::default();
        let now = phase.now.clone();
        let timed = untraced(&mut phase, 4, Duration::from_millis(40), &mut || Duration::from_millis(now.get())).unwrap();
        // One before it counts, then 22 ms each until 40 ms are over.
        assert_eq!(phase.log, [0, 4, 0, 4, 0, 4]);
        assert_eq!(timed, Timed { count: 8, total: Duration::from_millis(24) });
        assert_eq!(
            line("Qwen3-4B", "prefill", timed),
            "Qwen3-4B      prefill                               3.000 ms   mean of 8, untraced"
        );
        // However short the time, it is done once.
        let mut phase = Counting::default();
        let now = phase.now.clone();
        assert_eq!(untraced(&mut phase, 1, Duration::ZERO, &mut || Duration::from_millis(now.get())).unwrap().count, 1);
    }
}
