//! What needs a device: skipped by name, with the reason, where there is none.
#![expect(clippy::print_stderr, reason = "nobody may take a skip for a pass")]

use longpole_bench::cuda::Cuda;
use longpole_qwen3::check::{Extent, check};

/// The device, or why there is none.
fn device(test: &str) -> Option<Cuda> {
    match Cuda::open(0) {
        Ok(driver) => Some(driver),
        Err(error) => {
            eprintln!("{test}: skipped, {error}");
            None
        }
    }
}

#[test]
fn kernels_and_small_models_give_what_the_host_gives() {
    let Some(mut driver) = device("kernels_and_small_models_give_what_the_host_gives") else { return };
    let mut out = Vec::new();
    let failed = check(&mut driver, Extent::Small, &mut out).unwrap();
    assert_eq!(failed, 0, "\n{}", String::from_utf8_lossy(&out));
}
