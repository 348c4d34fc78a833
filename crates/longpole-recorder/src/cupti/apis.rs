//! Which calls of the runtime and the driver are recorded.
//!
//! Recording all of them costs more than everything else together: a kernel of PyTorch's comes with some ten calls that ask for devices,
//! errors and attributes. Only calls are wanted that give the device work, wait for it, or take long. And few of those, since switching a function on
//! costs calls of others too: in one run on an H200, launches took 4 microseconds less when only functions that launch were on than
//! with every function that launches, copies, sets, waits or allocates in any way (`docs/results/record-h200-overhead-2.txt`; as many records in both). So
//! each is named here, without its rare relatives (arrays, symbols, boxes): what they do is recorded too, only the call is not.

use super::{Cupti, DOMAIN_DRIVER, DOMAIN_RUNTIME};

/// One more than the largest number a function may have. CUPTI 13 stays below 900 in both domains.
const MOST_FUNCTIONS: u32 = 2048;

/// Numbers without a name in a row, behind which there are no more functions.
const LONGEST_GAP: u32 = 64;

/// Names without version (`_v7000`, `_v2`); those with a star also for programs whose default stream is one of the thread (`_ptsz`, `_ptds`).
const WANTED: &[&str] = &[
    // Work for the device.
    "cudaLaunchKernel*",
    "cudaLaunchKernelExC*",
    "cudaLaunchCooperativeKernel*",
    "cudaGraphLaunch*",
    "cudaMemcpy*",
    "cudaMemcpyAsync*",
    "cudaMemcpy2DAsync",
    "cudaMemcpyPeerAsync",
    "cudaMemset*",
    "cudaMemsetAsync*",
    "cuLaunchKernel*",
    "cuLaunchKernelEx*",
    "cuLaunchCooperativeKernel*",
    "cuGraphLaunch*",
    "cuMemcpyHtoD",
    "cuMemcpyDtoH",
    "cuMemcpyHtoDAsync*",
    "cuMemcpyDtoHAsync*",
    "cuMemcpyDtoDAsync*",
    "cuMemcpyAsync",
    "cuMemcpyPeerAsync",
    "cuMemsetD8Async",
    "cuMemsetD32Async",
    // Graphs are made.
    "cudaStreamBeginCapture",
    "cudaStreamEndCapture",
    "cuStreamBeginCapture",
    "cuStreamEndCapture",
    "cudaGraphInstantiate",
    "cudaGraphInstantiateWithFlags",
    "cudaGraphExecUpdate",
    "cuGraphInstantiateWithFlags",
    "cuGraphInstantiateWithParams",
    // Waiting.
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize*",
    "cudaEventSynchronize",
    "cudaStreamWaitEvent",
    "cuCtxSynchronize",
    "cuStreamSynchronize*",
    "cuEventSynchronize",
    "cuStreamWaitEvent",
    // Memory.
    "cudaMalloc",
    "cudaFree",
    "cudaMallocAsync",
    "cudaFreeAsync",
    "cudaMallocHost",
    "cudaHostAlloc",
    "cudaFreeHost",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemAllocAsync",
    "cuMemFreeAsync",
    "cuMemCreate",
    "cuMemHostAlloc",
    // Code.
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuLibraryLoadData",
    // The marks of a range.
    "cudaProfilerStart",
    "cudaProfilerStop",
    "cuProfilerStart",
    "cuProfilerStop",
];

/// Whether a call is recorded when not all of them are.
pub(crate) fn is_wanted(name: &[u8]) -> bool {
    let mut name = name;
    let mut of_thread = false;
    // In either order: `cudaMemcpy_ptds_v7000`, `cuMemcpyHtoDAsync_v2_ptsz`.
    while let Some(at) = name.iter().rposition(|&byte| byte == b'_') {
        let (front, suffix) = name.split_at(at);
        match suffix {
            b"_ptsz" | b"_ptds" => of_thread = true,
            [b'_', b'v', version @ ..] if !version.is_empty() && version.iter().all(u8::is_ascii_digit) => {}
            _ => return false,
        }
        name = front;
    }
    WANTED.iter().any(|wanted| match wanted.strip_suffix('*') {
        Some(wanted) => wanted.as_bytes() == name,
        None => wanted.as_bytes() == name && !of_thread,
    })
}

/// The calls that are recorded, of both domains.
#[derive(Default)]
pub(crate) struct Wanted {
    functions: Vec<(u32, u32)>,
    bits: [Vec<u64>; 2],
}

impl Wanted {
    /// Goes through the names of a libcupti's functions. Numbers are not fixed here: newer libraries have more.
    pub(crate) fn of(cupti: &Cupti) -> Self {
        let mut wanted = Self::default();
        for domain in [DOMAIN_DRIVER, DOMAIN_RUNTIME] {
            let mut gap = 0;
            for id in 1..MOST_FUNCTIONS {
                match cupti.function_name(domain, id) {
                    Some(name) if is_wanted(name) => {
                        wanted.add(domain, id);
                        gap = 0;
                    }
                    Some(_) => gap = 0,
                    None => gap += 1,
                }
                if gap > LONGEST_GAP {
                    break;
                }
            }
        }
        wanted
    }

    fn add(&mut self, domain: u32, id: u32) {
        self.functions.push((domain, id));
        let bits = &mut self.bits[usize::from(domain == DOMAIN_RUNTIME)];
        let word = (id / 64) as usize;
        if bits.len() <= word {
            bits.resize(word + 1, 0);
        }
        if let Some(word) = bits.get_mut(word) {
            *word |= 1 << (id % 64);
        }
    }

    /// Domain and number of each.
    pub(crate) fn functions(&self) -> &[(u32, u32)] {
        &self.functions
    }

    /// Whether a call is among them.
    pub(crate) fn has(&self, domain: u32, id: u32) -> bool {
        let bits = &self.bits[usize::from(domain == DOMAIN_RUNTIME)];
        bits.get((id / 64) as usize).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_give_work_wait_or_take_long_are_wanted() {
        for name in [
            "cudaLaunchKernel_v7000",
            "cudaLaunchKernel_ptsz_v7000",
            "cudaLaunchKernelExC_v11060",
            "cuLaunchKernelEx",
            "cuLaunchKernelEx_ptsz",
            "cudaGraphLaunch_v10000",
            "cudaMemcpy_ptds_v7000",
            "cuMemcpyHtoDAsync_v2",
            "cuMemcpyHtoDAsync_v2_ptsz",
            "cudaMemsetAsync_v3020",
            "cudaDeviceSynchronize_v3020",
            "cudaStreamWaitEvent_v3020",
            "cudaMalloc_v3020",
            "cudaFreeAsync_v11020",
            "cuMemCreate",
            "cuMemAlloc_v2",
            "cuModuleLoadData",
            "cudaProfilerStart_v4000",
        ] {
            assert!(is_wanted(name.as_bytes()), "{name}");
        }
        for name in [
            "cudaGetDevice_v3020",
            "cudaPeekAtLastError_v3020",
            "cudaStreamIsCapturing_v10000",
            "cudaEventQuery_v3020",
            "cudaEventRecord_v3020",
            "cudaMemcpyToArray_v3020",
            "cudaEventSynchronize_ptsz_v7000",
            "cudaMalloc_x",
            "cudaMalloc_v",
            "cuCtxGetCurrent",
            "cuPointerGetAttribute",
            "cuGraphAddKernelNode",
            "_v2",
            "",
        ] {
            assert!(!is_wanted(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn wanted_calls_are_found_by_number() {
        let mut wanted = Wanted::default();
        wanted.add(DOMAIN_RUNTIME, 211);
        wanted.add(DOMAIN_DRIVER, 64);
        assert!(wanted.has(DOMAIN_RUNTIME, 211) && wanted.has(DOMAIN_DRIVER, 64));
        assert!(!wanted.has(DOMAIN_DRIVER, 211) && !wanted.has(DOMAIN_RUNTIME, 64) && !wanted.has(DOMAIN_RUNTIME, u32::MAX));
        assert_eq!(wanted.functions(), [(DOMAIN_RUNTIME, 211), (DOMAIN_DRIVER, 64)]);
    }
}
