//! What stands around the events: base time, hardware, versions, and the names of processes, threads and streams.

use std::io;

use foldhash::fast::FixedState;
use hashbrown::HashSet;
use longpole_analysis::Scope;
use longpole_trace::{Device, DeviceProperties, Interval, IntervalSet, LaneId, Ns, RankInfo, ThreadId, Tid, Trace, Versions};

use super::ChromeOrigin;
use super::json::{JsonLines, Members, Place};
use super::selection::Selection;

/// From here on the microseconds of a time are no longer told apart to the nanosecond by a double, which many readers make of them: 2^43 of
/// them leave 10 of its 53 bits for the part of a microsecond, and thousandths take as many. These are 101 days.
const FAR: Ns = Ns((1 << 43) * 1_000);

/// The moment that written times count from, in the trace's own time. Absolute times count from the whole second before the first event, and
/// the base says where that is, so that base and time add up to the same nanosecond as before. All parts of a trace have the same.
pub(super) fn zero(trace: &Trace) -> Ns {
    const SECOND: i64 = 1_000_000_000;
    let Some((first, last)) = trace.window.bounds() else { return Ns::ZERO };
    let whole = Ns(first.get().div_euclid(SECOND).saturating_mul(SECOND));
    let is_far = first.get().unsigned_abs().max(last.get().unsigned_abs()) > FAR.get().unsigned_abs();
    // Without a base nobody knows what the times count from.
    let has_base = trace.base_unix_ns.is_some_and(|base| base.checked_add(whole.get()).is_some());
    if is_far && has_base { whole } else { Ns::ZERO }
}

/// Everything up to the first event. Names of members are Kineto's.
pub(super) fn head(lines: &mut JsonLines<'_>, selection: &Selection<'_, '_>, origin: ChromeOrigin<'_>) {
    let zero = lines.zero();
    let (trace, rank) = (selection.index.trace(), selection.rank);
    lines.text("{");
    let mut members = lines.members();
    members.number("schemaVersion", 1);
    let mut made = vec![("writer", origin.writer), ("source", origin.source)];
    if !origin.part.is_empty() {
        made.push(("part", origin.part));
    }
    members.object("longpole", |about| {
        for (key, text) in made {
            about.string(key, text);
        }
        if !origin.lost.is_empty() {
            about.object("lost", |lost| origin.lost.iter().for_each(|&(code, count)| lost.number(code, count)));
        }
        let unobserved = trace.unobserved.of_rank(rank).intervals();
        if !unobserved.is_empty() {
            about.objects("unobserved", unobserved.iter(), |members, stretch| {
                members.micros("from", stretch.start);
                members.micros("to", stretch.end);
            });
        }
        if !selection.scope.is_whole() || !selection.index.trace().parts.is_empty() {
            part(about, selection, zero);
        }
    });
    let devices = trace.devices.iter().enumerate().filter(|(id, device)| is_described(trace, selection.scope, *id, device, rank));
    members.objects("deviceProperties", devices, |members, (_, device)| device_properties(members, device));
    if let Some(info) = trace.ranks.get(rank) {
        distributed(&mut members, info, trace.ranks.len() > 1);
    }
    versions(&mut members, &trace.versions);
    let recorded = &trace.recorded;
    for (key, is_on) in [
        ("record_shapes", recorded.shapes),
        ("profile_memory", recorded.memory),
        ("with_stack", recorded.stacks),
        ("with_modules", recorded.modules),
    ] {
        if is_on {
            members.number(key, 1);
        }
    }
    members.string("displayTimeUnit", "ms");
    members.optional("baseTimeNanoseconds", trace.base_unix_ns.map(|base| base.saturating_add(zero.get())));
    lines.text(",\"traceEvents\":[");
}

/// What the trace is about, where it holds some of what is around as well: intervals of threads, in microseconds like all times.
fn part(members: &mut Members<'_>, selection: &Selection<'_, '_>, zero: Ns) {
    let trace = selection.index.trace();
    if !trace.activities.is_empty() || trace.parts.iter().any(|part| part.has_device_work) {
        members.number("has_device_work", 1);
    }
    let Some(host) = &selection.host else { return };
    let window = trace.window.bounds().map(|(first, last)| Interval { start: first, end: last + Ns(1) });
    let window = IntervalSet::from_unsorted(window.into_iter().collect());
    let with_events = (0..host.len()).filter(|&thread| selection.threads[thread]);
    let intervals = with_events.flat_map(|thread| {
        let within = host[thread].intersection(&window);
        within.intervals().to_vec().into_iter().map(move |interval| (&trace.threads[thread], interval))
    });
    members.objects("host", intervals, |members, (thread, interval)| {
        members.number("pid", trace.processes[thread.process.index()].pid);
        match &thread.tid {
            Tid::Number(number) => members.number("tid", *number),
            Tid::Text(text) => members.string("tid", text),
        }
        members.micros("from", interval.start - zero);
        members.micros("to", interval.end - zero);
    });
}

fn is_described(trace: &Trace, scope: &Scope, id: usize, device: &Device, rank: usize) -> bool {
    device.rank as usize == rank
        && device.properties != DeviceProperties::default()
        && scope.includes_device(trace, longpole_trace::DeviceId::from_index(id))
}

fn device_properties(members: &mut Members<'_>, device: &Device) {
    let DeviceProperties {
        name,
        memory_bytes,
        sm_count,
        compute_capability,
        max_threads_per_sm,
        registers_per_sm,
        shared_bytes_per_sm,
        warp_size,
        // It follows from the name, and no reader of traces knows it.
        peak_memory_bytes_per_s: _,
    } = &device.properties;
    members.number("id", device.ordinal);
    if let Some(name) = name {
        members.string("name", name);
    }
    members.optional("totalGlobalMem", *memory_bytes);
    members.optional("computeMajor", compute_capability.map(|version| version.0));
    members.optional("computeMinor", compute_capability.map(|version| version.1));
    members.optional("maxThreadsPerMultiprocessor", *max_threads_per_sm);
    members.optional("regsPerMultiprocessor", *registers_per_sm);
    members.optional("warpSize", *warp_size);
    members.optional("sharedMemPerMultiprocessor", *shared_bytes_per_sm);
    members.optional("numSms", *sm_count);
}

/// The rank is only said where the trace has one: else the name of the file decides.
fn distributed(members: &mut Members<'_>, info: &RankInfo, is_one_of_several: bool) {
    let RankInfo { label: _, rank, world_size, backend } = info;
    if world_size.is_none() && backend.is_none() && *rank == 0 && !is_one_of_several {
        return;
    }
    members.object("distributedInfo", |members| {
        if let Some(backend) = backend {
            members.string("backend", backend);
        }
        members.number("rank", *rank);
        members.optional("world_size", *world_size);
    });
}

/// Versions as the producers pack them: CUDA as 1000 * major + 10 * minor, HIP as 10,000,000 * major + 100,000 * minor.
fn versions(members: &mut Members<'_>, versions: &Versions) {
    const CUDA: (u64, u64) = (1_000, 10);
    const HIP: (u64, u64) = (10_000_000, 100_000);
    let Versions { cuda_runtime, cuda_driver, cupti, hip_runtime, hip_driver } = versions;
    let packed = |text: &Option<String>, unit: (u64, u64)| {
        let (major, minor) = text.as_ref()?.split_once('.')?;
        let (major, minor) = (major.parse::<u64>().ok()?, minor.parse::<u64>().ok()?);
        major.checked_mul(unit.0)?.checked_add(minor.checked_mul(unit.1)?)
    };
    members.optional("cuda_runtime_version", packed(cuda_runtime, CUDA));
    members.optional("cuda_driver_version", packed(cuda_driver, CUDA));
    members.optional("cupti_version", cupti.as_ref().and_then(|version| version.parse::<u64>().ok()));
    members.optional("hip_runtime_version", packed(hip_runtime, HIP));
    members.optional("hip_driver_version", packed(hip_driver, HIP));
}

/// Devices come after host processes in a viewer; Kineto's number.
const DEVICES_FROM: i64 = 5_000_000;

/// Names of processes, threads, devices and streams that have events.
pub(super) fn names(lines: &mut JsonLines<'_>, selection: &Selection<'_, '_>) -> io::Result<()> {
    let trace = selection.index.trace();
    let none = Tid::Number(0);
    let mut processes: HashSet<i64, FixedState> = HashSet::default();
    for id in (0..trace.threads.len()).filter(|&id| selection.threads[id]) {
        let thread = &trace.threads[ThreadId::from_index(id).index()];
        let process = &trace.processes[thread.process.index()];
        if processes.insert(process.pid) {
            let place = Place::Thread(process.pid, &none);
            if let Some(name) = process.name {
                name_event(lines, "process_name", place, |args| args.string("name", trace.strings.get(name)))?;
            }
            name_event(lines, "process_labels", place, |args| args.string("labels", "CPU"))?;
        }
        if let Some(name) = thread.name {
            let place = Place::Thread(process.pid, &thread.tid);
            name_event(lines, "thread_name", place, |args| args.string("name", trace.strings.get(name)))?;
        }
    }
    let mut devices: HashSet<i64, FixedState> = HashSet::default();
    for id in (0..trace.lanes.len()).filter(|&id| selection.lanes[id]) {
        let lane = &trace.lanes[LaneId::from_index(id).index()];
        let ordinal = trace.devices[lane.device.index()].ordinal;
        // Python threads that the profiler does not know are in process 0, which is the first device as well.
        if processes.contains(&ordinal) {
            continue;
        }
        let place = Place::Stream(ordinal, lane.stream);
        if devices.insert(ordinal) {
            name_event(lines, "process_name", place, |args| args.string("name", &format!("GPU {ordinal}")))?;
            name_event(lines, "process_labels", place, |args| args.string("labels", &format!("GPU {ordinal}")))?;
            name_event(lines, "process_sort_index", place, |args| args.number("sort_index", DEVICES_FROM.saturating_add(ordinal)))?;
        }
        name_event(lines, "thread_name", place, |args| args.string("name", &format!("stream {}", lane.stream)))?;
    }
    Ok(())
}

fn name_event(lines: &mut JsonLines<'_>, name: &str, place: Place<'_>, args: impl FnOnce(&mut Members<'_>)) -> io::Result<()> {
    lines.instant(b'M', ("", name), place, None, |_| {}, args)
}
