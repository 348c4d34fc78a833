//! Finding a model: a folder, or a name in the cache of the Hugging Face hub, where `models--OWNER--NAME/refs/main` holds the commit whose files are in
//! `snapshots/COMMIT`. Nothing is downloaded.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files;

/// The longest name of an owner or a model on the hub.
const MAX_NAME: usize = 96;

/// Bytes of a reference at most: it holds a commit.
const MAX_REFERENCE: u64 = 4096;

/// Where the hub's cache can be, by its own variables, the first that is set winning.
pub fn cache_folder(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("HF_HUB_CACHE")
        .or_else(|| set("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("huggingface/hub")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/huggingface/hub")))
}

/// The folder of a model by a path or by its name on the hub.
pub fn find(model: &str, cache: Option<&Path>) -> Result<PathBuf, Error> {
    let path = Path::new(model);
    if path.is_dir() {
        return Ok(path.to_owned());
    }
    let parts: Vec<&str> = model.split('/').collect();
    // What the hub allows in names. Others cannot be had from there.
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let sound = |part: &&str| {
        let length = (1..=MAX_NAME).contains(&part.len());
        let ends = !part.starts_with(['-', '.']) && !part.ends_with(['-', '.']);
        length && ends && part.bytes().all(letter) && !part.contains("--") && !part.contains("..")
    };
    if parts.len() != 2 || !parts.iter().all(sound) {
        return Err(Error::NotFound(format!("{model} is no folder, and no name of a model such as Qwen/Qwen3-0.6B")));
    }
    let Some(cache) = cache else { return Err(Error::NotFound(format!("{model} is no folder, and there is no cache to look it up in"))) };
    let folder = cache.join(format!("models--{}--{}", parts[0], parts[1]));
    let shown = cache.display();
    let absent = || Error::NotFound(format!("{model} is not in {shown}; `hf download {model}` puts it there"));
    let head = files::text(&folder.join("refs/main"), MAX_REFERENCE).map_err(|_| absent())?;
    let head = head.trim();
    if head.is_empty() || !head.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(absent());
    }
    let snapshot = folder.join("snapshots").join(head);
    if snapshot.is_dir() { Ok(snapshot) } else { Err(absent()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_hub_says() {
        let with = |set: &'static [(&str, &str)]| {
            cache_folder(move |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(with(&[("HF_HUB_CACHE", "/a"), ("HF_HOME", "/b")]), Some(PathBuf::from("/a")));
        assert_eq!(with(&[("HF_HUB_CACHE", ""), ("HF_HOME", "/b")]), Some(PathBuf::from("/b/hub")));
        assert_eq!(with(&[("HOME", "/h")]), Some(PathBuf::from("/h/.cache/huggingface/hub")));
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn a_name_is_looked_up() {
        let cache = tempfile::tempdir().unwrap();
        let model = cache.path().join("models--Qwen--Qwen3-0.6B");
        std::fs::create_dir_all(model.join("snapshots/abc123")).unwrap();
        std::fs::create_dir_all(model.join("refs")).unwrap();
        let said = |name: &str| find(name, Some(cache.path())).unwrap_err().to_string();
        assert!(said("Qwen/Qwen3-0.6B").contains("hf download Qwen/Qwen3-0.6B"));
        std::fs::write(model.join("refs/main"), "abc123\n").unwrap();
        assert_eq!(find("Qwen/Qwen3-0.6B", Some(cache.path())).unwrap(), model.join("snapshots/abc123"));
        assert_eq!(find(cache.path().to_str().unwrap(), None).unwrap(), cache.path());
        for name in ["nowhere", "../x", "no such/folder", "a/b\nc", "-x/y", "a--b/c", "a/b..c", "/no-such", "a/b/c", "a/", "é/b"] {
            let complaint = said(name);
            assert!(complaint.contains("is no folder") && !complaint.contains("hf download"), "{complaint}");
        }
        assert!(said(&format!("a/{}", "b".repeat(97))).contains("is no folder"));
        std::fs::write(model.join("refs/main"), "../../..").unwrap();
        assert!(said("Qwen/Qwen3-0.6B").contains("is not in"));
    }
}
