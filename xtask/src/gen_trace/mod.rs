//! `gen-trace`: large realistic Kineto traces of LLM decoding, with exact totals beside them.
//!
//! What is modelled, because readers get it wrong: launch calls with flow events and other calls with unmatched flow ends, kernels
//! whose launch came before the window, a launch whose kernel came after it, mirrored annotations, allocator records, times relative
//! to a base, one graph launch with hundreds of kernels. The same seed and options give the same bytes.

mod decoder;
mod event;
pub(crate) mod kernels;
pub(crate) mod rng;
mod sim;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use decoder::Shape;
pub(crate) use event::Layout;
use event::{EventWriter, Gap, push_minified};
use kernels::KERNELS;
use sim::{PID, Recording, SECTIONS, STREAM, Section, Sim, TID, Truth, WINDOW_START_NS};

#[derive(clap::Args, Clone, Debug)]
#[command(group(clap::ArgGroup::new("size").required(true).args(["mb", "steps"])))]
pub(crate) struct Options {
    /// Size of the JSON in megabytes (millions of bytes); the number of decode steps follows from it.
    #[arg(long)]
    pub(crate) mb: Option<u64>,
    /// Number of decode steps after the prefill.
    #[arg(long)]
    pub(crate) steps: Option<u64>,
    /// Where to write the trace; the totals go to the same path with `.truth.json` added.
    #[arg(short, long)]
    pub(crate) output: PathBuf,
    /// Record Python frames and modules.
    #[arg(long)]
    pub(crate) stack: bool,
    /// Replay each decode step as one CUDA graph.
    #[arg(long)]
    pub(crate) graph: bool,
    /// How the file is spelled.
    #[arg(long, value_enum, default_value = "classic")]
    pub(crate) layout: Layout,
    /// Also write OUTPUT.gz at this level.
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(0..=9))]
    pub(crate) gz: Option<u32>,
    /// Also write OUTPUT.zst at this level.
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(i32).range(1..=19))]
    pub(crate) zst: Option<i32>,
    /// Decoder layers.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(i64).range(1..=1000))]
    pub(crate) layers: i64,
    /// Tokens in the prompt.
    #[arg(long, default_value_t = 559, value_parser = clap::value_parser!(i64).range(2..=1_000_000))]
    pub(crate) prompt: i64,
    /// Leave out operator shapes.
    #[arg(long)]
    pub(crate) no_shapes: bool,
    /// Leave out allocator records.
    #[arg(long)]
    pub(crate) no_memory: bool,
    /// Seed of everything random.
    #[arg(long, default_value_t = 20_261_129)]
    pub(crate) seed: u64,
}

impl Options {
    /// The options `bench` uses: everything a default PyTorch recording with shapes and memory holds.
    pub(crate) fn sized(mb: u64, output: PathBuf) -> Self {
        Self {
            mb: Some(mb),
            steps: None,
            output,
            stack: false,
            graph: false,
            layout: Layout::Classic,
            gz: None,
            zst: None,
            layers: 24,
            prompt: 559,
            no_shapes: false,
            no_memory: false,
            seed: 20_261_129,
        }
    }

    fn shape(&self) -> Shape {
        Shape { layers: self.layers, prompt: self.prompt, graph: self.graph }
    }

    fn recording(&self) -> Recording {
        Recording { shapes: !self.no_shapes, memory: !self.no_memory, stack: self.stack }
    }
}

/// What was written.
pub(crate) struct Generated {
    pub(crate) steps: u64,
    pub(crate) bytes: u64,
    pub(crate) events: u64,
}

/// Writes the trace, its totals and the compressed copies asked for.
pub(crate) fn generate(options: &Options) -> Result<Generated> {
    let steps = match (options.steps, options.mb) {
        (Some(steps), _) => steps,
        (None, mb) => steps_for(options, mb.unwrap_or(1) * 1_000_000)?,
    };
    let path = &options.output;
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let mut sink = BufWriter::new(file);
    let (bytes, events, truth, end) = write_trace(options, steps, &mut sink).with_context(|| format!("cannot write {}", path.display()))?;
    sink.flush()?;
    drop(sink);
    let truth_path = with_suffix(path, ".truth.json");
    let text = serde_json::to_string_pretty(&truth_json(&truth, steps, bytes, events, end))?;
    std::fs::write(&truth_path, text + "\n").with_context(|| format!("cannot write {}", truth_path.display()))?;
    if let Some(level) = options.gz {
        compress(
            path,
            ".gz",
            |out| Ok(flate2::write::GzEncoder::new(out, flate2::Compression::new(level))),
            flate2::write::GzEncoder::finish,
        )?;
    }
    if let Some(level) = options.zst {
        compress(path, ".zst", |out| zstd::stream::write::Encoder::new(out, level), zstd::stream::write::Encoder::finish)?;
    }
    Ok(Generated { steps, bytes, events })
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

fn compress<W: Write>(
    path: &Path,
    suffix: &str,
    open: impl FnOnce(BufWriter<File>) -> io::Result<W>,
    close: impl FnOnce(W) -> io::Result<BufWriter<File>>,
) -> Result<()> {
    let target = with_suffix(path, suffix);
    let run = || -> io::Result<()> {
        let mut encoder = open(BufWriter::new(File::create(&target)?))?;
        let mut input = BufReader::with_capacity(1 << 20, File::open(path)?);
        let mut chunk = vec![0; 1 << 20];
        loop {
            let read = input.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            encoder.write_all(&chunk[..read])?;
        }
        close(encoder)?.flush()
    };
    run().with_context(|| format!("cannot write {}", target.display()))
}

/// The number of decode steps that comes nearest to `bytes`, from the sizes of two short runs.
fn steps_for(options: &Options, bytes: u64) -> Result<u64> {
    let size = |steps| write_trace(options, steps, &mut io::sink()).map(|written| written.0);
    let (short, long) = (size(2)?, size(6)?);
    let step = (long - short) / 4;
    ensure!(step > 0, "a decode step has no size");
    let rest = bytes.saturating_sub(short);
    Ok((2 + (rest + step / 2) / step).max(1))
}

/// Writes the whole trace and returns its bytes, events, totals and the time of its last event.
fn write_trace(options: &Options, steps: u64, sink: &mut dyn Write) -> io::Result<(u64, u64, Truth, i64)> {
    let mut writer = EventWriter::new(sink, options.layout, options.seed);
    let name = options.output.file_name().map_or_else(|| "trace".into(), |name| name.to_string_lossy().replace(['"', '\\'], "_"));
    // The shuffled layout has its envelope after the events too: no reader may need a header.
    let late_header = options.layout == Layout::Shuffled;
    let header = header(options);
    let header = if late_header { String::new() } else { format!("{header},") };
    envelope(&mut writer, &format!("\n{{\n  {header}\n  \"traceEvents\": ["));
    let mut truth = Truth::default();
    let mut end = 0;
    for section in SECTIONS {
        if (section == Section::Python && !options.stack) || (section == Section::Memory && options.no_memory) {
            continue;
        }
        let mut sim = Sim::new(options.recording(), section, options.seed, &mut writer);
        decoder::run(&mut sim, &options.shape(), steps);
        end = sim.now.max(sim.gpu_free_at);
        truth = sim.truth;
    }
    closing_events(&mut writer, end);
    let late = if late_header { format!(",\n  {}", self::header(options)) } else { String::new() };
    envelope(&mut writer, &format!("\n  ]{late},\n  \"traceName\": \"{name}\"\n}}\n"));
    writer.finish()?;
    Ok((writer.bytes(), writer.events(), truth, end))
}

fn envelope(writer: &mut EventWriter<'_>, text: &str) {
    if writer.layout() == Layout::Minified {
        let mut minified = Vec::new();
        push_minified(&mut minified, text.as_bytes());
        writer.raw(&minified);
    } else {
        writer.raw(text.as_bytes());
    }
}

fn header(options: &Options) -> String {
    let flag = |on: bool| u8::from(on);
    format!(
        r#""schemaVersion": 1,
  "deviceProperties": [
    {{
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936,
      "computeMajor": 9, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 132
    , "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472
    }}
  ],
  "cupti_version": 24,
  "cuda_runtime_version": 12060,
  "with_flops": 0,
  "record_shapes": {},
  "cuda_driver_version": 12080,
  "profile_memory": {},
  "with_stack": {},
  "trace_id": "D74EA3FAC1814011AB8FC4FC00427B48",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1751410836000000000"#,
        flag(!options.no_shapes),
        flag(!options.no_memory),
        flag(options.stack)
    )
}

/// Metadata, the profiler's own span and the two closing instants.
fn closing_events(w: &mut EventWriter<'_>, end: i64) {
    let mut metadata = |name: &str, pid: i64, tid: i64, key: &'static str, value: &str| {
        w.text("name", Gap::Space, name.as_bytes());
        w.text("ph", Gap::Space, b"M");
        w.micros("ts", Gap::Space, WINDOW_START_NS);
        w.int("pid", Gap::Space, pid);
        w.int("tid", Gap::Space, tid);
        w.args();
        w.json(key, Gap::Space, value.as_bytes());
        w.end();
    };
    metadata("process_name", PID, 0, "name", "\"python3\"");
    metadata("process_labels", PID, 0, "labels", "\"CPU\"");
    metadata("process_sort_index", PID, 0, "sort_index", &PID.to_string());
    for device in 0..8 {
        metadata("process_name", device, 0, "name", "\"python3\"");
        metadata("process_labels", device, 0, "labels", &format!("\"GPU {device}\""));
        metadata("process_sort_index", device, 0, "sort_index", &(16_777_216 + device).to_string());
    }
    metadata("thread_name", 0, STREAM, "name", &format!("\"stream {STREAM} \""));
    metadata("thread_sort_index", 0, STREAM, "sort_index", &STREAM.to_string());
    metadata("thread_name", PID, TID, "name", &format!("\"thread {TID} (python3)\""));
    metadata("thread_sort_index", PID, TID, "sort_index", &TID.to_string());

    w.text("ph", Gap::Space, b"X");
    w.text("cat", Gap::Space, b"Trace");
    w.micros("ts", Gap::Space, WINDOW_START_NS);
    w.micros("dur", Gap::Space, end - WINDOW_START_NS);
    w.text("pid", Gap::Line, b"Spans");
    w.text("tid", Gap::Space, b"PyTorch Profiler");
    w.text("name", Gap::Line, b"PyTorch Profiler (0)");
    w.args();
    w.int("Op count", Gap::Space, 0);
    w.end();
    for (name, pid, tid, at) in
        [("Iteration Start: PyTorch Profiler", "Traces", "Trace PyTorch Profiler", WINDOW_START_NS), ("Record Window End", "", "", end)]
    {
        w.text("name", Gap::Space, name.as_bytes());
        w.text("ph", Gap::Space, b"i");
        w.text("s", Gap::Space, b"g");
        w.text("pid", Gap::Line, pid.as_bytes());
        w.text("tid", Gap::Space, tid.as_bytes());
        w.micros("ts", Gap::Space, at);
        w.end();
    }
}

fn truth_json(truth: &Truth, steps: u64, bytes: u64, events: u64, end: i64) -> Value {
    let kernels: Map<String, Value> = KERNELS
        .iter()
        .map(|kernel| (kernel.name(), truth.kernels[*kernel as usize]))
        .filter(|(_, (calls, _))| *calls > 0)
        .map(|(name, (calls, ns))| (name, json!({ "calls": calls, "ns": ns })))
        .collect();
    json!({
        "bytes": bytes,
        "events": events,
        "steps": steps,
        "window_ns": end - WINDOW_START_NS,
        "counts": truth.counts,
        "kernel_ns": truth.kernel_ns,
        "gpu_mem_ns": truth.gpu_mem_ns,
        "gpu_busy_ns": truth.gpu_busy_ns,
        "kernel_without_launch": truth.kernel_without_launch,
        "launch_without_kernel": truth.launch_without_kernel,
        "kernels": kernels,
    })
}

#[cfg(test)]
mod tests;
