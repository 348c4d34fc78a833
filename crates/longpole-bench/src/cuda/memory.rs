//! Buffers on the device.

use cudarc::driver::{result, sys};

use crate::measure::Error;

use super::{Cuda, failed};

/// Memory of a device, freed when dropped. It must not outlive the [`Cuda`] it comes from by more than its own drop.
#[derive(Debug)]
pub struct Buffer {
    at: sys::CUdeviceptr,
    bytes: usize,
}

impl Buffer {
    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.at
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the address came from an allocation of this length and is freed here only. A failure has no remedy.
        let _ = unsafe { result::free_sync(self.at) };
    }
}

impl Cuda {
    /// Memory of unknown content.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer, Error> {
        // SAFETY: nothing is read before it is written; a length of 0 is refused by the driver.
        let at = unsafe { result::malloc_sync(bytes) }.map_err(failed("cuMemAlloc"))?;
        Ok(Buffer { at, bytes })
    }

    /// Memory filled with `content`.
    pub fn buffer_of(&self, content: &[u8]) -> Result<Buffer, Error> {
        let buffer = self.allocate(content.len())?;
        // SAFETY: the buffer is as long as the content, and the call returns when the content has been read.
        unsafe { result::memcpy_htod_sync(buffer.at, content) }.map_err(failed("cuMemcpyHtoD"))?;
        Ok(buffer)
    }

    /// What is in a buffer, after everything enqueued is done.
    pub fn content(&mut self, buffer: &Buffer) -> Result<Vec<u8>, Error> {
        crate::measure::Driver::synchronize(self)?;
        let mut content = vec![0u8; buffer.bytes];
        // SAFETY: the content is as long as the buffer.
        unsafe { result::memcpy_dtoh_sync(&mut content, buffer.at) }.map_err(failed("cuMemcpyDtoH"))?;
        Ok(content)
    }

    /// Enqueues the filling of a buffer with one byte.
    pub fn fill(&mut self, buffer: &Buffer, byte: u8) -> Result<(), Error> {
        // SAFETY: buffer and stream are valid.
        unsafe { result::memset_d8_async(buffer.at, byte, buffer.bytes, self.stream) }.map_err(failed("cuMemsetD8Async"))
    }

    /// Enqueues a copy of one whole buffer into another of the same length.
    pub fn copy(&mut self, from: &Buffer, to: &Buffer) -> Result<(), Error> {
        if from.bytes != to.bytes {
            return Err(Error::Setup(format!("a buffer of {} bytes cannot be copied into one of {}", from.bytes, to.bytes)));
        }
        self.launched += 1;
        // SAFETY: both buffers are valid and of that length.
        unsafe { result::memcpy_dtod_async(to.at, from.at, from.bytes, self.stream) }.map_err(failed("cuMemcpyDtoDAsync"))
    }
}

/// Sets of buffers that runs take in turn: equal inputs, and an output each.
#[derive(Debug, Default)]
pub struct Sets {
    inputs: Vec<Vec<Buffer>>,
    outputs: Vec<Buffer>,
}

impl Sets {
    /// As many sets as asked for; their inputs hold `inputs`, their outputs so many bytes.
    pub fn new(driver: &mut Cuda, sets: u32, inputs: &[&[u8]], output_bytes: usize) -> Result<Self, Error> {
        let mut made = Self::default();
        for _ in 0..sets.max(1) {
            let mut set = Vec::with_capacity(inputs.len());
            for (at, content) in inputs.iter().enumerate() {
                // From the second set on the device copies: the way from the host is a hundred times narrower.
                set.push(match made.inputs.first().and_then(|first| first.get(at)) {
                    Some(first) => {
                        let buffer = driver.allocate(content.len())?;
                        driver.copy(first, &buffer)?;
                        buffer
                    }
                    None => driver.buffer_of(content)?,
                });
            }
            made.inputs.push(set);
            made.outputs.push(driver.allocate(output_bytes)?);
        }
        crate::measure::Driver::synchronize(driver)?;
        Ok(made)
    }

    /// An input of a set.
    pub fn input(&self, set: u32, at: usize) -> Result<&Buffer, Error> {
        self.inputs
            .get(set as usize)
            .and_then(|set| set.get(at))
            .ok_or_else(|| Error::Setup(format!("there is no input {at} in set {set}")))
    }

    /// The output of a set.
    pub fn output(&self, set: u32) -> Result<&Buffer, Error> {
        self.outputs.get(set as usize).ok_or_else(|| Error::Setup(format!("there is no set {set}")))
    }
}
