//! What the `main` of a suite calls.
//!
//! A suite lists its benchmarks and how each comes to life; [`Suite::run`] speaks the protocol for it. The list needs no device.

mod arguments;

use std::io::Write;
use std::process::ExitCode;

use crate::key::{Key, select};
use crate::measure::{self, Body, Driver, Error};
use crate::protocol::{Benchmark, Event, LIST_SCHEMA, List, Peak, SuiteInfo};

pub use arguments::{Command, Request, USAGE, UsageError};

/// Makes the body of a benchmark when it is due.
pub type Make<D> = Box<dyn Fn(&mut D) -> Result<Box<dyn Body<D>>, Error>>;

/// Measures the rates that a device reaches, and hands each on as it is known.
pub type Peaks<D> = Box<dyn Fn(&mut D, &mut dyn FnMut(Peak) -> Result<(), Error>) -> Result<(), Error>>;

/// Benchmarks under one name.
pub struct Suite<D: Driver> {
    info: SuiteInfo,
    entries: Vec<(Benchmark, Make<D>)>,
    peaks: Option<Peaks<D>>,
}

/// Exit codes of a suite: everything went well; a benchmark failed; the command line makes no sense.
const FINE: u8 = 0;
const FAILED: u8 = 1;
const USAGE_CODE: u8 = 2;

impl<D: Driver> Suite<D> {
    /// An empty suite.
    pub fn new(name: &str, version: &str) -> Self {
        let info = SuiteInfo { name: name.to_owned(), version: Some(version.to_owned()) };
        Self { info, entries: Vec::new(), peaks: None }
    }

    /// Adds a benchmark and how its body is made. Nothing is allocated or compiled before it is due.
    #[must_use]
    pub fn benchmark<B: Body<D> + 'static>(mut self, benchmark: Benchmark, make: impl Fn(&mut D) -> Result<B, Error> + 'static) -> Self {
        self.entries.push((benchmark, Box::new(move |driver| Ok(Box::new(make(driver)?) as Box<dyn Body<D>>))));
        self
    }

    /// Adds the measuring of the device's own rates.
    #[must_use]
    pub fn peaks(mut self, peaks: impl Fn(&mut D, &mut dyn FnMut(Peak) -> Result<(), Error>) -> Result<(), Error> + 'static) -> Self {
        self.peaks = Some(Box::new(peaks));
        self
    }

    /// What `list --json` prints.
    pub fn list(&self) -> List {
        let benchmarks = self.entries.iter().map(|(benchmark, _)| benchmark.clone()).collect();
        List { schema: LIST_SCHEMA.to_owned(), suite: self.info.clone(), benchmarks }
    }

    /// Answers the command line of this process on standard output. `open` finds the device, when one is needed.
    pub fn main(&self, open: impl FnOnce() -> Result<D, Error>) -> ExitCode {
        let arguments: Vec<String> = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
        ExitCode::from(self.run(&arguments, open, &mut std::io::stdout().lock(), &mut std::io::stderr().lock()))
    }

    /// Answers a command line: messages of the protocol go to `out`, everything for people to `complaints`. Returns the exit code.
    pub fn run(
        &self,
        arguments: &[String],
        open: impl FnOnce() -> Result<D, Error>,
        out: &mut dyn Write,
        complaints: &mut dyn Write,
    ) -> u8 {
        let (code, complaint) = match Request::parse(arguments) {
            Ok(request) => match self.answer(&request, open, out) {
                Ok(true) => (FINE, None),
                Ok(false) => (FAILED, None),
                // The reader has gone: it has what it wanted.
                Err(Error::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => (FINE, None),
                Err(error) => (FAILED, Some(error.to_string())),
            },
            Err(UsageError::Help) => {
                let printed = write!(out, "{}: a suite of longpole benchmarks\n\n{USAGE}", self.info.name);
                return if printed.is_ok() { FINE } else { FAILED };
            }
            Err(error) => (USAGE_CODE, Some(format!("{error}\n\n{USAGE}"))),
        };
        if let Some(complaint) = complaint {
            // Nobody is left to be told that this could not be written.
            let _ = writeln!(complaints, "{}: {complaint}", self.info.name);
        }
        code
    }

    /// Whether everything went well.
    fn answer(&self, request: &Request, open: impl FnOnce() -> Result<D, Error>, out: &mut dyn Write) -> Result<bool, Error> {
        let chosen = |request: &Request| {
            let keys: Vec<Key> = self.entries.iter().map(|(benchmark, _)| benchmark.key.clone()).collect();
            let nothing = |selector| Error::Setup(format!("`{selector}` chooses no benchmark; `list` prints their keys"));
            let at = select(&keys, &request.selectors, request.model.as_deref()).map_err(nothing)?;
            Ok::<_, Error>(at.into_iter().filter_map(|at| self.entries.get(at)).collect::<Vec<_>>())
        };
        match request.command {
            Command::List => {
                let mut list = self.list();
                list.benchmarks = chosen(request)?.into_iter().map(|(benchmark, _)| benchmark.clone()).collect();
                if request.json {
                    writeln!(out, "{}", serde_json::to_string(&list).unwrap_or_default())?;
                } else {
                    list.benchmarks.iter().try_for_each(|benchmark| writeln!(out, "{}", benchmark.key))?;
                }
                Ok(true)
            }
            Command::Run | Command::Profile => {
                let chosen = chosen(request)?;
                let mut driver = open()?;
                let mut emit = |event: &Event| emit(out, event);
                if request.command == Command::Run {
                    emit(&Event::Device { device: driver.device() })?;
                }
                let mut fine = true;
                for (benchmark, make) in chosen {
                    if let Err(error) = one(&mut driver, request, benchmark, make, &mut emit) {
                        if error.is_output() {
                            return Err(error);
                        }
                        emit(&Event::Error { key: benchmark.key.clone(), message: error.to_string() })?;
                        fine = false;
                    }
                }
                Ok(fine)
            }
            Command::Peaks => {
                let Some(peaks) = &self.peaks else {
                    return Err(Error::Setup("this suite measures no peaks".to_owned()));
                };
                let mut driver = open()?;
                emit(out, &Event::Device { device: driver.device() })?;
                peaks(&mut driver, &mut |peak| Ok(emit(out, &Event::Peak(peak))?))?;
                Ok(true)
            }
        }
    }
}

/// One benchmark of a run or a profile.
fn one<D: Driver>(
    driver: &mut D,
    request: &Request,
    benchmark: &Benchmark,
    make: &Make<D>,
    emit: &mut dyn FnMut(&Event) -> std::io::Result<()>,
) -> Result<(), Error> {
    let mut body = make(driver)?;
    if request.command == Command::Run {
        return measure::measure(driver, body.as_mut(), benchmark, &request.settings, emit);
    }
    measure::profile(driver, body.as_mut(), request.settings.l2, request.launches)?;
    Ok(emit(&Event::Profile { key: benchmark.key.clone(), launches: request.launches })?)
}

fn emit(out: &mut dyn Write, event: &Event) -> std::io::Result<()> {
    // A line at a time, so that a reader sees every sample when it is taken.
    writeln!(out, "{}", event.to_line())?;
    out.flush()
}
