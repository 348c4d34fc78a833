//! What an engine needs of a device beyond what benchmarks do: parts of buffers, memory of the host that the device writes into by itself, and
//! marks on the stream that the host can wait for without waiting for what came after them.

use cudarc::driver::{result, sys};

use crate::measure::{Driver as _, Error};

use super::{Buffer, Cuda, failed};

/// Memory of the host that is never moved, so that the device copies to it while the host goes on.
#[derive(Debug)]
pub struct Pinned {
    at: *mut u32,
    words: usize,
}

impl Pinned {
    /// What stands there now. Of a copy that has not been waited for it may be the old.
    pub fn word(&self, at: usize) -> Option<u32> {
        // SAFETY: the place lies within the allocation; the device may be writing to it, hence volatile.
        (at < self.words).then(|| unsafe { self.at.add(at).read_volatile() })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: it was allocated once and is freed here only.
        let _ = unsafe { result::free_host(self.at.cast()) };
    }
}

/// A place on the stream.
#[derive(Debug)]
pub struct Mark(sys::CUevent);

impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: it was made once and is destroyed here only.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

/// The address of a part of a buffer, if it is one.
fn part(buffer: &Buffer, offset: usize, bytes: usize) -> Result<u64, Error> {
    let inside = offset.checked_add(bytes).is_some_and(|end| end <= buffer.bytes());
    if inside {
        Ok(buffer.address() + offset as u64)
    } else {
        Err(Error::Setup(format!("{bytes} bytes from {offset} on are no part of a buffer of {}", buffer.bytes())))
    }
}

impl Cuda {
    /// Enqueues a copy from the host into a part of a buffer. The content has been read when this returns.
    pub fn write_part(&mut self, to: &Buffer, offset: usize, content: &[u8]) -> Result<(), Error> {
        let address = part(to, offset, content.len())?;
        // SAFETY: the part is as long as the content, which is pageable memory: the driver copies it aside before it returns.
        unsafe { result::memcpy_htod_async(address, content, self.stream) }.map_err(failed("cuMemcpyHtoDAsync"))
    }

    /// Reads a part of a buffer, after everything enqueued is done.
    pub fn read_part(&mut self, from: &Buffer, offset: usize, bytes: usize) -> Result<Vec<u8>, Error> {
        let address = part(from, offset, bytes)?;
        self.synchronize()?;
        let mut content = vec![0u8; bytes];
        // SAFETY: the content is as long as the part.
        unsafe { result::memcpy_dtoh_sync(&mut content, address) }.map_err(failed("cuMemcpyDtoH"))?;
        Ok(content)
    }

    /// Enqueues the filling of a part of a buffer with one byte.
    pub fn fill_part(&mut self, to: &Buffer, offset: usize, bytes: usize, byte: u8) -> Result<(), Error> {
        let address = part(to, offset, bytes)?;
        // SAFETY: the part lies in the buffer.
        unsafe { result::memset_d8_async(address, byte, bytes, self.stream) }.map_err(failed("cuMemsetD8Async"))
    }

    /// So many 32-bit words of pinned memory, zero.
    pub fn pinned(&self, words: usize) -> Result<Pinned, Error> {
        // SAFETY: the memory is written before it is read.
        let at = unsafe { result::malloc_host(words * 4, 0) }.map_err(failed("cuMemHostAlloc"))?.cast::<u32>();
        // SAFETY: it is that long.
        unsafe { at.write_bytes(0, words) };
        Ok(Pinned { at, words })
    }

    /// Enqueues a copy of one word into pinned memory.
    pub fn read_later(&mut self, from: &Buffer, offset: usize, to: &Pinned, at: usize) -> Result<(), Error> {
        let address = part(from, offset, 4)?;
        if at >= to.words {
            return Err(Error::Setup(format!("there is no word {at} of {}", to.words)));
        }
        // SAFETY: both places are 4 bytes long; the pinned memory is freed by a call that waits for the device.
        unsafe { sys::cuMemcpyDtoHAsync_v2(to.at.add(at).cast(), address, 4, self.stream) }.result().map_err(failed("cuMemcpyDtoHAsync"))
    }

    /// A mark that is nowhere yet.
    pub fn mark(&self) -> Result<Mark, Error> {
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
        Ok(Mark(result::event::create(flags).map_err(failed("cuEventCreate"))?))
    }

    /// Puts a mark behind everything enqueued so far.
    pub fn set_mark(&mut self, mark: &Mark) -> Result<(), Error> {
        // SAFETY: event and stream are valid.
        unsafe { result::event::record(mark.0, self.stream) }.map_err(failed("cuEventRecord"))
    }

    /// Waits until the device has come to a mark.
    pub fn wait_for(&mut self, mark: &Mark) -> Result<(), Error> {
        // SAFETY: the event is valid.
        unsafe { result::event::synchronize(mark.0) }.map_err(failed("cuEventSynchronize"))
    }
}
