//! Which libcupti: the one that the process has already, else one that fits the driver.
//!
//! Several can lie on a machine and even in one process (PyTorch's wheel and Triton bring their own). A second copy beside the one that the
//! program uses would be refused by the driver or see nothing, so a loaded one comes first.

use std::ffi::{CString, OsStr, c_int};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::Cupti;
use crate::sys::Library;

/// Names by which a loaded library is found, with the CUDA version each is of.
const NAMES: [&str; 2] = ["libcupti.so.13", "libcupti.so.12"];

/// Folders of toolkits below which libcupti may lie.
const TOOLKIT_FOLDERS: [&str; 4] = ["extras/CUPTI/lib64", "lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];

/// Folders of wheels, below the folder that holds Python's packages.
const WHEEL_FOLDERS: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cuda_cupti/lib"];

/// The most of the process's map that is read: mappings are about 100 bytes a line.
const MOST_MAP_BYTES: u64 = 8 << 20;

/// Libraries in the order in which they are tried; each is loaded only when it is asked for.
pub(crate) fn candidates(explicit: Option<&Path>) -> impl Iterator<Item = Cupti> + use<> {
    let names = if driver_version().is_some_and(|version| version < 13_000) { [NAMES[1], NAMES[0]] } else { NAMES };
    let explicit = explicit.map(Path::to_path_buf);
    let only = explicit.is_some();
    let named = explicit.into_iter().filter_map(|path| open(&path));
    let loaded = NAMES.into_iter().filter_map(|name| Library::loaded(&CString::new(name).ok()?));
    let searched = names.into_iter().filter_map(|name| open(Path::new(name)));
    let found = std::iter::once_with(move || {
        let folders = folders(&mapped_files());
        folders.into_iter().flat_map(move |folder| names.map(|name| folder.join(name)))
    });
    let found = found.flatten().filter(|path| path.exists()).filter_map(|path| open(&path));
    // Whoever names a library means that one: another in its place would be a surprise.
    named.chain(loaded.chain(searched).chain(found).filter(move |_| !only)).filter_map(Cupti::of)
}

fn open(path: &Path) -> Option<Library> {
    Library::open(&CString::new(path.as_os_str().as_bytes()).ok()?)
}

/// The CUDA version that the driver supports, packed as 1000 major + 10 minor. It can be asked before CUDA is initialised.
pub(crate) fn driver_version() -> Option<u32> {
    let driver = Library::loaded(c"libcuda.so.1")?;
    // SAFETY: this is the documented type.
    let ask: unsafe extern "C" fn(*mut c_int) -> c_int = unsafe { driver.function(c"cuDriverGetVersion")? };
    version_from(ask)
}

/// The version of the CUDA runtime that the process has loaded, packed alike.
pub(crate) fn runtime_version() -> Option<u32> {
    let runtime = [c"libcudart.so.13", c"libcudart.so.12"].into_iter().find_map(Library::loaded)?;
    // SAFETY: this is the documented type.
    let ask: unsafe extern "C" fn(*mut c_int) -> c_int = unsafe { runtime.function(c"cudaRuntimeGetVersion")? };
    version_from(ask)
}

fn version_from(ask: unsafe extern "C" fn(*mut c_int) -> c_int) -> Option<u32> {
    let mut version = 0;
    // SAFETY: the number goes to a place of ours.
    (unsafe { ask(&raw mut version) } == 0).then(|| u32::try_from(version).ok())?
}

/// The files that the process has mapped.
fn mapped_files() -> Vec<PathBuf> {
    let mut map = Vec::new();
    if let Ok(file) = fs::File::open("/proc/self/maps") {
        // What could be read is enough.
        let _ = file.take(MOST_MAP_BYTES).read_to_end(&mut map);
    }
    files_in(&map)
}

/// The files named in a process's map: the sixth field of a line, which may hold spaces.
fn files_in(map: &[u8]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for line in map.split(|&byte| byte == b'\n') {
        let Some(at) = line.iter().position(|&byte| byte == b'/') else { continue };
        let path = Path::new(OsStr::from_bytes(line.get(at..).unwrap_or_default()));
        if files.last().is_none_or(|last| last != path) {
            files.push(path.to_path_buf());
        }
    }
    files
}

/// Where libcupti may lie, by what is loaded and by custom.
fn folders(mapped: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut add = |folder: PathBuf| {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    };
    for file in mapped {
        let name = file.file_name().unwrap_or_default().as_bytes();
        let (Some(folder), true) = (file.parent(), name.starts_with(b"lib")) else { continue };
        if name.starts_with(b"libcudart.so") {
            add(folder.to_path_buf());
            // <toolkit>/lib64 has extras beside it, <toolkit>/targets/x86_64-linux/lib two levels up.
            for toolkit in [folder.parent(), folder.ancestors().nth(3)].into_iter().flatten() {
                add(toolkit.join("extras/CUPTI/lib64"));
            }
        }
        if name.starts_with(b"libtorch_cuda.so") || name.starts_with(b"libcudart.so") {
            // <packages>/torch/lib/libtorch_cuda.so, <packages>/nvidia/cuda_runtime/lib/libcudart.so.12, <packages>/nvidia/cu13/lib/libcudart.so.13
            for packages in [folder.ancestors().nth(2), folder.ancestors().nth(3)].into_iter().flatten() {
                for wheel in WHEEL_FOLDERS {
                    add(packages.join(wheel));
                }
            }
        }
    }
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    for toolkit in homes.chain(toolkits("/usr/local")) {
        for folder in TOOLKIT_FOLDERS {
            add(toolkit.join(folder));
        }
    }
    folders
}

/// The toolkits of a machine, newest first: `cuda`, then `cuda-13.0` before `cuda-12.8`.
fn toolkits(below: &str) -> Vec<PathBuf> {
    let mut names: Vec<Vec<u8>> = fs::read_dir(below)
        .into_iter()
        .flatten()
        .take(4096)
        .filter_map(|entry| Some(entry.ok()?.file_name().into_vec()))
        .filter(|name| name.starts_with(b"cuda"))
        .collect();
    names.sort_by(|a, b| (b == b"cuda").cmp(&(a == b"cuda")).then_with(|| b.cmp(a)));
    names.into_iter().map(|name| Path::new(below).join(OsStr::from_bytes(&name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_map_are_named_once_each() {
        let map = b"7f00-7f10 r-xp 0000 08:01 12   /opt/a b/libx.so.1\n7f10-7f20 rw-p 0000 08:01 12   /opt/a b/libx.so.1\n\
            7f20-7f30 rw-p 0000 00:00 0\n7f30-7f40 r--p 0000 08:01 13 /usr/lib/liby.so\n";
        assert_eq!(files_in(map), [PathBuf::from("/opt/a b/libx.so.1"), PathBuf::from("/usr/lib/liby.so")]);
        assert!(files_in(b"no paths\n\n").is_empty());
    }

    #[test]
    fn wheels_and_toolkits_are_found_from_what_is_loaded() {
        let torch = folders(&["/v/site-packages/torch/lib/libtorch_cuda.so".into()]);
        assert!(torch.contains(&"/v/site-packages/nvidia/cu13/lib".into()), "{torch:?}");
        assert!(torch.contains(&"/v/site-packages/nvidia/cuda_cupti/lib".into()));
        let wheel = folders(&["/v/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12".into()]);
        assert!(wheel.contains(&"/v/site-packages/nvidia/cuda_cupti/lib".into()), "{wheel:?}");
        let toolkit = folders(&["/usr/local/cuda-12.8/targets/x86_64-linux/lib/libcudart.so.12".into()]);
        assert!(toolkit.contains(&"/usr/local/cuda-12.8/extras/CUPTI/lib64".into()), "{toolkit:?}");
        let flat = folders(&["/opt/cuda/lib64/libcudart.so.13.0".into()]);
        assert!(flat.contains(&"/opt/cuda/extras/CUPTI/lib64".into()), "{flat:?}");
        assert!(!folders(&["/usr/lib/libc.so.6".into()]).contains(&"/usr/lib".into()));
    }

    #[test]
    fn a_named_library_that_is_not_there_is_not_replaced() {
        assert_eq!(candidates(Some(Path::new("/nonexistent/libcupti.so.12"))).count(), 0);
    }
}
