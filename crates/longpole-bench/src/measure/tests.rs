//! Scheduling and sampling on the simulated device, whose true times are known.

use crate::fake::{Fake, FakeBody, World};
use crate::key::Key;
use crate::protocol::{Benchmark, End, Event, L2, Method, Sample, Start, StoppedBy};

use super::{Error, Settings, measure, profile};

const MIB: u64 = 1 << 20;

struct Run {
    start: Start,
    samples: Vec<Sample>,
    end: End,
}

impl Run {
    fn median_ns(&self) -> f64 {
        let mut times: Vec<u64> = self.samples.iter().map(|sample| sample.time_ps).collect();
        times.sort_unstable();
        times[times.len() / 2] as f64 / 1e3
    }

    /// Distance of the median from the truth, as a share.
    fn off(&self, truth_ns: f64) -> f64 {
        (self.median_ns() / truth_ns - 1.0).abs()
    }
}

fn benchmark() -> Benchmark {
    Benchmark::new(Key::parse("Model/ops/gemv/decode/tile").unwrap())
}

fn try_run(world: World, body: &mut FakeBody, settings: &Settings) -> (Result<(), Error>, Vec<Event>) {
    let mut events = Vec::new();
    let mut driver = Fake::new(world);
    let done = measure(&mut driver, body, &benchmark(), settings, &mut |event| {
        events.push(event.clone());
        Ok(())
    });
    (done, events)
}

fn run(world: World, mut body: FakeBody, settings: &Settings) -> Run {
    let (done, events) = try_run(world, &mut body, settings);
    done.unwrap();
    let mut events = events.into_iter();
    let Some(Event::Start(start)) = events.next() else { panic!("no start") };
    let Some(Event::End(end)) = events.next_back() else { panic!("no end") };
    let samples: Vec<Sample> = events
        .map(|event| match event {
            Event::Sample(sample) => sample,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(end.samples as usize, samples.len());
    assert!(samples.iter().enumerate().all(|(at, sample)| sample.index as usize == at));
    Run { start, samples, end }
}

#[test]
fn a_short_kernel_is_measured_without_its_launches() {
    let run = run(World::default(), FakeBody::new(2_000, MIB), &Settings::default());
    assert_eq!((run.start.method, run.start.l2), (Method::Graph, L2::Cold));
    assert_eq!(run.start.launches_per_sample % run.start.buffers_rotated, 0);
    assert!(run.off(2_000.0) < 0.005, "{}", run.median_ns());
    assert_eq!(run.end.stopped_by, StoppedBy::Precise);
    assert!(run.end.relative_error.unwrap() <= 0.001);
    assert!(run.end.notes.is_empty(), "{:?}", run.end.notes);
    assert_eq!(run.end.correct, Some(true));
}

#[test]
fn launched_one_by_one_it_would_show_its_launches() {
    let body = FakeBody { recordable: false, ..FakeBody::new(1_000, MIB) };
    let run = run(World::default(), body, &Settings::default());
    assert_eq!(run.start.method, Method::Events);
    assert!(run.median_ns() > 3_500.0, "the host takes 4 us to launch: {}", run.median_ns());
}

#[test]
fn a_long_kernel_is_measured_in_batches() {
    let run = run(World::default(), FakeBody::new(50_000, 100 * MIB), &Settings::default());
    assert_eq!((run.start.method, run.start.launches_per_sample, run.start.buffers_rotated), (Method::Events, 20, 3));
    assert!(run.off(50_000.0) < 0.005, "{}", run.median_ns());
}

#[test]
fn a_step_of_many_short_kernels_goes_into_a_graph() {
    let body = FakeBody { kernels: 500, ..FakeBody::new(2_500, 500 * MIB) };
    let run = run(World::default(), body, &Settings::default());
    assert_eq!(run.start.method, Method::Graph);
    // Kernels of one run share their set in the simulation, which is larger than the cache.
    assert!(run.off(500.0 * 2_500.0) < 0.005, "{}", run.median_ns());
}

#[test]
fn the_cache_is_as_asked_for() {
    for bytes in [MIB, 20 * MIB, 50 * MIB] {
        let cold = run(World::default(), FakeBody::new(20_000, bytes), &Settings::default());
        assert!(cold.off(20_000.0) < 0.005, "{bytes}: {}", cold.median_ns());
        let settings = Settings { l2: L2::Warm, ..Settings::default() };
        let warm = run(World::default(), FakeBody::new(20_000, bytes), &settings);
        assert_eq!((warm.start.buffers_rotated, warm.start.l2), (1, L2::Warm));
        assert!(warm.off(10_000.0) < 0.005, "{bytes}: {}", warm.median_ns());
    }
}

#[test]
fn too_little_memory_for_a_cold_cache_is_noted() {
    let world = World { free_bytes: 90 * MIB, ..World::default() };
    let run = run(world, FakeBody::new(20_000, 20 * MIB), &Settings::default());
    assert_eq!(run.start.buffers_rotated, 2);
    assert!(run.end.notes[0].starts_with("the cache is not cold: 2 sets of buffers hold 40 MiB"), "{:?}", run.end.notes);
}

#[test]
fn warm_up_lasts_until_the_clocks_are_up() {
    let world = World { settle_ns: 600_000_000, first_clock: 0.4, ..World::default() };
    let run = run(world, FakeBody::new(100_000, MIB), &Settings::default());
    assert!(run.end.warm_up_ns >= 450_000_000, "{}", run.end.warm_up_ns);
    let first = run.samples[0].time_ps as f64 / 1e3;
    assert!((first / 100_000.0 - 1.0).abs() < 0.05, "{first}");
    let quick = self::run(World::default(), FakeBody::new(100_000, MIB), &Settings::default());
    assert!((100_000_000..200_000_000).contains(&quick.end.warm_up_ns), "{}", quick.end.warm_up_ns);
}

#[test]
fn clocks_that_never_settle_are_noted() {
    let world = World { settle_ns: 60_000_000_000, first_clock: 0.01, ..World::default() };
    let settings = Settings { max_ns: 1_000_000_000, ..Settings::default() };
    let run = run(world, FakeBody::new(100_000, MIB), &settings);
    assert!(run.end.notes[0].contains("had not settled after 0.5 s"), "{:?}", run.end.notes);
}

#[test]
fn throttled_samples_are_marked_and_kept() {
    let world = World { throttle: Some((200_000_000, 260_000_000, 0.5)), ..World::default() };
    let settings = Settings { relative_error: 1e-9, max_ns: 500_000_000, ..Settings::default() };
    let run = run(world, FakeBody::new(100_000, MIB), &settings);
    let throttled: Vec<&Sample> = run.samples.iter().filter(|sample| sample.throttled == Some(true)).collect();
    assert!(throttled.len() > 10 && throttled.len() < run.samples.len() / 2, "{} of {}", throttled.len(), run.samples.len());
    for sample in &throttled {
        assert_eq!(sample.throttle.as_deref(), Some(&["sw_power_cap".to_owned()][..]));
        assert!(sample.sm_clock_mhz.unwrap() < 1_000);
    }
    // They took twice the time, but for those on the edges.
    let slow = run.samples.iter().filter(|sample| sample.time_ps > 190_000_000).count();
    assert!(slow.abs_diff(throttled.len()) <= 2, "{slow} are slow, {} are marked", throttled.len());
}

#[test]
fn outliers_do_not_move_the_median() {
    let world = World { outlier_share: 0.01, outlier_factor: 30.0, ..World::default() };
    let run = run(world, FakeBody::new(1_000_000, MIB), &Settings::default());
    assert!(run.off(1_000_000.0) < 0.003, "{}", run.median_ns());
    assert_eq!(run.end.stopped_by, StoppedBy::Precise);
}

#[test]
fn drift_keeps_sampling_going() {
    let settings = Settings { relative_error: 0.0006, ..Settings::default() };
    let steady = run(World::default(), FakeBody::new(1_000_000, MIB), &settings);
    assert_eq!(steady.end.stopped_by, StoppedBy::Precise);
    let world = World { drift_per_s: 0.1, ..World::default() };
    let drifting = run(world, FakeBody::new(1_000_000, MIB), &settings);
    assert_eq!(drifting.end.stopped_by, StoppedBy::Time);
    assert!(drifting.end.relative_error.unwrap() > 0.0006);
}

#[test]
fn time_and_count_end_it() {
    let noisy = World { noise: 0.2, ..World::default() };
    let settings = Settings { relative_error: 1e-6, max_ns: 800_000_000, ..Settings::default() };
    let late = run(noisy.clone(), FakeBody::new(1_000_000, MIB), &settings);
    assert_eq!(late.end.stopped_by, StoppedBy::Time);
    let settings = Settings { samples: Some(7), ..Settings::default() };
    let counted = run(noisy.clone(), FakeBody::new(1_000_000, MIB), &settings);
    assert_eq!((counted.end.stopped_by, counted.end.samples), (StoppedBy::Count, 7));
    // A run that takes longer than the time for all of them is measured a few times all the same, and not for ever.
    let settings = Settings { max_ns: 1_000_000_000, ..Settings::default() };
    let slow = run(noisy.clone(), FakeBody::new(700_000_000, MIB), &settings);
    assert!((1..=5).contains(&slow.end.samples) && slow.end.stopped_by == StoppedBy::Time, "{:?}", slow.end);
    let endless = run(noisy, FakeBody::new(30_000_000_000, MIB), &settings);
    assert_eq!(endless.end.samples, 1);
}

#[test]
fn a_kernel_of_no_time_at_all_ends() {
    let run = run(World { noise: 0.0, ..World::default() }, FakeBody::new(0, MIB), &Settings::default());
    assert!(run.samples.iter().all(|sample| sample.time_ps < 1_000_000));
}

#[test]
fn a_wrong_result_is_not_timed() {
    let mut wrong = FakeBody { correct: Some(false), ..FakeBody::new(1_000, MIB) };
    let (done, events) = try_run(World::default(), &mut wrong, &Settings::default());
    assert!(matches!(done, Err(Error::Wrong(_))));
    assert_eq!(events, []);
    // A kernel that writes nothing leaves the pattern behind.
    let mut idle = FakeBody { kernels: 0, ..FakeBody::new(1_000, MIB) };
    let (done, events) = try_run(World::default(), &mut idle, &Settings::default());
    assert_eq!(done.unwrap_err().to_string(), "the result is wrong: set 0 was not written");
    assert_eq!(events, []);
    let unsure = run(World::default(), FakeBody { correct: None, ..FakeBody::new(1_000, MIB) }, &Settings::default());
    assert_eq!(unsure.end.correct, None);
}

#[test]
fn a_state_that_cannot_be_read_is_unknown() {
    let run = run(World { has_state: false, ..World::default() }, FakeBody::new(20_000, MIB), &Settings::default());
    let first = &run.samples[0];
    assert_eq!((first.sm_clock_mhz, first.temperature_c, &first.throttle, first.throttled), (None, None, &None, None));
    assert_eq!(run.end.stopped_by, StoppedBy::Precise);
}

#[test]
fn profiling_shows_plain_launches_only() {
    let mut driver = Fake::new(World::default());
    let mut body = FakeBody { kernels: 3, ..FakeBody::new(2_000, MIB) };
    profile(&mut driver, &mut body, L2::Cold, 2).unwrap();
    assert_eq!((driver.profiled, driver.recorded), (6, 0));
    // The profiler is told to stop.
    super::Body::launch(&mut body, &mut driver, 0).unwrap();
    assert_eq!(driver.profiled, 6);
}

#[test]
fn a_reader_that_has_gone_ends_the_run() {
    let mut driver = Fake::new(World::default());
    let mut seen = 0;
    let done = measure(&mut driver, &mut FakeBody::new(20_000, MIB), &benchmark(), &Settings::default(), &mut |_| {
        seen += 1;
        if seen < 4 { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
    });
    assert!(done.unwrap_err().is_output());
    assert_eq!(seen, 4);
}
