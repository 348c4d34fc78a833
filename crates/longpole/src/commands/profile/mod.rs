//! `longpole profile`: a benchmark under Nsight Compute.

mod failures;
mod follow;
mod line;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use longpole_bench::key::Key;
use longpole_doctor::{Host, Machine as _, facts};
use longpole_report::{printable, redact};

use crate::args::{Format, NcuArgs, NcuView, ProfileArgs};
use crate::bench::bar::Bar;
use crate::bench::child::how;
use crate::bench::suite::{Suite, last_words};
use crate::bench::when::When;
use crate::bench::{choose, git, interrupt, store};
use crate::exit::{Failure, complain};
use crate::sink::Sink;
use crate::target::refuse_inputs;
use follow::{Followed, follow};
use line::Depth;

/// Least time of a pass of one kernel, which a single cheap pass does not show: what the kernel overwrites is saved and put back, and caches
/// are emptied. Measured on one H200 with Nsight Compute 2025.3: 60 small kernels took 28 ms a pass in 10 passes, 35 ms in 33.
const PASS_SECONDS: f64 = 0.035;

/// How reports end.
const ENDING: &str = "ncu-rep";

pub(super) fn run(args: &ProfileArgs) -> Result<(), Failure> {
    line::check(args)?;
    if args.format.format() == Format::Csv {
        return Err(Failure::Usage("profile has no CSV; `longpole ncu REPORT --csv` makes it of the report".to_owned()));
    }
    if let Some(before) = args.compare.as_deref().filter(|before| !super::is_report(before)) {
        // Asked before anything runs.
        return Err(Failure::Input(format!("--compare `{}` is no report of Nsight Compute", before.to_string_lossy())));
    }
    let suite =
        Suite::new(args.suite.suite.as_deref(), &args.suite.more.suite_arg, Duration::from_secs(u64::from(args.suite.more.timeout)))?;
    let list = suite.list()?;
    let chosen = choose::benchmarks(&list, &args.keys, args.model.as_deref())?;
    let keys: Vec<Key> = chosen.iter().map(|benchmark| benchmark.key.clone()).collect();
    let ncu = find_ncu(args.ncu.as_deref())?;
    let depth = Depth::of(args);
    refuse_inputs(args.output.as_deref().map(AsRef::as_ref), &[args.compare.as_deref()])?;
    let is_whole = keys.iter().any(Key::is_whole_model);
    let expected = if is_whole { Some(estimate(args, &suite, &keys, &ncu, depth)?) } else { None };
    if args.estimate {
        // The first of the names, which nothing needs to hold.
        let (folder, name) = place(args, &keys);
        let words = line::words(args, &suite, &keys, depth, &folder.join(format!("{name}.{ENDING}")));
        if !is_whole {
            say(args, &format!("{} x about {} passes", plural(keys.len() as u64, "kernel"), depth.passes()));
        }
        say(args, &line::shown(&ncu, &words));
        return Ok(());
    }
    let sink = Sink::named(args.output.as_ref())?;
    let report = Report::new(args, &keys)?;
    let words = line::words(args, &suite, &keys, depth, &report.0);
    let bar = Bar::new(expected.unwrap_or(keys.len() as u64) as usize, args.quiet);
    let followed = follow(&ncu, &words, suite.patience, &bar, expected)?;
    drop(bar);
    let there = report.there();
    if let Some(signal) = followed.interrupted {
        drop(report);
        interrupt::end(signal);
    }
    judge(args, &suite, &ncu, &followed, there.as_deref(), sink)
}

fn say(args: &ProfileArgs, text: &str) {
    if !args.quiet || args.estimate {
        complain(&printable(&redact(text)));
    }
}

fn plural(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Nsight Compute's command line: the one that is named, on the PATH, or where its installers put it.
fn find_ncu(named: Option<&OsStr>) -> Result<String, Failure> {
    let host = Host::default();
    if let Some(named) = named {
        let text = named.to_string_lossy().into_owned();
        let path = if text.contains('/') { Some(text.clone()).filter(|path| host.is_program(path)) } else { host.on_path(&text) };
        return path.ok_or_else(|| Failure::Input(format!("--ncu `{text}` is no program that can be run")));
    }
    if let Some(path) = facts::Tools::ncu_of(&host).best().map(|found| found.path.clone()) {
        return Ok(path);
    }
    let diagnosis = longpole_doctor::examine(&host);
    let fix = longpole_doctor::install(&diagnosis.facts, longpole_doctor::Package::Ncu);
    let failure = Failure::Input("Nsight Compute (ncu) is not installed here; --ncu names one that lies elsewhere".to_owned());
    Err(Failure::Advised(Box::new(failure), failures::lines(&fix)))
}

/// Where the report is kept: in which folder, by date and revision, and under which name, by key.
fn place(args: &ProfileArgs, keys: &[Key]) -> (PathBuf, String) {
    let parent = args.results.as_deref().unwrap_or(Path::new(store::FOLDER));
    let folder = store::folder(parent, When::now(), git::state().as_ref());
    let first = keys.first().map(Key::file_name).unwrap_or_default();
    let name = if keys.len() > 1 { format!("{first}+and-{}-more", keys.len() - 1) } else { first };
    (folder, name)
}

/// A name for the report that no other run takes. It is given back where nothing was written there.
struct Report(PathBuf);

impl Report {
    fn new(args: &ProfileArgs, keys: &[Key]) -> Result<Self, Failure> {
        let (folder, name) = place(args, keys);
        let path = store::reserve(&folder, &name, ENDING);
        path.map(Self).map_err(|error| Failure::Usage(format!("no report can be kept in `{}`: {error}", folder.display())))
    }

    /// The report, however ncu understood its name.
    fn there(&self) -> Option<PathBuf> {
        let is_there = |path: &Path| path.metadata().is_ok_and(|found| found.is_file() && found.len() > 0);
        if is_there(&self.0) {
            return Some(self.0.clone());
        }
        let mut twice = self.0.as_os_str().to_os_string();
        twice.push(format!(".{ENDING}"));
        let twice = PathBuf::from(twice);
        (is_there(&twice) && std::fs::rename(&twice, &self.0).is_ok()).then(|| self.0.clone())
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        store::release(&self.0);
    }
}

/// The status to end with after a program: its own, or 128 and the signal, as shells have it.
fn status_of(ended: Option<ExitStatus>) -> Option<i32> {
    let ended = ended?;
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&ended).map(|signal| 128 + signal);
    #[cfg(not(unix))]
    let signal = None;
    ended.code().or(signal)
}

/// Counts the kernels of a whole step in one cheap run, and says how long the real one will take.
fn estimate(args: &ProfileArgs, suite: &Suite, keys: &[Key], ncu: &str, depth: Depth) -> Result<u64, Failure> {
    let folder = tempfile::tempdir()?;
    let report = folder.path().join(format!("count.{ENDING}"));
    let words = line::words(args, suite, keys, Depth::Count, &report);
    let bar = Bar::new(0, args.quiet);
    bar.say("counting the kernels of a step");
    let followed = follow(ncu, &words, suite.patience, &bar, None)?;
    drop(bar);
    if let Some(signal) = followed.interrupted {
        drop(folder);
        interrupt::end(signal);
    }
    if followed.kernels == 0 || !followed.status.is_some_and(|status| status.success()) {
        return Err(failed(suite, ncu, &followed).unwrap_or_else(|| Failure::Input("no kernel of the step was seen".to_owned())));
    }
    let passes = depth.passes();
    let one_pass = followed.profiling.as_secs_f64().max(PASS_SECONDS * followed.kernels as f64);
    let seconds = followed.start_up.unwrap_or_default().as_secs_f64() + one_pass * passes as f64;
    let kernels = plural(followed.kernels, "kernel");
    if line::chose_sections(args) {
        say(
            args,
            &format!("{kernels} x the passes of the sections behind --; one pass of all took {:.0} s", followed.profiling.as_secs_f64()),
        );
    } else {
        let shorter = if depth == Depth::Table { "" } else { "; --table takes fewer" };
        say(args, &format!("{kernels} x about {passes} passes: about {}{shorter}", duration(seconds)));
    }
    Ok(followed.kernels)
}

fn duration(seconds: f64) -> String {
    if seconds < 90.0 { format!("{:.0} s", seconds.max(1.0)) } else { format!("{:.0} min", (seconds / 60.0).ceil()) }
}

/// Why it failed, with what helps; `None` if nothing says so.
fn failed(suite: &Suite, ncu: &str, followed: &Followed) -> Option<Failure> {
    if followed.silent {
        let seconds = suite.patience.as_secs();
        return Some(Failure::Input(format!("the suite said nothing under ncu for {seconds} s and was ended (--timeout gives it longer)")));
    }
    let status = status_of(followed.status);
    let known = failures::find(&followed.signs);
    if let Some(known) = known {
        let message = format!("ncu could not profile: {}", known.means);
        let failure = match status {
            Some(status) if status != 0 => Failure::Program(status, Some(message)),
            // A failure that ncu itself does not count as one.
            _ => Failure::Input(message),
        };
        return Some(Failure::Advised(Box::new(failure), failures::advice(known)));
    }
    if followed.status.is_some_and(|status| status.success()) {
        return None;
    }
    let message = format!("`{ncu}` {}{}", how(followed.status), last_words(&followed.last_words));
    Some(Failure::Program(status.unwrap_or(1), Some(message)))
}

/// Shows what was found, and passes the status of the program on.
fn judge(args: &ProfileArgs, suite: &Suite, ncu: &str, followed: &Followed, report: Option<&Path>, sink: Sink) -> Result<(), Failure> {
    let failure = failed(suite, ncu, followed);
    let Some(report) = report else {
        return Err(failure.unwrap_or_else(|| Failure::Input("ncu ended without a report".to_owned())));
    };
    // A program that fails after its kernels were profiled leaves a report all the same.
    let shown = show(args, report, sink);
    say(args, &format!("report kept in {}", report.display()));
    match failure {
        Some(failure) => Err(failure),
        None => shown,
    }
}

fn show(args: &ProfileArgs, report: &Path, sink: Sink) -> Result<(), Failure> {
    let view = NcuView { table: args.table, compare: args.compare.clone(), ..NcuView::default() };
    super::ncu::run(&NcuArgs {
        input: report.as_os_str().to_os_string(),
        view,
        kernel: None,
        id: Vec::new(),
        sort: None,
        limit: None,
        full: args.full,
        format: args.format,
        full_names: args.full_names,
        color: args.color,
        no_redact: false,
        threads: None,
        no_nvdisasm: false,
        quiet: args.quiet,
        strict: false,
        stats: None,
        sink,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        assert_eq!([duration(0.2), duration(59.6), duration(91.0), duration(600.0)], ["1 s", "60 s", "2 min", "10 min"]);
    }
}
