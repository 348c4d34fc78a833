//! One benchmark from its buffers to its last sample.

use crate::key::Key;
use crate::protocol::{Benchmark, End, Event, L2, Method, Sample, Start, StoppedBy};

use super::plan::{self, Sets};
use super::precision::relative_error;
use super::{Body, Driver, Error, Settings, Timed};

/// Where events go.
pub type Emit<'a> = dyn FnMut(&Event) -> std::io::Result<()> + 'a;

/// Picoseconds of work in one round of the warm-up.
const ROUND_PS: u64 = 10_000_000_000;

/// The warm-up lasts at least so long: a device that slept raises its clocks within some tens of milliseconds.
const MIN_WARM_UP_NS: u64 = 100_000_000;

/// And at most so long, or half the time for the benchmark.
const MAX_WARM_UP_NS: u64 = 3_000_000_000;

/// Rounds of the warm-up that have to agree.
const CALM_ROUNDS: usize = 4;

/// Times and clocks of these rounds may differ by so much, as a share: clocks move in steps of 15 MHz, about 1 %.
const CALM_SHARE: f64 = 0.015;

/// No precision is believed of fewer samples: they take a tenth of a second, and whoever compares two runs wants to see what neighbours do.
const MIN_SAMPLES: usize = 50;

/// Samples at most, if no number was asked for.
const MAX_SAMPLES: u32 = 5000;

/// When time is out, so many samples are still taken, unless four times the time is out.
const MIN_SAMPLES_LATE: usize = 5;

/// A body ready to be launched, its sets taken in turn.
struct Ready<'a, D: Driver> {
    body: &'a mut dyn Body<D>,
    sets: u32,
    next: u32,
}

impl<D: Driver> Ready<'_, D> {
    fn runs(&mut self, driver: &mut D, count: u32) -> Result<(), Error> {
        for _ in 0..count {
            self.body.launch(driver, self.next)?;
            self.next = (self.next + 1) % self.sets;
        }
        Ok(())
    }

    /// Runs one after the other, with some ahead that are not timed.
    fn timed(&mut self, driver: &mut D, lead: u32, count: u32) -> Result<Timed, Error> {
        // The two closures are called one after the other, but both have to exist at once.
        let shared = std::cell::RefCell::new(self);
        driver.timed(&mut |driver| shared.borrow_mut().runs(driver, lead), &mut |driver| shared.borrow_mut().runs(driver, count))
    }
}

/// How a benchmark is measured, once that is settled.
enum Sampler<G> {
    Events { lead: u32, runs: u32 },
    Graph { graph: G, runs: u32 },
}

impl<G> Sampler<G> {
    fn runs(&self) -> u32 {
        match self {
            Self::Events { runs, .. } | Self::Graph { runs, .. } => *runs,
        }
    }

    /// One sample: the time of one run, and the time of all of them.
    fn take<D: Driver<Graph = G>>(&self, driver: &mut D, ready: &mut Ready<'_, D>) -> Result<(Timed, u64), Error> {
        let timed = match self {
            Self::Events { lead, runs } => ready.timed(driver, *lead, *runs)?,
            Self::Graph { graph, .. } => driver.timed(&mut |driver| driver.replay(graph), &mut |driver| driver.replay(graph))?,
        };
        let runs = u64::from(self.runs().max(1));
        // To the nearest picosecond.
        Ok((Timed { time_ps: (timed.time_ps + runs / 2) / runs, state: timed.state }, timed.time_ps))
    }
}

/// Measures a benchmark and emits its start, samples and end.
///
/// # Errors
///
/// Whatever keeps it from being measured; the caller prints it.
pub fn measure<D: Driver>(
    driver: &mut D,
    body: &mut dyn Body<D>,
    benchmark: &Benchmark,
    settings: &Settings,
    emit: &mut Emit<'_>,
) -> Result<(), Error> {
    let mut notes = Vec::new();
    let (mut ready, correct) = prepare(driver, body, settings.l2, &mut notes)?;
    let sampler = choose(driver, &mut ready, &mut notes)?;
    let method = if matches!(sampler, Sampler::Graph { .. }) { Method::Graph } else { Method::Events };
    emit(&Event::Start(Start {
        key: benchmark.key.clone(),
        bytes: benchmark.bytes,
        flops: benchmark.flops,
        dtype: benchmark.dtype.clone(),
        method,
        launches_per_sample: sampler.runs(),
        buffers_rotated: ready.sets,
        l2: settings.l2,
    }))?;
    let began = driver.now_ns();
    let deadline = began.saturating_add(settings.max_ns);
    let limit = MAX_WARM_UP_NS.min(settings.max_ns / 2);
    if !warm_up(driver, &mut ready, &sampler, limit)? {
        notes.push(format!("clocks or times had not settled after {:.1} s of warm-up", limit as f64 / 1e9));
    }
    let warm_up_ns = driver.now_ns().saturating_sub(began);
    let (taken, stopped_by) = sample(driver, &mut ready, &sampler, &benchmark.key, settings, (began, deadline), emit)?;
    emit(&Event::End(End {
        key: benchmark.key.clone(),
        samples: u32::try_from(taken.len()).unwrap_or(u32::MAX),
        stopped_by,
        warm_up_ns,
        correct,
        relative_error: relative_error(&taken),
        notes,
    }))?;
    Ok(())
}

/// Runs a benchmark for a profiler: warms up, then makes `launches` runs with the profiler told to look, launched plainly so that each kernel
/// is seen.
pub fn profile<D: Driver>(driver: &mut D, body: &mut dyn Body<D>, l2: L2, launches: u32) -> Result<(), Error> {
    let (mut ready, _) = prepare(driver, body, l2, &mut Vec::new())?;
    // Enough for clocks, caches and lazily loaded code; a profiler that fixes clocks and caches itself does not mind.
    let began = driver.now_ns();
    while driver.now_ns().saturating_sub(began) < MIN_WARM_UP_NS {
        ready.runs(driver, 1)?;
        driver.synchronize()?;
    }
    driver.profiler(true)?;
    let done = ready.runs(driver, launches).and_then(|()| driver.synchronize());
    driver.profiler(false)?;
    done
}

/// Buffers and a checked result.
fn prepare<'a, D: Driver>(
    driver: &mut D,
    body: &'a mut dyn Body<D>,
    l2: L2,
    notes: &mut Vec<String>,
) -> Result<(Ready<'a, D>, Option<bool>), Error> {
    let device = driver.device();
    let free = driver.free_bytes();
    let Sets { count, enough } = plan::sets(l2, body.footprint_bytes(), device.l2_bytes, free);
    body.prepare(driver, count)?;
    let mut correct = None;
    for set in [0, count - 1] {
        body.poison(driver, set)?;
        body.launch(driver, set)?;
        driver.synchronize()?;
        correct = body.check(driver, set)?;
        if correct == Some(false) {
            return Err(Error::Wrong("the benchmark's own check says so".to_owned()));
        }
        if count == 1 {
            break;
        }
    }
    if !enough {
        let total = u64::from(count).saturating_mul(body.footprint_bytes());
        let kept = format!("the cache is not cold: {count} sets of buffers hold {} MiB", total >> 20);
        notes.push(format!("{kept}, and no more fit or are taken in turn"));
    }
    Ok((Ready { body, sets: count, next: 0 }, correct))
}

/// Method and number of runs, from a first look at the time of a run.
fn choose<D: Driver>(driver: &mut D, ready: &mut Ready<'_, D>, notes: &mut Vec<String>) -> Result<Sampler<D::Graph>, Error> {
    let before = driver.launched();
    ready.runs(driver, 1)?;
    let launches = driver.launched().saturating_sub(before);
    driver.synchronize()?;
    let run_ps = look(|count| Ok(ready.timed(driver, 1, count)?.time_ps))?;
    if plan::method(run_ps, launches, ready.body.recordable()) == Method::Graph {
        match graph(driver, ready, run_ps) {
            Ok(sampler) => return Ok(sampler),
            Err(error) => {
                notes.push(format!("kernels are short, but could not be recorded into a graph, so launches are measured too: {error}"));
            }
        }
    }
    Ok(Sampler::Events { lead: 1, runs: plan::runs_per_sample(Method::Events, run_ps, ready.sets) })
}

fn graph<D: Driver>(driver: &mut D, ready: &mut Ready<'_, D>, eager_ps: u64) -> Result<Sampler<D::Graph>, Error> {
    let sets = ready.sets;
    let mut record = |driver: &mut D, runs: u32| {
        ready.next = 0;
        driver.record(&mut |driver| ready.runs(driver, runs))
    };
    // The eager time of a short kernel is that of its launch, so the number of runs comes from a first graph.
    let mut runs = plan::runs_per_sample(Method::Graph, eager_ps, sets);
    let mut graph = record(driver, runs)?;
    let time = driver.timed(&mut |driver| driver.replay(&graph), &mut |driver| driver.replay(&graph))?;
    let better = plan::runs_per_sample(Method::Graph, time.time_ps / u64::from(runs), sets);
    // A tenth more or less is not worth another recording.
    if better.abs_diff(runs) > runs / 10 {
        runs = better;
        graph = record(driver, runs)?;
    }
    Ok(Sampler::Graph { graph, runs })
}

/// Picoseconds of a run: batches grow until one lasts a fifth of a sample.
fn look(mut timed: impl FnMut(u32) -> Result<u64, Error>) -> Result<u64, Error> {
    let mut count = 1;
    loop {
        let time = timed(count)?;
        if time >= plan::SAMPLE_PS / 5 || count >= 256 {
            return Ok((time / u64::from(count)).max(1));
        }
        count *= 4;
    }
}

/// Runs until clocks and times of the last rounds agree; whether they did before the limit.
fn warm_up<D: Driver>(driver: &mut D, ready: &mut Ready<'_, D>, sampler: &Sampler<D::Graph>, limit_ns: u64) -> Result<bool, Error> {
    let began = driver.now_ns();
    let mut rounds: Vec<(f64, Option<u32>)> = Vec::new();
    loop {
        let (mut busy_ps, mut clock) = (0u64, None);
        let mut times = Vec::new();
        while busy_ps < ROUND_PS {
            let (timed, all_ps) = sampler.take(driver, ready)?;
            // A run of no measurable length must not keep the loop going.
            busy_ps = busy_ps.saturating_add(all_ps.max(ROUND_PS / 1000));
            times.push(timed.time_ps);
            clock = timed.state.sm_clock_mhz;
        }
        times.sort_unstable();
        rounds.push((times[times.len() / 2] as f64, clock));
        let passed = driver.now_ns().saturating_sub(began);
        let calm = rounds.len() >= CALM_ROUNDS && agree(&rounds[rounds.len() - CALM_ROUNDS..]);
        if calm && passed >= MIN_WARM_UP_NS.min(limit_ns) {
            return Ok(true);
        }
        if passed >= limit_ns {
            return Ok(calm);
        }
    }
}

/// Whether times and, where they are known, clocks differ by no more than [`CALM_SHARE`].
fn agree(rounds: &[(f64, Option<u32>)]) -> bool {
    let close = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values.fold((f64::MAX, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        high <= low * (1.0 + CALM_SHARE)
    };
    close(&mut rounds.iter().map(|(time, _)| *time)) && close(&mut rounds.iter().filter_map(|(_, clock)| clock.map(f64::from)))
}

/// Samples, emitted as they come; their times with whether they were throttled, and why there are no more.
fn sample<D: Driver>(
    driver: &mut D,
    ready: &mut Ready<'_, D>,
    sampler: &Sampler<D::Graph>,
    key: &Key,
    settings: &Settings,
    (began, deadline): (u64, u64),
    emit: &mut Emit<'_>,
) -> Result<(Vec<(u64, bool)>, StoppedBy), Error> {
    let most = settings.samples.unwrap_or(MAX_SAMPLES);
    let very_late = began.saturating_add(settings.max_ns.saturating_mul(4));
    let mut taken: Vec<(u64, bool)> = Vec::new();
    let mut look_at = MIN_SAMPLES;
    loop {
        if taken.len() as u64 >= u64::from(most) {
            return Ok((taken, StoppedBy::Count));
        }
        let now = driver.now_ns();
        if now >= deadline && (taken.len() >= MIN_SAMPLES_LATE || now >= very_late && !taken.is_empty()) {
            return Ok((taken, StoppedBy::Time));
        }
        if settings.samples.is_none() && taken.len() >= look_at {
            if relative_error(&taken).is_some_and(|error| error <= settings.relative_error) {
                return Ok((taken, StoppedBy::Precise));
            }
            // Looking again after an eighth more keeps the sorting linear in all.
            look_at = taken.len() + (taken.len() / 8).max(4);
        }
        let (timed, _) = sampler.take(driver, ready)?;
        let throttled = timed.state.throttled();
        emit(&Event::Sample(Sample {
            key: key.clone(),
            index: u32::try_from(taken.len()).unwrap_or(u32::MAX),
            time_ps: timed.time_ps,
            sm_clock_mhz: timed.state.sm_clock_mhz,
            memory_clock_mhz: timed.state.memory_clock_mhz,
            temperature_c: timed.state.temperature_c,
            power_mw: timed.state.power_mw,
            throttle: timed.state.throttle,
            throttled,
        }))?;
        taken.push((timed.time_ps, throttled == Some(true)));
    }
}
