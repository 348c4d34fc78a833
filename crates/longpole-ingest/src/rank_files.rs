//! Sets of rank files: which files of a directory belong, in which order, and which rank each is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Endings of files that may be traces.
const ENDINGS: [&str; 4] = [".json", ".json.gz", ".json.zst", ".hatchet"];
/// Endings of files that are looked at where there is no trace.
const EXPORTS: [&str; 3] = [".sqlite", ".longpole", ".lprec"];

/// True for names that may be traces (no hidden files).
pub(crate) fn is_trace_name(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    !base.starts_with('.') && ENDINGS.iter().any(|ending| base.to_ascii_lowercase().ends_with(ending))
}

/// True for names that may be Nsight Systems exports or recordings.
pub(crate) fn is_export_name(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    !base.starts_with('.') && EXPORTS.iter().any(|ending| base.to_ascii_lowercase().ends_with(ending))
}

/// The trace files of a directory, by rank where their names tell it, then by name; where there are none, the exports.
pub(crate) fn trace_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut exports) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let list = if is_trace_name(&name) { &mut found } else { &mut exports };
        if (is_trace_name(&name) || is_export_name(&name)) && fs::metadata(entry.path()).is_ok_and(|m| m.is_file()) {
            list.push((rank_in_name(&name).unwrap_or(u32::MAX), name, entry.path()));
        }
    }
    if found.is_empty() {
        found = exports;
    }
    found.sort();
    Ok(found.into_iter().map(|(_, _, path)| path).collect())
}

/// The rank that a file name tells: the number after `rank` or `worker` (`rank0`, `rank_12`, `worker3_step_12`).
pub(crate) fn rank_in_name(name: &str) -> Option<u32> {
    let name = name.rsplit('/').next()?.to_ascii_lowercase();
    ["rank", "worker"].iter().find_map(|word| {
        name.match_indices(word).find_map(|(at, _)| {
            let rest = name[at + word.len()..].trim_start_matches(['_', '-', '=', '.']);
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            rest[..digits].parse().ok()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_read_from_names() {
        assert_eq!(rank_in_name("nccl_rank1.json.gz"), Some(1));
        assert_eq!(rank_in_name("dlrm/worker12_step_3.169.pt.trace.json"), Some(12));
        assert_eq!(rank_in_name("ranking_rank-07.json"), Some(7));
        assert_eq!(rank_in_name("host_123.json"), None);
    }

    #[test]
    fn only_traces_are_taken() {
        assert!(is_trace_name("a/b/x.pt.trace.json.gz"));
        assert!(!is_trace_name("a/._x.json"));
        assert!(!is_trace_name("x.table.txt"));
        assert!(is_export_name("a/run.sqlite") && is_export_name("17.lprec") && !is_export_name("a/.run.sqlite"));
    }
}
