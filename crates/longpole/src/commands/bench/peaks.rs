//! `longpole bench peaks`

use std::ffi::OsStr;
use std::io::BufReader;
use std::path::Path;
use std::process::ChildStdout;

use longpole_analysis::PeakKind;
use longpole_bench::protocol::{Device, Event, Events, Line, Peak, PeakKind as Measured, ReadError};
use longpole_report::{BenchPeak, BenchPeaks, redact_string, views, wire};
use serde_json::{Map, Value, json};

use super::print;
use super::work::{PEAKS, suite};
use crate::args::BenchPeaksArgs;
use crate::bench::bar::Bar;
use crate::bench::child::{Next, Running, Said, how};
use crate::bench::suite::{Suite, last_words};
use crate::bench::{interrupt, store};
use crate::exit::Failure;
use crate::target::refuse_taken;

/// A rate beyond this is none of any device.
const MOST: f64 = 1e19;

/// Peaks that are taken, and faults that are counted: a suite that never ends must not fill the memory.
const MOST_PEAKS: usize = 1000;

pub(super) fn run(args: &BenchPeaksArgs) -> Result<(), Failure> {
    let suite = suite(&args.suite)?;
    let bar = Bar::new(0, args.out.quiet);
    // What was measured before is kept, unless it is named.
    let path = args.output.as_deref().unwrap_or(Path::new(PEAKS));
    if args.output.is_none() {
        refuse_taken(path)?;
    }
    let unwritable = |error: std::io::Error| Failure::Usage(format!("`{}` cannot be written: {error}", path.display()));
    store::probe(path).map_err(unwritable)?;
    let Found { device, peaks, faults } = measure(&suite, &bar)?;
    drop(bar);
    let text = format!("{:#}\n", file(device.as_ref(), &peaks));
    // What was measured is shown even where it cannot be kept.
    let kept = store::write(path, text.as_bytes()).map_err(unwritable);
    let mut shown = BenchPeaks {
        device: device.as_ref().map(|device| device.name.clone()),
        driver: device.as_ref().and_then(|device| device.driver.clone()),
        cache_bytes: device.as_ref().and_then(|device| device.l2_bytes),
        rows: peaks.iter().map(row).collect(),
        path: kept.is_ok().then(|| path.display().to_string()),
        is_usual: path == Path::new(PEAKS),
    };
    shown.device.iter_mut().chain(&mut shown.driver).chain(&mut shown.path).for_each(redact_string);
    print(&args.out, || views::bench_peaks(&shown), || views::bench_peaks_table(&shown), &wire::bench_peaks(&shown))?;
    kept?;
    match faults.split_first() {
        None => Ok(()),
        Some((first, [])) => Err(Failure::Check(format!("not all peaks are there: {first}"))),
        Some((first, others)) => Err(Failure::Check(format!("not all peaks are there: {first}; and {} more faults", others.len()))),
    }
}

/// The best of each kind and type: a peak is what was reached.
fn best(peaks: Vec<Peak>) -> Vec<Peak> {
    let mut kept: Vec<Peak> = Vec::new();
    for peak in peaks {
        match kept.iter_mut().find(|known| (known.kind, &known.dtype) == (peak.kind, &peak.dtype)) {
            Some(known) => known.value = known.value.max(peak.value),
            None => kept.push(peak),
        }
    }
    kept
}

fn row(peak: &Peak) -> BenchPeak {
    let kind = match peak.kind {
        Measured::CopyBytesPerS => "copy_bytes_per_s",
        Measured::FlopsPerS => "flops_per_s",
    };
    let mut dtype = peak.dtype.clone();
    dtype.iter_mut().for_each(redact_string);
    BenchPeak { kind, dtype, value: peak.value }
}

/// The object that `--peaks` reads.
fn file(device: Option<&Device>, peaks: &[Peak]) -> Value {
    let mut object = Map::new();
    if let Some(device) = device {
        object.insert("name".to_owned(), json!(device.name));
    }
    let of = |kind: Measured| peaks.iter().filter(move |peak| peak.kind == kind);
    let rate = |peak: &Peak| peak.value as u64;
    if let Some(rate) = of(Measured::CopyBytesPerS).map(rate).next() {
        object.insert("memory_bytes_per_s".to_owned(), json!(rate));
    }
    if let Some(bytes) = device.and_then(|device| device.l2_bytes).filter(|&bytes| bytes > 0) {
        object.insert("cache_bytes".to_owned(), json!(bytes));
    }
    // Types that the table of peaks does not know could not be read again.
    let kinds = PeakKind::ALL.into_iter().filter_map(|kind| {
        let found = of(Measured::FlopsPerS).find(|peak| peak.dtype.as_deref() == Some(kind.name()))?;
        Some((kind.name().to_owned(), json!(rate(found))))
    });
    let kinds: Map<String, Value> = kinds.collect();
    if !kinds.is_empty() {
        object.insert("flops_per_s".to_owned(), Value::Object(kinds));
    }
    Value::Object(object)
}

/// What a suite's `peaks` says.
struct Found {
    device: Option<Device>,
    peaks: Vec<Peak>,
    /// What cannot be taken.
    faults: Vec<String>,
}

/// Asks the suite.
fn measure(suite: &Suite, bar: &Bar) -> Result<Found, Failure> {
    let name = suite.name();
    let read = |stdout: BufReader<ChildStdout>, take: &dyn Fn(Result<Line, ReadError>) -> bool| {
        for line in Events::new(stdout) {
            if !take(line) {
                break;
            }
        }
    };
    let mut command = suite.command(["peaks", "--json-lines"].map(OsStr::new));
    let mut running =
        Running::start(&mut command, read).map_err(|error| Failure::Input(format!("the suite `{name}` cannot be started: {error}")))?;
    let (mut device, mut peaks, mut faults) = (None, Vec::new(), Vec::new());
    bar.say("measuring peaks");
    let fault = |faults: &mut Vec<String>, what: String| {
        bar.line(&what);
        if faults.len() < MOST_PEAKS {
            faults.push(what);
        }
    };
    loop {
        match running.next(suite.patience) {
            Next::Said(Said::Output(Ok(Line::Event(event)))) => match *event {
                Event::Device { device: found } => device = Some(found),
                Event::Peak(peak) if (1.0..MOST).contains(&peak.value) && peaks.len() < MOST_PEAKS => peaks.push(peak),
                Event::Peak(peak) => {
                    let shown = if peak.value < MOST { peak.value.to_string() } else { format!("{:e}", peak.value) };
                    fault(&mut faults, format!("{shown} a second is no peak of any device"));
                }
                _ => {}
            },
            Next::Said(Said::Output(Ok(Line::Text(line))) | Said::Complaint(line)) => bar.line(&line),
            Next::Said(Said::Output(Ok(Line::Unknown(_)))) => {}
            Next::Said(Said::Output(Err(error))) => fault(&mut faults, format!("the suite breaks the protocol: {error}")),
            Next::Over => break,
            Next::Silent => {
                running.stop();
                return Err(Failure::Input(format!("the suite `{name}` said nothing for {} s and was ended", suite.patience.as_secs())));
            }
            Next::Interrupted(signal) => {
                running.leave();
                interrupt::end(signal);
            }
        }
    }
    let status = running.status();
    let words = last_words(&running.last_words());
    if !status.is_some_and(|status| status.success()) {
        return Err(Failure::Input(format!("`{name} peaks` {}{words}", how(status))));
    }
    if peaks.is_empty() {
        let because = faults.first().map_or_else(|| " (its `peaks` command is optional)".to_owned(), |fault| format!(": {fault}"));
        return Err(Failure::Input(format!("the suite `{name}` measures no peaks{because}{words}")));
    }
    Ok(Found { device, peaks: best(peaks), faults })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_holds_what_its_reader_knows() {
        let device = Device { name: "x".to_owned(), l2_bytes: Some(7), ..Device::default() };
        let peak = |kind, dtype: Option<&str>, value| Peak { kind, dtype: dtype.map(str::to_owned), value };
        let peaks = [
            peak(Measured::CopyBytesPerS, None, 4.3e12),
            peak(Measured::FlopsPerS, Some("bf16"), 7.5e14),
            peak(Measured::CopyBytesPerS, None, 4.0e12),
            peak(Measured::FlopsPerS, Some("odd"), 1e15),
            peak(Measured::FlopsPerS, Some("bf16"), 7.6e14),
        ];
        let peaks = best(peaks.into());
        assert_eq!(peaks.iter().map(|peak| peak.value).collect::<Vec<_>>(), [4.3e12, 7.6e14, 1e15], "the best of each, once");
        assert_eq!(
            file(Some(&device), &peaks),
            json!({ "name": "x", "memory_bytes_per_s": 4_300_000_000_000_u64, "cache_bytes": 7, "flops_per_s": { "bf16": 760_000_000_000_000_u64 } })
        );
        assert_eq!(file(None, &[]), json!({}));
    }
}
