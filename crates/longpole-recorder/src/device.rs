//! What the devices are, asked of the driver.

use std::ffi::{c_char, c_int};

use longpole_recording::{Device, StringId};

use crate::sys::{Library, text};

/// Devices of a process that are described; no machine has more.
const MOST_DEVICES: c_int = 64;

/// Numbers of `CUdevice_attribute`.
mod attribute {
    pub(super) const WARP_SIZE: i32 = 10;
    pub(super) const CLOCK_RATE: i32 = 13;
    pub(super) const MULTIPROCESSOR_COUNT: i32 = 16;
    pub(super) const MEMORY_CLOCK_RATE: i32 = 36;
    pub(super) const MEMORY_BUS_WIDTH: i32 = 37;
    pub(super) const L2_CACHE_SIZE: i32 = 38;
    pub(super) const MAX_THREADS_PER_MULTIPROCESSOR: i32 = 39;
    pub(super) const COMPUTE_CAPABILITY_MAJOR: i32 = 75;
    pub(super) const COMPUTE_CAPABILITY_MINOR: i32 = 76;
    pub(super) const MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: i32 = 81;
    pub(super) const MAX_REGISTERS_PER_MULTIPROCESSOR: i32 = 82;
}

struct Driver {
    device: unsafe extern "C" fn(*mut c_int, c_int) -> c_int,
    count: unsafe extern "C" fn(*mut c_int) -> c_int,
    name: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
    attribute: unsafe extern "C" fn(*mut c_int, i32, c_int) -> c_int,
    memory: Option<unsafe extern "C" fn(*mut usize, c_int) -> c_int>,
    uuid: Option<unsafe extern "C" fn(*mut [u8; 16], c_int) -> c_int>,
}

impl Driver {
    fn loaded() -> Option<Self> {
        let library = Library::loaded(c"libcuda.so.1")?;
        // SAFETY: these are the documented types.
        unsafe {
            Some(Self {
                device: library.function(c"cuDeviceGet")?,
                count: library.function(c"cuDeviceGetCount")?,
                name: library.function(c"cuDeviceGetName")?,
                attribute: library.function(c"cuDeviceGetAttribute")?,
                memory: library.function(c"cuDeviceTotalMem_v2"),
                uuid: library.function(c"cuDeviceGetUuid_v2").or_else(|| library.function(c"cuDeviceGetUuid")),
            })
        }
    }

    fn attribute(&self, device: c_int, attribute: i32) -> Option<u32> {
        let mut value = 0;
        // SAFETY: the value goes to a place of ours.
        let code = unsafe { (self.attribute)(&raw mut value, attribute, device) };
        (code == 0).then(|| u32::try_from(value).ok())?
    }
}

/// Describes every device; `None` while the driver is not initialised. The name is put into the recording by `string`.
pub(crate) fn describe(mut string: impl FnMut(&[u8]) -> StringId) -> Option<Vec<Device>> {
    use attribute as a;
    let driver = Driver::loaded()?;
    let mut count = 0;
    // SAFETY: the number goes to a place of ours.
    if unsafe { (driver.count)(&raw mut count) } != 0 {
        return None;
    }
    let mut devices = Vec::new();
    for ordinal in 0..count.min(MOST_DEVICES) {
        let mut handle = 0;
        let mut name = [0; 256];
        // SAFETY: the handle goes to a place of ours.
        if unsafe { (driver.device)(&raw mut handle, ordinal) } != 0 {
            continue;
        }
        // SAFETY: the driver writes at most so many characters, the last a zero.
        let named = unsafe { (driver.name)(name.as_mut_ptr(), name.len() as c_int, handle) } == 0;
        let mut bytes = 0;
        // SAFETY: the size goes to a place of ours.
        let sized = driver.memory.is_some_and(|ask| unsafe { ask(&raw mut bytes, handle) } == 0);
        let mut uuid = [0; 16];
        // SAFETY: a UUID has sixteen bytes.
        let identified = driver.uuid.is_some_and(|ask| unsafe { ask(&raw mut uuid, handle) } == 0);
        let uuid = u128::from_be_bytes(uuid);
        let ask = |attribute| driver.attribute(handle, attribute);
        devices.push(Device {
            device: ordinal.cast_unsigned(),
            // SAFETY: the array is ours, and no more of it is read.
            name: if named { string(unsafe { text(name.as_ptr(), name.len()) }) } else { StringId::NONE },
            uuid_high: identified.then_some((uuid >> 64) as u64),
            uuid_low: identified.then_some(uuid as u64),
            sm_count: ask(a::MULTIPROCESSOR_COUNT),
            memory_bytes: sized.then_some(bytes as u64),
            compute_major: ask(a::COMPUTE_CAPABILITY_MAJOR),
            compute_minor: ask(a::COMPUTE_CAPABILITY_MINOR),
            core_clock_khz: ask(a::CLOCK_RATE),
            memory_clock_khz: ask(a::MEMORY_CLOCK_RATE),
            memory_bus_bits: ask(a::MEMORY_BUS_WIDTH),
            l2_bytes: ask(a::L2_CACHE_SIZE).map(u64::from),
            max_threads_per_sm: ask(a::MAX_THREADS_PER_MULTIPROCESSOR),
            registers_per_sm: ask(a::MAX_REGISTERS_PER_MULTIPROCESSOR),
            shared_bytes_per_sm: ask(a::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR).map(u64::from),
            warp_size: ask(a::WARP_SIZE),
        });
    }
    Some(devices)
}
