//! What a recording says of itself: who was recorded, on what, what was lost or refused, and what recording cost.

use longpole_recording::{Clock, Cost, Device, Dropped, Family, Fault, FaultKind, Process, Recording, Refused, StringId};
use longpole_trace::{DeviceProperties, Ns, ProblemCode, Problems, Versions};

/// Clocks that are further apart are of different kinds; nearer ones differ by what the wall clock was set right since the system started.
const SAME_KIND_NS: i64 = 1_000_000_000;
/// Drift that is said: a wall clock that is being set right runs up to 500 ppm off.
const DRIFT_NS: i64 = 1_000_000;

/// A process that was recorded.
#[derive(Debug)]
pub(super) struct About {
    pub(super) pid: u32,
    pub(super) name: Option<String>,
    pub(super) process: Process,
    pub(super) devices: Vec<(i64, DeviceProperties, Option<u128>)>,
    /// What times lack to be absolute.
    pub(super) shift: i64,
    /// What a recording that has nothing else says of why, and what to do.
    pub(super) refused: Option<(String, &'static str)>,
}

impl About {
    /// Reads it, and adds what is to be said of the recording to `problems`.
    pub(super) fn read(recording: &mut Recording<'_>, problems: &mut Problems) -> Self {
        let pid = recording.header.pid;
        let process = recording.records::<Process>().first().copied().unwrap_or_default();
        let text = |recording: &Recording<'_>, id: StringId| {
            let text = recording.strings.text(id)?;
            Some(text.chars().take(256).collect::<String>())
        };
        let name = text(recording, process.executable);
        let devices = recording.records::<Device>();
        let devices = devices.iter().map(|device| properties(device, text(recording, device.name))).collect();
        let clocks = recording.records::<Clock>();
        let who = who(pid, name.as_deref());
        let mut this = Self { pid, name, process, devices, shift: shift(&clocks), refused: None };
        note_drift(&clocks, problems);
        for loss in recording.records::<Dropped>() {
            let what = Family::from_number(loss.family).map_or("records", Family::plural);
            let count = loss.count;
            problems.add_many(ProblemCode::DroppedRecords, count, None, || Some(format!("{count} {what}: {}", cause_of_loss(loss.reason))));
        }
        if let Some(refused) = recording.records::<Refused>().first() {
            let (why, hint) = explain_refusal(refused.reason);
            let detail = text(recording, refused.detail).map_or_else(String::new, |detail| format!(" ({detail})"));
            let code = if refused.code == 0 { String::new() } else { format!(", CUPTI's error {}", refused.code) };
            problems.add(ProblemCode::CaptureRefused, None, || Some(format!("{who}: {why}{detail}{code}")));
            problems.note_hint(ProblemCode::CaptureRefused, hint);
            this.refused = Some((format!("{why}{detail}{code}"), hint));
        } else if !recording.has_end() && !recording.faults.iter().any(|fault| fault.kind == FaultKind::Cut) {
            problems.add(ProblemCode::RecordingCut, None, || Some(format!("{who} was killed, or did not end yet")));
        }
        note_cost(recording, problems);
        this
    }

    /// Versions, as far as the process says.
    pub(super) fn versions(&self) -> Versions {
        let packed = |version: Option<u32>| version.map(|version| format!("{}.{}", version / 1000, version % 1000 / 10));
        Versions {
            cuda_runtime: packed(self.process.cuda_runtime),
            cuda_driver: packed(self.process.cuda_driver),
            cupti: self.process.cupti.map(|version| version.to_string()),
            ..Versions::default()
        }
    }
}

/// A process in a sentence.
fn who(pid: u32, name: Option<&str>) -> String {
    name.map_or_else(|| format!("process {pid}"), |name| format!("process {pid} ({name})"))
}

fn properties(device: &Device, name: Option<String>) -> (i64, DeviceProperties, Option<u128>) {
    // Memory of a GPU moves two bits a clock on each line, as CUDA's own samples reckon it.
    let bytes_a_clock = device.memory_bus_bits.map(|bits| u64::from(bits) / 8 * 2);
    let clock_hz = device.memory_clock_khz.filter(|clock| *clock > 0).map(|clock| u64::from(clock) * 1000);
    let properties = DeviceProperties {
        peak_memory_bytes_per_s: clock_hz.zip(bytes_a_clock).map(|(clock, bytes)| clock.saturating_mul(bytes)).filter(|peak| *peak > 0),
        name,
        memory_bytes: device.memory_bytes,
        sm_count: device.sm_count,
        compute_capability: device.compute_major.zip(device.compute_minor),
        max_threads_per_sm: device.max_threads_per_sm,
        registers_per_sm: device.registers_per_sm,
        shared_bytes_per_sm: device.shared_bytes_per_sm,
        warp_size: device.warp_size,
    };
    let uuid = device.uuid_high.zip(device.uuid_low).map(|(high, low)| u128::from(high) << 64 | u128::from(low));
    (i64::from(device.device), properties, uuid)
}

/// Wall clock less CUPTI's clock.
fn offset(clock: &Clock) -> i64 {
    clock.realtime.cast_signed().saturating_sub(clock.cupti.cast_signed())
}

/// CUPTI's clock counts from 1970 with current drivers, and from the start of the system with old ones.
fn shift(clocks: &[Clock]) -> i64 {
    clocks.first().map(offset).filter(|offset| offset.saturating_abs() > SAME_KIND_NS).unwrap_or(0)
}

fn note_drift(clocks: &[Clock], problems: &mut Problems) {
    let (Some(first), Some(last)) = (clocks.first(), clocks.last()) else { return };
    let drift = offset(last).saturating_sub(offset(first)).saturating_abs();
    let uncertain = first.uncertainty.saturating_add(last.uncertainty);
    if drift > DRIFT_NS && drift.unsigned_abs() > uncertain {
        problems.add(ProblemCode::ClockDrift, None, || None);
        problems.note_time(ProblemCode::ClockDrift, Ns(drift));
    }
}

fn note_cost(recording: &mut Recording<'_>, problems: &mut Problems) {
    let Some(cost) = recording.records::<Cost>().last().copied() else { return };
    let each = cost.callback_ns.checked_div(cost.callbacks);
    problems.add(ProblemCode::RecorderCost, None, || {
        let each = each.map_or_else(String::new, |each| format!("{each} ns each of {} calls, ", cost.callbacks));
        let megabytes = cost.bytes.div_ceil(100_000);
        Some(format!(
            "{each}{} ms to begin and to end; {} ms on its own thread for {}.{} MB",
            cost.setup_ns.saturating_add(cost.exit_ns).div_ceil(1_000_000),
            cost.page_ns.div_ceil(1_000_000),
            megabytes / 10,
            megabytes % 10
        ))
    });
    // Beginning and ending lie before the first event and behind the last, and so outside of the wall.
    problems.note_time(ProblemCode::RecorderCost, Ns(i64::try_from(cost.callback_ns).unwrap_or(i64::MAX)));
}

/// What could not be read of a recording.
pub(super) fn note_faults(faults: &[Fault], who_pid: Option<(u32, Option<&str>)>, problems: &mut Problems) {
    for fault in faults {
        let example = || Some(who_pid.map_or_else(|| fault.to_string(), |(pid, name)| format!("{}: {fault}", who(pid, name))));
        let code = match fault.kind {
            // Not `Truncated`: records are written as they come, so what is there is whole up to a moment.
            FaultKind::Cut => ProblemCode::RecordingCut,
            FaultKind::Damaged => ProblemCode::UnreadBytes,
            FaultKind::NewerVersion(_) | FaultKind::UnknownKind(_) => ProblemCode::NewerRecording,
        };
        problems.add(code, Some(fault.offset), example);
    }
}

fn cause_of_loss(reason: u8) -> &'static str {
    match reason {
        Dropped::CUPTI => "CUPTI had no free buffer",
        Dropped::QUEUE => "the recorder could not keep up",
        Dropped::WRITE => "they could not be written, as on a full disk",
        Dropped::UNKNOWN_KIND => "the recorder does not know their kind",
        Dropped::DAMAGED => "CUPTI's buffers were damaged",
        _ => "the recorder does not say why",
    }
}

/// Why a process could not be recorded ([`Refused::reason`]), and what to do.
pub fn explain_refusal(reason: u8) -> (&'static str, &'static str) {
    match reason {
        Refused::NO_CUPTI => (
            "no CUPTI library was found",
            "install one (pip install nvidia-cuda-cupti-cu12, or the CUDA toolkit), or name it: LONGPOLE_LIBCUPTI=/path/to/libcupti.so",
        ),
        Refused::SUBSCRIBER_TAKEN => (
            "another profiler holds CUPTI's only subscription",
            "let the program not profile itself (torch.profiler, nsys, ncu, KINETO_USE_DAEMON) while it is recorded",
        ),
        Refused::NO_DRIVER => ("there is no CUDA driver or no device", "run where `longpole doctor` finds a GPU"),
        Refused::VERSION => (
            "CUPTI does not fit the driver",
            "name a CUPTI of the driver's CUDA version or an older one: LONGPOLE_LIBCUPTI=/path/to/libcupti.so; `longpole doctor` names the version",
        ),
        Refused::NOT_PERMITTED => {
            ("the driver lets only administrators profile", "see what `longpole doctor` says of profiling permission")
        }
        _ => ("CUPTI failed", "see what `longpole doctor` says of this machine"),
    }
}
