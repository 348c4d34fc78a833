//! A simulated device, so that scheduling, sampling and the protocol are tested without a GPU.
//!
//! Two clocks run: the host's, which every launch costs time, and the device's, which does one kernel after the other and begins none before
//! it was enqueued. A kernel takes less time when its set of buffers is still in the second-level cache, which forgets in order of use. Noise,
//! outliers, a cold start and a throttled stretch can be added. All of it is a function of the seed.

use std::collections::VecDeque;

use crate::measure::{Body, Driver, Enqueue, Error, State, Timed};
use crate::protocol::Device;

/// A small generator of random numbers for simulations and tests (splitmix64; S. Vigna, 2015, public domain).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }
}

/// How the simulated machine behaves. Times are nanoseconds of the simulation.
#[derive(Clone, Debug)]
pub struct World {
    /// Seed of noise and outliers.
    pub seed: u64,
    /// Host time of one launch.
    pub launch_ns: u64,
    /// Host time of replaying a graph.
    pub replay_ns: u64,
    /// Host time of reading the state of the device.
    pub state_ns: u64,
    /// Device time between an event or kernel that the device waited for and the next kernel.
    pub wake_ns: u64,
    /// Standard deviation of a kernel's time, as a share.
    pub noise: f64,
    /// Share of samples that an outlier hits.
    pub outlier_share: f64,
    /// By what factor an outlier prolongs a kernel.
    pub outlier_factor: f64,
    /// The device reaches its full clock after so long.
    pub settle_ns: u64,
    /// The share of the full clock it begins with.
    pub first_clock: f64,
    /// A stretch with a throttle reason: from, to, and the share of the clock that is left.
    pub throttle: Option<(u64, u64, f64)>,
    /// Kernels take this share more with every second.
    pub drift_per_s: f64,
    /// Bytes of the second-level cache.
    pub l2_bytes: u64,
    /// The share of its time that a kernel takes when its buffers are in the cache.
    pub warm_share: f64,
    /// Bytes that can be allocated.
    pub free_bytes: u64,
    /// Whether clocks, temperature and reasons can be read.
    pub has_state: bool,
}

impl Default for World {
    fn default() -> Self {
        Self {
            seed: 1,
            launch_ns: 4_000,
            replay_ns: 10_000,
            state_ns: 20_000,
            wake_ns: 3_000,
            noise: 0.002,
            outlier_share: 0.0,
            outlier_factor: 10.0,
            settle_ns: 0,
            first_clock: 1.0,
            throttle: None,
            drift_per_s: 0.0,
            l2_bytes: 60 << 20,
            warm_share: 0.5,
            free_bytes: 100 << 30,
            has_state: true,
        }
    }
}

/// Full clock of the simulated multiprocessors in MHz.
const FULL_CLOCK_MHZ: f64 = 1980.0;

#[derive(Clone, Copy, Debug)]
struct Kernel {
    time_ps: u64,
    set: u32,
    bytes: u64,
}

/// What was recorded on a [`Fake`].
#[derive(Debug)]
pub struct Recorded(Vec<Kernel>);

/// The simulated device.
#[derive(Debug)]
pub struct Fake {
    world: World,
    random: Random,
    host_ps: u64,
    device_ps: u64,
    recording: Option<Vec<Kernel>>,
    launched: u64,
    /// Sets in the cache with their bytes, least recently used first.
    cache: VecDeque<(u32, u64)>,
    profiler: bool,
    /// Launches made while a profiler was told to look.
    pub profiled: u64,
    /// Graphs recorded.
    pub recorded: u64,
}

impl Fake {
    /// A machine that behaves like `world`.
    pub fn new(world: World) -> Self {
        let random = Random::new(world.seed);
        Self {
            world,
            random,
            host_ps: 0,
            device_ps: 0,
            recording: None,
            launched: 0,
            cache: VecDeque::new(),
            profiler: false,
            profiled: 0,
            recorded: 0,
        }
    }

    /// Enqueues a kernel that takes so long at full clock with nothing in the cache, on a set of so many bytes.
    pub fn launch(&mut self, time_ns: u64, set: u32, bytes: u64) {
        let kernel = Kernel { time_ps: time_ns * 1000, set, bytes };
        self.launched += 1;
        if self.profiler {
            self.profiled += 1;
        }
        if let Some(recording) = &mut self.recording {
            recording.push(kernel);
            return;
        }
        self.host_ps += self.world.launch_ns * 1000;
        self.execute(kernel);
    }

    /// The share of the full clock at a time, and whether the device is throttled then.
    fn clock(&self, at_ps: u64) -> (f64, bool) {
        let at_ns = at_ps / 1000;
        let world = &self.world;
        let risen = if at_ns < world.settle_ns {
            world.first_clock + (1.0 - world.first_clock) * at_ns as f64 / world.settle_ns as f64
        } else {
            1.0
        };
        match world.throttle {
            Some((from, to, share)) if (from..to).contains(&at_ns) => (risen * share, true),
            _ => (risen, false),
        }
    }

    fn execute(&mut self, kernel: Kernel) {
        if self.host_ps > self.device_ps {
            self.device_ps = self.host_ps + self.world.wake_ns * 1000;
        }
        let warm = self.cache.iter().any(|(set, _)| *set == kernel.set);
        self.cache.retain(|(set, _)| *set != kernel.set);
        self.cache.push_back((kernel.set, kernel.bytes));
        while self.cache.iter().map(|(_, bytes)| *bytes).sum::<u64>() > self.world.l2_bytes {
            self.cache.pop_front();
        }
        let mut factor = (1.0 + self.world.noise * self.random.normal()).max(0.1) / self.clock(self.device_ps).0;
        factor *= 1.0 + self.world.drift_per_s * self.device_ps as f64 / 1e12;
        if warm {
            factor *= self.world.warm_share;
        }
        if self.random.uniform() < self.world.outlier_share {
            factor *= self.world.outlier_factor;
        }
        self.device_ps += (kernel.time_ps as f64 * factor) as u64;
    }
}

impl Driver for Fake {
    type Graph = Recorded;

    fn device(&self) -> Device {
        Device {
            name: "Simulated device".to_owned(),
            uuid: Some("GPU-00000000-0000-0000-0000-000000000000".to_owned()),
            driver: Some("1.0".to_owned()),
            cuda: None,
            sm_count: Some(132),
            memory_bytes: Some(self.world.free_bytes),
            l2_bytes: Some(self.world.l2_bytes),
        }
    }

    fn free_bytes(&mut self) -> Option<u64> {
        Some(self.world.free_bytes)
    }

    fn now_ns(&mut self) -> u64 {
        self.host_ps / 1000
    }

    fn launched(&self) -> u64 {
        self.launched
    }

    fn synchronize(&mut self) -> Result<(), Error> {
        self.host_ps = self.host_ps.max(self.device_ps);
        Ok(())
    }

    fn timed(&mut self, lead: &mut Enqueue<'_, Self>, work: &mut Enqueue<'_, Self>) -> Result<Timed, Error> {
        lead(self)?;
        let begin = self.device_ps.max(self.host_ps);
        work(self)?;
        let end = self.device_ps;
        let mut state = State::default();
        if self.world.has_state {
            self.host_ps += self.world.state_ns * 1000;
            let (clock, throttled) = self.clock(end.min(self.host_ps));
            state = State {
                sm_clock_mhz: Some((FULL_CLOCK_MHZ * clock) as u32),
                memory_clock_mhz: Some(3201),
                temperature_c: Some(45),
                power_mw: Some(400_000),
                throttle: Some(if throttled { vec!["sw_power_cap".to_owned()] } else { Vec::new() }),
            };
        }
        self.host_ps = self.host_ps.max(end);
        Ok(Timed { time_ps: end - begin, state })
    }

    fn record(&mut self, work: &mut Enqueue<'_, Self>) -> Result<Recorded, Error> {
        self.recording = Some(Vec::new());
        let done = work(self);
        let recorded = self.recording.take().unwrap_or_default();
        self.recorded += 1;
        done.map(|()| Recorded(recorded))
    }

    fn replay(&mut self, graph: &Recorded) -> Result<(), Error> {
        self.host_ps += self.world.replay_ns * 1000;
        for kernel in &graph.0 {
            self.execute(*kernel);
        }
        Ok(())
    }

    fn profiler(&mut self, on: bool) -> Result<(), Error> {
        self.profiler = on;
        Ok(())
    }
}

/// A body of kernels that take a known time.
#[derive(Clone, Debug)]
pub struct FakeBody {
    /// Time of one kernel at full clock with nothing in the cache.
    pub time_ns: u64,
    /// Bytes it touches.
    pub bytes: u64,
    /// Kernels of one run.
    pub kernels: u32,
    /// What the check of the result says.
    pub correct: Option<bool>,
    /// Whether it can be recorded.
    pub recordable: bool,
    /// Sets it was given.
    pub sets: u32,
    /// Sets whose outputs were filled with the pattern and not written since.
    pub poisoned: Vec<u32>,
}

impl FakeBody {
    /// One kernel a run.
    pub fn new(time_ns: u64, bytes: u64) -> Self {
        Self { time_ns, bytes, kernels: 1, correct: Some(true), recordable: true, sets: 0, poisoned: Vec::new() }
    }
}

impl Body<Fake> for FakeBody {
    fn footprint_bytes(&self) -> u64 {
        self.bytes
    }

    fn prepare(&mut self, _: &mut Fake, sets: u32) -> Result<(), Error> {
        self.sets = sets;
        Ok(())
    }

    fn poison(&mut self, _: &mut Fake, set: u32) -> Result<(), Error> {
        self.poisoned.push(set);
        Ok(())
    }

    fn launch(&mut self, driver: &mut Fake, set: u32) -> Result<(), Error> {
        if set >= self.sets {
            return Err(Error::Setup(format!("set {set} of {}", self.sets)));
        }
        // A run of no kernels writes nothing.
        self.poisoned.retain(|poisoned| self.kernels == 0 || *poisoned != set);
        for _ in 0..self.kernels {
            driver.launch(self.time_ns, set, self.bytes);
        }
        Ok(())
    }

    fn check(&mut self, _: &mut Fake, set: u32) -> Result<Option<bool>, Error> {
        if self.poisoned.contains(&set) {
            return Err(Error::Wrong(format!("set {set} was not written")));
        }
        Ok(self.correct)
    }

    fn recordable(&self) -> bool {
        self.recordable
    }
}
