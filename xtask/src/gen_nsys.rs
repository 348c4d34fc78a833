//! `gen-nsys`: a large realistic Nsight Systems export of LLM decoding, in the layout of schema 3.24.
//!
//! Each step is an NVTX range around one for each layer; a layer launches a dozen kernels on the compute stream, each with its runtime call (and
//! a driver call in one of them), a step copies its token in and out on a stream of its own and waits. The same seed gives the same rows.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, Statement, params};

use crate::gen_trace::kernels::{KERNELS, Kernel};
use crate::gen_trace::rng::Rng;

#[derive(clap::Args, Clone, Debug)]
#[command(group(clap::ArgGroup::new("size").required(true).args(["mb", "steps"])))]
pub(crate) struct Options {
    /// Size of the file in megabytes (millions of bytes); the number of decode steps follows from it.
    #[arg(long)]
    mb: Option<u64>,
    /// Number of decode steps.
    #[arg(long)]
    steps: Option<u64>,
    /// Where to write the export.
    #[arg(short, long)]
    pub(crate) output: PathBuf,
    /// Decoder layers.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=1000))]
    layers: u64,
    /// Seed of everything random.
    #[arg(long, default_value_t = 20_261_129)]
    seed: u64,
}

/// What was written.
pub(crate) struct Made {
    pub(crate) bytes: u64,
    pub(crate) steps: u64,
    pub(crate) rows: u64,
}

/// Global ids hold the machine, 24 bits of process number and 24 bits of thread number.
const PID: i64 = 4242;
const PROCESS: i64 = (1 << 48) + (PID << 24);
const THREAD: i64 = PROCESS + PID;
const COMPUTE: i64 = 7;
const COPY: i64 = 14;
/// Time from the start of the session to the first event.
const START_NS: i64 = 2_500_000_000;

const TABLES: &str = "
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT, systemClockNs INTEGER);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, totalMemory INTEGER, memoryBandwidth INTEGER, smCount INTEGER,
    computeMajor INTEGER, computeMinor INTEGER, cuDevice INTEGER);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);
CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (nullStreamId INTEGER, hwId INTEGER, vmId INTEGER, processId INTEGER, deviceId INTEGER,
    contextId INTEGER);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,
    registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
    blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
    dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
    gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER,
    qmdBulkReleaseDone INTEGER, qmdPreexitDone INTEGER, qmdLastCtaDone INTEGER, graphId INTEGER, clusterX INTEGER,
    clusterY INTEGER, clusterZ INTEGER, clusterSchedulingPolicy INTEGER, maxPotentialClusterSize INTEGER, maxActiveClusters INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER,
    srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER,
    graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    syncType INTEGER NOT NULL, eventId INTEGER NOT NULL, eventSyncId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,
    color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER,
    int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER,
    jsonText TEXT);
";

/// Texts and their numbers, which are as sparse as those of a real export.
#[derive(Clone, Copy)]
enum Text {
    Launch,
    DriverLaunch,
    CopyAsync,
    StreamWait,
    IsCapturing,
    Layer,
    Main,
    Kernel(usize),
}

impl Text {
    fn id(self) -> i64 {
        match self {
            Self::Launch => 71_001,
            Self::DriverLaunch => 71_002,
            Self::CopyAsync => 71_003,
            Self::StreamWait => 71_004,
            Self::IsCapturing => 71_005,
            Self::Layer => 71_006,
            Self::Main => 28,
            Self::Kernel(at) => 1_364_000 + 17 * at as i64,
        }
    }

    fn value(self) -> String {
        match self {
            Self::Launch => "cudaLaunchKernel_v7000".to_owned(),
            Self::DriverLaunch => "cuLaunchKernelEx".to_owned(),
            Self::CopyAsync => "cudaMemcpyAsync_v3020".to_owned(),
            Self::StreamWait => "cudaStreamSynchronize_v3020".to_owned(),
            Self::IsCapturing => "cudaStreamIsCapturing_v10000".to_owned(),
            Self::Layer => "decoder_layer".to_owned(),
            Self::Main => "python3".to_owned(),
            Self::Kernel(at) => KERNELS[at].name(),
        }
    }
}

/// What one layer launches, as positions in the list of kernels, with usual times.
const LAYER: [(Kernel, i64); 12] = [
    (Kernel::Pow, 1_400),
    (Kernel::Mean, 1_900),
    (Kernel::Mul, 1_300),
    (Kernel::Gemv, 6_200),
    (Kernel::Cat, 1_800),
    (Kernel::Flash, 5_400),
    (Kernel::FlashCombine, 2_100),
    (Kernel::Gemm, 7_300),
    (Kernel::Add, 1_300),
    (Kernel::Gemv, 11_800),
    (Kernel::Silu, 1_500),
    (Kernel::Gemv, 12_400),
];

/// Statements and clocks of one recording.
struct Writer<'c> {
    kernel: Statement<'c>,
    copy: Statement<'c>,
    call: Statement<'c>,
    sync: Statement<'c>,
    range: Statement<'c>,
    rng: Rng,
    host: i64,
    device: i64,
    correlation: i64,
    rows: u64,
}

impl<'c> Writer<'c> {
    fn new(connection: &'c Connection, seed: u64) -> Result<Self> {
        let marks = |count: usize| vec!["?"; count].join(", ");
        let insert = |table: &str, count: usize| connection.prepare(&format!("INSERT INTO {table} VALUES ({})", marks(count)));
        Ok(Self {
            kernel: insert("CUPTI_ACTIVITY_KIND_KERNEL", 38)?,
            copy: insert("CUPTI_ACTIVITY_KIND_MEMCPY", 21)?,
            call: insert("CUPTI_ACTIVITY_KIND_RUNTIME", 8)?,
            sync: insert("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", 11)?,
            range: insert("NVTX_EVENTS", 19)?,
            rng: Rng::new(seed),
            host: START_NS,
            device: START_NS,
            correlation: 100,
            rows: 0,
        })
    }

    /// A call, which takes the next correlation number.
    fn call(&mut self, text: Text, class: i64, dur: i64) -> Result<i64> {
        let start = self.host + self.rng.skewed(400, 4_000);
        self.host = start + dur;
        self.correlation += 1;
        self.call.execute(params![start, self.host, class, THREAD, self.correlation, text.id(), 0, None::<i64>])?;
        self.rows += 1;
        Ok(self.correlation)
    }

    fn launch(&mut self, kernel: Kernel, usual: i64) -> Result<()> {
        let by_driver = kernel.launched_by_driver();
        let dur = self.rng.skewed(2_600, 9_000);
        let correlation = self.call(if by_driver { Text::DriverLaunch } else { Text::Launch }, i64::from(by_driver), dur)?;
        let start = (self.device + 600).max(self.host + 1_800);
        self.device = start + self.rng.skewed(usual, usual * 5 / 4);
        let at = kernel as usize;
        let (name, blocks) = (Text::Kernel(at).id(), 64 + 32 * at as i64);
        self.kernel.execute(params![
            start,
            self.device,
            0,
            1,
            None::<i64>,
            COMPUTE,
            correlation,
            PROCESS,
            name,
            name,
            name,
            1,
            0,
            kernel.registers(),
            blocks,
            1,
            1,
            128,
            1,
            1,
            1024,
            0,
            0,
            250_871_808,
            correlation,
            32_768,
            None::<i64>,
            0,
            None::<i64>,
            None::<i64>,
            None::<i64>,
            0,
            0,
            0,
            0,
            1,
            0,
            0
        ])?;
        self.rows += 1;
        Ok(())
    }

    fn copy(&mut self, kind: i64, bytes: i64) -> Result<()> {
        let dur = self.rng.skewed(3_100, 8_000);
        let correlation = self.call(Text::CopyAsync, 0, dur)?;
        let start = if kind == 2 { self.device.max(self.host) + 900 } else { self.host + 900 };
        let end = start + 1_100 + bytes / 20;
        if kind == 2 {
            self.device = end;
        }
        let (from, to) = if kind == 1 { (1, 2) } else { (2, 1) };
        let none = None::<i64>;
        self.copy.execute(params![
            start,
            end,
            0,
            1,
            none,
            COPY,
            correlation,
            PROCESS,
            bytes,
            kind,
            none,
            from,
            to,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            1
        ])?;
        self.rows += 1;
        Ok(())
    }

    fn range(&mut self, start: i64, text: Option<&str>, id: Option<i64>) -> Result<()> {
        let none = None::<i64>;
        self.range.execute(params![
            start, self.host, 59, none, none, none, text, THREAD, none, id, 0, none, none, none, none, none, none, none, none
        ])?;
        self.rows += 1;
        Ok(())
    }

    fn step(&mut self, layers: u64) -> Result<()> {
        let began = self.host + 200;
        self.host = began;
        self.copy(1, 4_096)?;
        for _ in 0..layers {
            let layer = self.host + 150;
            self.host = layer;
            self.call(Text::IsCapturing, 0, 300)?;
            for (kernel, usual) in LAYER {
                self.launch(kernel, usual)?;
            }
            self.host += 200;
            self.range(layer, None, Some(Text::Layer.id()))?;
        }
        self.launch(Kernel::ArgMax, 14_000)?;
        self.copy(2, 8)?;
        let waits = self.host + 400;
        let dur = (self.device - waits).max(0) + 2_500;
        let correlation = self.call(Text::StreamWait, 0, dur)?;
        let none = None::<i64>;
        self.sync.execute(params![waits, self.host, 0, 1, none, COPY, correlation, PROCESS, 3, 4_294_967_295_i64, none])?;
        self.rows += 1;
        self.host += self.rng.skewed(2_000, 30_000);
        self.range(began, Some("decode_step"), None)
    }
}

/// Writes an export.
pub(crate) fn generate(options: &Options) -> Result<Made> {
    if options.output.exists() {
        fs::remove_file(&options.output).with_context(|| format!("replacing {}", options.output.display()))?;
    }
    let mut connection = Connection::open(&options.output)?;
    connection.pragma_update(None, "journal_mode", "OFF")?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.execute_batch(TABLES)?;
    describe(&connection)?;
    let wanted = options.mb.unwrap_or(0) as i64 * 1_000_000;
    let transaction = connection.transaction()?;
    let size = |connection: &Connection| {
        connection.query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |row| row.get::<_, i64>(0))
    };
    let mut writer = Writer::new(&transaction, options.seed)?;
    let mut steps = 0;
    loop {
        let is_enough = match options.steps {
            Some(wanted) => steps >= wanted,
            None => steps % 16 == 0 && size(&transaction)? >= wanted,
        };
        if is_enough {
            break;
        }
        writer.step(options.layers)?;
        steps += 1;
    }
    let rows = writer.rows;
    drop(writer);
    transaction.commit()?;
    drop(connection);
    ensure!(steps > 0, "a file so small holds no step");
    Ok(Made { bytes: fs::metadata(&options.output)?.len(), steps, rows })
}

/// Texts, hardware and versions.
fn describe(connection: &Connection) -> Result<()> {
    let mut insert = connection.prepare("INSERT INTO StringIds VALUES (?, ?)")?;
    let named = [Text::Launch, Text::DriverLaunch, Text::CopyAsync, Text::StreamWait, Text::IsCapturing, Text::Layer, Text::Main];
    for text in named.into_iter().chain((0..KERNELS.len()).map(Text::Kernel)) {
        insert.execute(params![text.id(), text.value()])?;
    }
    for (name, value) in [("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"), ("EXPORT_SCHEMA_VERSION", "3.24.0")] {
        connection.execute("INSERT INTO META_DATA_EXPORT VALUES (?, ?)", params![name, value])?;
    }
    connection.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1780000000000000000, NULL, NULL, 0)", [])?;
    connection.execute("INSERT INTO TARGET_INFO_GPU VALUES (1, 0, 'NVIDIA H200', 150754820096, 4800000000000, 132, 9, 0, 0)", [])?;
    connection.execute("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 4242)", [])?;
    connection.execute("INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (7, 0, 1, 4242, 0, 1)", [])?;
    connection.execute("INSERT INTO PROCESSES VALUES (?, 4242, 'python3')", [PROCESS])?;
    connection.execute("INSERT INTO ThreadNames VALUES (?, 20, ?)", [Text::Main.id(), THREAD])?;
    Ok(())
}
