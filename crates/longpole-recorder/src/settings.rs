//! What is to be recorded: environment variables, the only way to tell a library that a program loads unasked.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The folder that recordings are written to, one file a process. Without it nothing is recorded.
pub const DIRECTORY: &str = "LONGPOLE_RECORD_DIR";
/// `launch` (default): the usual calls that launch, copy, set, wait, allocate, or load; `all`: every call of the runtime and the driver, and which
/// event or stream was waited for.
pub const API: &str = "LONGPOLE_RECORD_API";
/// `profiler`: only between `cudaProfilerStart` and `cudaProfilerStop`; `nvtx:NAME` or `nvtx:NAME@DOMAIN`: only within such ranges.
pub const RANGE: &str = "LONGPOLE_RECORD_RANGE";
/// Milliseconds that are not recorded after CUDA starts.
pub const DELAY: &str = "LONGPOLE_RECORD_DELAY_MS";
/// Milliseconds after which recording stops.
pub const DURATION: &str = "LONGPOLE_RECORD_DURATION_MS";
/// `1`: the command line is recorded too.
pub const COMMAND_LINE: &str = "LONGPOLE_RECORD_COMMAND_LINE";
/// The CUPTI library to use.
pub const LIBCUPTI: &str = "LONGPOLE_LIBCUPTI";

/// Every variable that is read.
pub const VARIABLES: [&str; 7] = [DIRECTORY, API, RANGE, DELAY, DURATION, COMMAND_LINE, LIBCUPTI];

/// Which stretches of the program are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// All of it.
    Whole,
    /// Between `cudaProfilerStart` and `cudaProfilerStop`.
    Profiler,
    /// Within NVTX ranges of this name, of one domain if it is given.
    Nvtx { name: Vec<u8>, domain: Option<Vec<u8>> },
}

/// What is to be recorded.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) directory: PathBuf,
    pub(crate) all_api_calls: bool,
    pub(crate) range: Range,
    pub(crate) range_text: Vec<u8>,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) command_line: bool,
    pub(crate) libcupti: Option<PathBuf>,
}

impl Settings {
    /// Reads them; `None` when nothing is to be recorded.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let directory = variable(DIRECTORY).filter(|directory| !directory.is_empty())?;
        let bytes = |name| variable(name).map(OsStringExt::into_vec).unwrap_or_default();
        let number = |name| String::from_utf8(bytes(name)).ok()?.trim().parse().ok();
        let range_text = bytes(RANGE);
        Some(Self {
            directory: directory.into(),
            all_api_calls: bytes(API) == b"all",
            range: range(&range_text),
            range_text,
            delay_ms: number(DELAY).filter(|&delay| delay > 0),
            duration_ms: number(DURATION),
            command_line: bytes(COMMAND_LINE) == b"1",
            libcupti: variable(LIBCUPTI).filter(|path| !path.is_empty()).map(PathBuf::from),
        })
    }
}

impl Settings {
    /// The name of the NVTX range that is recorded; empty when it is none.
    pub(crate) fn range_name(&self) -> &[u8] {
        match &self.range {
            Range::Nvtx { name, .. } => name,
            Range::Whole | Range::Profiler => &[],
        }
    }
}

/// A text that is none of the forms records the whole program: too much is better than nothing.
fn range(text: &[u8]) -> Range {
    if text == b"profiler" {
        return Range::Profiler;
    }
    let Some(name) = text.strip_prefix(b"nvtx:").filter(|name| !name.is_empty()) else { return Range::Whole };
    // The last @, since names of functions may hold one and names of domains seldom do.
    match name.iter().rposition(|&byte| byte == b'@') {
        Some(at) if at > 0 && at + 1 < name.len() => {
            Range::Nvtx { name: name.get(..at).unwrap_or(name).to_vec(), domain: name.get(at + 1..).map(<[u8]>::to_vec) }
        }
        _ => Range::Nvtx { name: name.to_vec(), domain: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Option<Settings> {
        Settings::read(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
    }

    #[test]
    fn nothing_is_recorded_without_a_folder() {
        assert!(settings(&[]).is_none());
        assert!(settings(&[(DIRECTORY, "")]).is_none());
        let plain = settings(&[(DIRECTORY, "/tmp/x")]).unwrap();
        assert_eq!(plain.range, Range::Whole);
        assert!(!plain.all_api_calls && !plain.command_line);
        assert_eq!((plain.delay_ms, plain.duration_ms, plain.libcupti), (None, None, None));
    }

    #[test]
    fn every_variable_is_read() {
        let all = settings(&[
            (DIRECTORY, "d"),
            (API, "all"),
            (RANGE, "nvtx:decode"),
            (DELAY, " 1500 "),
            (DURATION, "20"),
            (COMMAND_LINE, "1"),
            (LIBCUPTI, "/x/libcupti.so.12"),
        ])
        .unwrap();
        assert!(all.all_api_calls && all.command_line);
        assert_eq!((all.delay_ms, all.duration_ms), (Some(1500), Some(20)));
        assert_eq!(all.libcupti, Some(PathBuf::from("/x/libcupti.so.12")));
        assert_eq!(all.range, Range::Nvtx { name: b"decode".to_vec(), domain: None });
    }

    #[test]
    fn ranges_may_name_a_domain() {
        assert_eq!(range(b"profiler"), Range::Profiler);
        assert_eq!(range(b"nvtx:a@b@c"), Range::Nvtx { name: b"a@b".to_vec(), domain: Some(b"c".to_vec()) });
        assert_eq!(range(b"nvtx:@x"), Range::Nvtx { name: b"@x".to_vec(), domain: None });
        assert_eq!(range(b"nvtx:x@"), Range::Nvtx { name: b"x@".to_vec(), domain: None });
        for odd in [&b""[..], b"nvtx:", b"Profiler", b"whole"] {
            assert_eq!(range(odd), Range::Whole);
        }
    }
}
