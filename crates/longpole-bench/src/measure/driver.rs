//! What measuring needs of a device, and of the thing measured. There are two drivers: CUDA, and a simulated one for tests.

use crate::protocol::Device;

use super::Error;

/// Work to enqueue on a driver.
pub type Enqueue<'a, D> = dyn FnMut(&mut D) -> Result<(), Error> + 'a;

/// A device that runs enqueued work in order.
pub trait Driver: Sized {
    /// A recorded sequence of launches.
    type Graph;

    /// What this device is.
    fn device(&self) -> Device;

    /// Bytes of its memory that can still be allocated; `None` if unknown.
    fn free_bytes(&mut self) -> Option<u64>;

    /// The host's clock in nanoseconds from any beginning.
    fn now_ns(&mut self) -> u64;

    /// Launches enqueued so far, those being recorded included.
    fn launched(&self) -> u64;

    /// Waits until everything enqueued is done.
    fn synchronize(&mut self) -> Result<(), Error>;

    /// Enqueues `lead`, which is not timed, and `work`, which is; reads the state of the device while it works; waits; returns the time of
    /// `work` on the device's clock.
    fn timed(&mut self, lead: &mut Enqueue<'_, Self>, work: &mut Enqueue<'_, Self>) -> Result<Timed, Error>;

    /// Records what `work` enqueues, without doing it.
    fn record(&mut self, work: &mut Enqueue<'_, Self>) -> Result<Self::Graph, Error>;

    /// Enqueues what was recorded.
    fn replay(&mut self, graph: &Self::Graph) -> Result<(), Error>;

    /// Tells a profiler to start or to stop looking.
    fn profiler(&mut self, on: bool) -> Result<(), Error>;
}

/// A time and the state it was taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// Picoseconds.
    pub time_ps: u64,
    /// The device meanwhile.
    pub state: State,
}

/// Clocks, temperature, power and what holds the clocks down. What cannot be read is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Clock of the multiprocessors in MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Clock of the memory in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Temperature of the chip in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Power drawn by the card in milliwatts.
    pub power_mw: Option<u64>,
    /// Throttle reasons by name.
    pub throttle: Option<Vec<String>>,
}

/// Reasons that lower clocks without making a sample unlike others: nothing ran, or someone chose the clocks.
const HARMLESS: [&str; 3] = ["gpu_idle", "applications_clocks_setting", "display_clock_setting"];

impl State {
    /// Whether the device was held down by power, heat or its neighbours.
    pub fn throttled(&self) -> Option<bool> {
        self.throttle.as_ref().map(|reasons| reasons.iter().any(|reason| !HARMLESS.contains(&reason.as_str())))
    }
}

/// The thing measured: its buffers on a device, how it is launched, and how its result is checked.
///
/// A body comes to life when its benchmark is due and is dropped before the next one, so that buffers of one do not crowd out another.
pub trait Body<D: Driver> {
    /// Bytes that one run touches: inputs and outputs of one set of buffers.
    fn footprint_bytes(&self) -> u64;

    /// Allocates so many sets of buffers, fills every input, and compiles what has to be compiled.
    fn prepare(&mut self, driver: &mut D, sets: u32) -> Result<(), Error>;

    /// Fills the outputs of a set with bytes of 0xFF, which is NaN in every floating-point type and -1 in every integer.
    fn poison(&mut self, driver: &mut D, set: u32) -> Result<(), Error>;

    /// Enqueues one run on a set. It must not wait for the device: the same call is recorded into graphs.
    fn launch(&mut self, driver: &mut D, set: u32) -> Result<(), Error>;

    /// Checks the outputs of a set after one run: `Some(true)` if they are right, [`Error::Wrong`] if not, `None` if it cannot tell.
    fn check(&mut self, driver: &mut D, set: u32) -> Result<Option<bool>, Error>;

    /// Whether a run may be recorded into a graph.
    fn recordable(&self) -> bool {
        true
    }
}
