//! Whose device a trace is of: tools and words to recommend differ.

use longpole_trace::Trace;

/// Whether the device is AMD's: versions say so first, then the API that was called, then the name of the device.
pub(crate) fn is_amd(trace: &Trace) -> bool {
    let versions = &trace.versions;
    if versions.cuda_runtime.is_some() || versions.cuda_driver.is_some() {
        return false;
    }
    if versions.hip_runtime.is_some() || versions.hip_driver.is_some() {
        return true;
    }
    let called = |prefix: &str| {
        let named: Vec<bool> = trace.strings.iter().map(|(_, name)| name.starts_with(prefix)).collect();
        trace.api_calls.name.iter().any(|name| named[name.index()])
    };
    if called("hip") {
        return true;
    }
    let is_named = |name: &String| ["AMD ", "Instinct", "Radeon"].iter().any(|part| name.contains(part));
    !called("cu") && trace.devices.iter().any(|device| device.properties.name.as_ref().is_some_and(is_named))
}

/// The profiler of single kernels.
pub(crate) fn kernel_profiler(is_amd: bool) -> &'static str {
    if is_amd { "rocprof-compute" } else { "ncu" }
}

/// What a recorded sequence of launches is called.
pub(crate) fn graphs(is_amd: bool) -> &'static str {
    if is_amd { "HIP graphs (torch.cuda.graph)" } else { "CUDA graphs" }
}
