//! `tidy`: the workspace's invariants, checked on its sources.
//!
//! Each rule is a function from text to complaints, so that its tests can show it catching something. The rules are also run by a test
//! of this crate over the real tree, which is how they reach every test run.
//!
//! To add a rule, write the function, call it in [`check`], and give it a test with a violation.

mod dependencies;
mod manifest;
mod sources;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use manifest::Manifest;

/// What holds no sources of ours; `.git` is a file in a linked worktree.
const SKIPPED: [&str; 4] = ["target", ".git", "artifacts", "node_modules"];

/// Everything wrong with the tree at `root`, one line each.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    let mut manifests = Vec::new();
    let mut texts = BTreeMap::new();
    for path in files(root)? {
        let shown = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if shown.ends_with("Cargo.toml") {
            manifests.push((shown.clone(), Manifest::parse(&text)));
        }
        complaints.extend(sources::check(&shown, &text));
        if path.extension().is_some_and(|kind| kind == "rs") || shown == dependencies::TABLE {
            texts.insert(shown, text);
        }
    }
    complaints.extend(manifest::check(&manifests));
    complaints.extend(dependencies::check(&manifests, &texts));
    complaints.sort();
    Ok(complaints)
}

/// Every file below `root`, outside what is skipped.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        let entries = std::fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            let name = entry.file_name();
            if SKIPPED.iter().any(|skipped| name == *skipped) {
                continue;
            }
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        let complaints = check(crate::root()).unwrap();
        assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    }

    #[test]
    fn the_walk_sees_the_sources() {
        let found = files(crate::root()).unwrap();
        for expected in ["Cargo.toml", "crates/longpole-trace/src/lib.rs", "xtask/src/tidy/mod.rs"] {
            assert!(found.contains(&crate::root().join(expected)), "{expected}");
        }
        assert!(found.iter().all(|path| !path.starts_with(crate::root().join("target"))));
    }
}
