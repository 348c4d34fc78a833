//! `bench`: how far `longpole ops` is from the least work its input asks for.
//!
//! Absolute times say little on a shared machine, so every figure is a ratio of two things measured in the same run, alternating, on
//! the same bytes. Missing a target is reported, not an error: a benchmark is not a test.

mod child;
mod floor;
mod masks;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::gen_trace::{self, with_suffix};
use floor::Totals;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Size of the largest trace in megabytes; a tenth and a hundredth of it are measured too.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    mb: u64,
    /// Threads of the scan and of longpole.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
    /// Measurements of each thing.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Where the generated traces are kept for the next time.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Measure this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// A generated trace and what its generator says of it.
struct Trace {
    path: PathBuf,
    bytes: u64,
    events: u64,
    device_ns: i64,
}

/// Measurements of one thing, in nanoseconds.
#[derive(Default)]
struct Times(Vec<u64>);

impl Times {
    fn best(&self) -> f64 {
        self.0.iter().min().map_or(f64::NAN, |ns| *ns as f64)
    }

    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        match (sorted.len() / 2, sorted.len() % 2) {
            (_, _) if sorted.is_empty() => f64::NAN,
            (middle, 1) => sorted[middle] as f64,
            (middle, _) => f64::midpoint(sorted[middle - 1] as f64, sorted[middle] as f64),
        }
    }
}

/// Everything measured on one trace.
#[derive(Default)]
struct Measured {
    floor: Times,
    wall: Times,
    cpu: Times,
    peak_heap_bytes: Option<u64>,
    peak_rss_bytes: u64,
    events: Option<u64>,
    device_ns: Option<i64>,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let directory = options.keep.clone().unwrap_or_else(|| root.join("target/bench"));
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let binary = match &options.binary {
        Some(binary) => Some(binary.clone()),
        None => build(root),
    };
    let mut sizes = vec![(options.mb / 100).max(1), (options.mb / 10).max(1), options.mb];
    sizes.dedup();
    let traces = sizes.iter().map(|mb| trace(&directory, *mb, *mb == options.mb)).collect::<Result<Vec<_>>>()?;
    println!("{} runs of each, alternating, {} threads; ratios of medians decide", options.runs, options.threads);
    let mut broken = None;
    let mut all = Vec::new();
    for trace in &traces {
        let binary = binary.as_deref().filter(|_| broken.is_none());
        all.push(measure(trace, binary, options, &directory, &mut broken)?);
    }
    let (Some(largest), Some(measured)) = (traces.last(), all.last()) else { bail!("no trace to measure") };
    println!("\n{} ({:.1} MB, {} events)", largest.path.display(), largest.bytes as f64 / 1e6, largest.events);
    row("structural scan (the floor)", &measured.floor, largest.bytes);
    let inflate = measure_inflate(largest, options.runs)?;
    row("inflate .gz alone, one thread", &inflate, largest.bytes);
    let Some(binary) = binary.filter(|_| broken.is_none() && !measured.wall.0.is_empty()) else {
        println!("\nlongpole was not measured: {}", broken.as_deref().unwrap_or("it could not be built (see above)"));
        return Ok(());
    };
    row("longpole ops, wall", &measured.wall, largest.bytes);
    row("longpole ops, CPU", &measured.cpu, largest.bytes);
    let mut compressed = Times::default();
    for _ in 0..options.runs {
        compressed.0.push(ops(&binary, &with_suffix(&largest.path, ".gz"), options.threads, &directory)?.wall_ns);
    }
    row("longpole ops on .gz, wall", &compressed, largest.bytes);
    println!(
        "  peak memory: {} heap, {:.1} MB resident",
        measured.peak_heap_bytes.map_or("unknown".to_owned(), megabytes),
        measured.peak_rss_bytes as f64 / 1e6
    );

    println!("\n{:<44} {:>8} {:>8}  target", "ratio", "median", "best");
    let ratio = |name: &str, median: f64, best: f64, target: f64| {
        let verdict = if median.is_nan() {
            "unknown"
        } else if median <= target {
            "met"
        } else {
            "MISSED"
        };
        println!("{name:<44} {median:>8.2} {best:>8.2}  at most {target:.2}: {verdict}");
    };
    let floor = &measured.floor;
    ratio("wall / scan (goal 2)", measured.wall.median() / floor.median(), measured.wall.best() / floor.best(), 3.0);
    let heap = measured.peak_heap_bytes.map_or(f64::NAN, |peak| peak as f64 / largest.bytes as f64);
    ratio("peak heap / size", heap, heap, 0.35);
    ratio(
        ".gz wall / ((inflate alone + CPU of plain) / 2)",
        compressed.median() / f64::midpoint(inflate.median(), measured.cpu.median()),
        compressed.best() / f64::midpoint(inflate.best(), measured.cpu.best()),
        1.25,
    );
    for pair in traces.iter().zip(&all).collect::<Vec<_>>().windows(2) {
        let [(small, of_small), (large, of_large)] = pair else { continue };
        let name = format!("wall a byte, {:.0} MB against {:.0} MB", large.bytes as f64 / 1e6, small.bytes as f64 / 1e6);
        let scale = small.bytes as f64 / large.bytes as f64;
        ratio(&name, of_large.wall.median() / of_small.wall.median() * scale, of_large.wall.best() / of_small.wall.best() * scale, 1.25);
    }
    println!();
    for (trace, measured) in traces.iter().zip(&all) {
        let name = trace.path.file_name().unwrap_or_default().to_string_lossy();
        println!("{name}: {}", correctness(trace, measured));
    }
    Ok(())
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn row(name: &str, times: &Times, bytes: u64) {
    let rate = bytes as f64 / times.median();
    println!("  {name:<32} median {:>7.3} s, best {:>7.3} s, {rate:>5.2} GB/s", times.median() / 1e9, times.best() / 1e9);
}

fn correctness(trace: &Trace, measured: &Measured) -> String {
    match (measured.events, measured.device_ns) {
        (Some(events), Some(device_ns)) if events == trace.events && device_ns == trace.device_ns => {
            format!("{events} events and {device_ns} ns of device work, as generated")
        }
        (events, device_ns) => {
            format!("WRONG: {events:?} events and {device_ns:?} ns of device work, generated {} and {} ns", trace.events, trace.device_ns)
        }
    }
}

/// Builds the program in release mode. Cargo's own messages tell what went wrong, if anything did.
pub(crate) fn build(root: &Path) -> Option<PathBuf> {
    let built = Command::new(cargo()).args(["build", "--release", "--locked", "--package", "longpole"]).current_dir(root).status();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target));
    let binary = target.join("release").join(format!("longpole{}", std::env::consts::EXE_SUFFIX));
    matches!(built, Ok(status) if status.success() && binary.exists()).then_some(binary)
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Generates the trace, or takes the one that is there when its totals are beside it and its size is theirs.
fn trace(directory: &Path, mb: u64, gz: bool) -> Result<Trace> {
    let path = directory.join(format!("decode-{mb}mb.json"));
    let truth_path = with_suffix(&path, ".truth.json");
    let read = || -> Option<Value> {
        let truth: Value = serde_json::from_slice(&std::fs::read(&truth_path).ok()?).ok()?;
        let size = std::fs::metadata(&path).ok()?.len();
        let compressed = !gz || with_suffix(&path, ".gz").exists();
        (truth["bytes"].as_u64()? == size && compressed).then_some(truth)
    };
    let truth = if let Some(truth) = read() {
        truth
    } else {
        let started = Instant::now();
        gen_trace::generate(&gen_trace::Options { gz: gz.then_some(6), ..gen_trace::Options::sized(mb, path.clone()) })?;
        println!("generated {} in {:.1} s", path.display(), started.elapsed().as_secs_f64());
        read().with_context(|| format!("{} does not fit the trace beside it", truth_path.display()))?
    };
    let number = |key: &str| truth[key].as_u64().with_context(|| format!("{} has no {key}", truth_path.display()));
    Ok(Trace { bytes: number("bytes")?, events: number("events")?, device_ns: (number("kernel_ns")? + number("gpu_mem_ns")?) as i64, path })
}

/// Alternates the floor and longpole on one trace, so that whatever else the machine does hits both.
fn measure(trace: &Trace, binary: Option<&Path>, options: &Options, directory: &Path, broken: &mut Option<String>) -> Result<Measured> {
    let mut measured = Measured::default();
    // The first scan brings the file into memory and is not measured.
    let (_, totals) = scan(&trace.path, options.threads)?;
    let expected = Totals { events: trace.events, device_ns: trace.device_ns };
    if totals != expected {
        bail!("the scan of {} is wrong: {totals:?} instead of {expected:?}", trace.path.display());
    }
    for _ in 0..options.runs {
        measured.floor.0.push(scan(&trace.path, options.threads)?.0);
        let Some(binary) = binary.filter(|_| broken.is_none()) else { continue };
        match ops(binary, &trace.path, options.threads, directory) {
            Ok(run) => {
                measured.wall.0.push(run.wall_ns);
                measured.cpu.0.push(run.cpu_ns);
                measured.peak_rss_bytes = measured.peak_rss_bytes.max(run.peak_rss_bytes);
                let stat = |key: &str| run.stats.as_ref().and_then(|stats| stats[key].as_u64());
                measured.peak_heap_bytes = measured.peak_heap_bytes.max(stat("peak_heap_bytes"));
            }
            Err(error) => *broken = Some(format!("{error:#}")),
        }
    }
    if !measured.wall.0.is_empty() {
        let printed: Value = serde_json::from_slice(&std::fs::read(directory.join(OUTPUT))?).unwrap_or_default();
        measured.events = printed["source"]["events"].as_u64();
        measured.device_ns = printed["ops"].as_array().map(|rows| rows.iter().filter_map(|row| row["self_cuda_ns"].as_i64()).sum());
    }
    Ok(measured)
}

/// Where longpole's standard output goes while it is measured.
const OUTPUT: &str = "ops.json";

fn ops(binary: &Path, trace: &Path, threads: u64, directory: &Path) -> Result<child::Run> {
    let trace = trace.to_string_lossy();
    child::run(binary, &["ops", &trace, "--threads", &threads.to_string(), "--json", "--quiet", "--stats=json"], &directory.join(OUTPUT))
}

/// One scan of the file as it is mapped anew, page faults included: a reader has to pay those as well.
fn scan(path: &Path, threads: u64) -> Result<(u64, Totals)> {
    let started = Instant::now();
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    // SAFETY: the map is read only and the generated file is not changed while the benchmark runs.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    let totals = floor::scan(&map, threads as usize);
    drop(map);
    Ok((started.elapsed().as_nanos() as u64, totals))
}

/// Decompression into a buffer that is thrown away.
fn measure_inflate(trace: &Trace, runs: u64) -> Result<Times> {
    let path = with_suffix(&trace.path, ".gz");
    let compressed = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut times = Times::default();
    let mut buffer = vec![0; 1 << 18];
    for _ in 0..runs {
        let started = Instant::now();
        let mut decoder = flate2::bufread::MultiGzDecoder::new(compressed.as_slice());
        let mut bytes = 0;
        loop {
            let read = decoder.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            bytes += read as u64;
        }
        times.0.push(started.elapsed().as_nanos() as u64);
        if bytes != trace.bytes {
            bail!("{} holds {bytes} bytes instead of {}", path.display(), trace.bytes);
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_bests() {
        assert!((Times(vec![3, 1, 2]).median() - 2.0).abs() < 1e-9);
        assert!((Times(vec![4, 1, 2, 3]).median() - 2.5).abs() < 1e-9);
        assert!((Times(vec![4, 1, 2, 3]).best() - 1.0).abs() < 1e-9);
        assert!(Times::default().median().is_nan() && Times::default().best().is_nan());
    }

    #[test]
    fn the_scan_agrees_with_the_generator_in_every_layout() {
        use clap::ValueEnum;
        let directory = std::env::temp_dir().join(format!("xtask-scan-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for layout in gen_trace::Layout::value_variants() {
            let path = directory.join("trace.json");
            let options = gen_trace::Options {
                mb: None,
                steps: Some(2),
                layers: 3,
                stack: true,
                graph: true,
                layout: *layout,
                ..gen_trace::Options::sized(1, path.clone())
            };
            gen_trace::generate(&options).unwrap();
            let truth: Value = serde_json::from_slice(&std::fs::read(with_suffix(&path, ".truth.json")).unwrap()).unwrap();
            for threads in [1, 2, 3, 7] {
                let (_, totals) = scan(&path, threads).unwrap();
                assert_eq!(totals.events, truth["events"].as_u64().unwrap(), "{layout:?}, {threads} threads");
                assert_eq!(totals.device_ns, truth["gpu_busy_ns"].as_i64().unwrap(), "{layout:?}, {threads} threads");
            }
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
