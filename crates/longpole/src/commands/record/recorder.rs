//! Finding the recorder, and seeing that no other is to be injected.

use std::env;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// What the recorder's file is called.
const FILE: &str = "liblongpole_recorder.so";

/// The variable that names it.
const VARIABLE: &str = "LONGPOLE_RECORDER";

/// What the CUDA driver and NVTX take the library to load from.
pub(super) const INJECTIONS: [&str; 2] = ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"];

/// The recorder, as an absolute path: the program may change its folder.
pub(super) fn find(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let from_variable = env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let named = given.map(|path| (path.to_owned(), "--recorder")).or_else(|| from_variable.map(|path| (path, "$LONGPOLE_RECORDER")));
    if let Some((path, by)) = named {
        return match path.canonicalize() {
            Ok(real) if real.is_file() => Ok(real),
            _ => Err(Failure::Usage(format!("there is no recorder at `{}`, which {by} names", path.display()))),
        };
    }
    let beside = env::current_exe().ok().and_then(|exe| Some(exe.canonicalize().unwrap_or(exe).parent()?.to_owned()));
    let places: Vec<PathBuf> = beside.iter().flat_map(|folder| [folder.join(FILE), folder.join("../lib").join(FILE)]).collect();
    places.iter().find_map(|path| path.canonicalize().ok().filter(|path| path.is_file())).ok_or_else(|| {
        let folder = beside.map_or_else(String::new, |folder| format!(" in `{}` or its ../lib", folder.display()));
        Failure::Usage(format!(
            "there is no recorder ({FILE}){folder}; build it with `cargo build --release -p longpole-recorder`, or name it with --recorder PATH"
        ))
    })
}

/// Another tool's library in the place of ours is not thrown out, and two cannot be loaded from one variable.
pub(super) fn refuse_others(recorder: &Path) -> Result<(), Failure> {
    for variable in INJECTIONS {
        let Some(value) = env::var_os(variable).filter(|value| !value.is_empty()) else { continue };
        if Path::new(&value).canonicalize().is_ok_and(|path| path == recorder) {
            continue;
        }
        return Err(Failure::Usage(format!(
            "{variable} is set to `{}`: another tool is to be injected there, and CUPTI serves one at a time; unset it to record",
            value.to_string_lossy()
        )));
    }
    Ok(())
}
