//! Rules on `Cargo.toml` files: who may depend on whom, pinned versions, shared lints.

use std::collections::BTreeMap;

/// Which of our crates each of our crates may depend on, dev-dependencies included. This is the architecture in one table.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("longpole-trace", &[]),
    ("longpole-recording", &[]),
    ("longpole-recording", &[]),
    ("longpole-ncu", &[]),
    ("longpole-doctor", &[]),
    ("longpole-stats", &[]),
    ("longpole-bench", &["longpole-stats"]),
    ("longpole-ingest", &["longpole-trace", "longpole-recording"]),
    ("longpole-analysis", &["longpole-trace", "longpole-stats"]),
    ("longpole-report", &["longpole-analysis", "longpole-ncu", "longpole-doctor", "longpole-trace"]),
    ("longpole-parquet", &["longpole-trace"]),
    ("longpole-recorder", &["longpole-recording"]),
    ("longpole-mock-cupti", &["longpole-recorder", "longpole-recording"]),
    ("longpole-example-suite", &["longpole-bench"]),
    ("longpole-qwen3", &["longpole-bench"]),
    (
        "longpole",
        &[
            "longpole-trace",
            "longpole-ingest",
            "longpole-analysis",
            "longpole-recording",
            "longpole-ncu",
            "longpole-doctor",
            "longpole-stats",
            "longpole-report",
            "longpole-parquet",
            "longpole-recording",
            "longpole-bench",
        ],
    ),
    // The chores work on files and on the built program, so that they keep working while the crates are taken apart.
    ("xtask", &[]),
    ("longpole-fuzz", &["longpole-trace", "longpole-ingest", "longpole-analysis", "longpole-ncu", "longpole-recording", "longpole-bench"]),
];

/// The little of a manifest that the rules need: its sections with their keys and the rest of each line.
pub(super) struct Manifest {
    sections: BTreeMap<String, Vec<(String, String)>>,
}

impl Manifest {
    /// Reads the plain shape our manifests have: one key a line. Continued arrays hold strings only and so never look like a key.
    pub(super) fn parse(text: &str) -> Self {
        let mut sections: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        let mut section = String::new();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                name.trim_matches(['[', ']']).clone_into(&mut section);
                sections.entry(section.clone()).or_default();
            } else if let Some((key, value)) = line.split_once('=') {
                let key = key.trim();
                if !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
                    sections.entry(section.clone()).or_default().push((key.to_owned(), value.trim().to_owned()));
                }
            }
        }
        Self { sections }
    }

    fn value(&self, section: &str, key: &str) -> Option<&str> {
        self.sections.get(section)?.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.value("package", "name").map(|name| name.trim_matches('"'))
    }

    /// All dependencies, from every kind of dependency section and for every target: the section, the name, and the rest of the line.
    pub(super) fn dependencies(&self) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
        self.sections.iter().flat_map(|(section, keys)| {
            let (table, inner) = match section.rfind("dependencies") {
                Some(at) => (&section[..at + "dependencies".len()], section[at + "dependencies".len()..].strip_prefix('.')),
                None => ("", None),
            };
            let whole_section = inner.map(|name| (section.as_str(), name, None));
            let listed = keys.iter().filter(move |_| !table.is_empty() && inner.is_none());
            let listed = listed.map(move |(key, value)| (section.as_str(), key.split('.').next().unwrap_or(key), Some(value.as_str())));
            whole_section.into_iter().chain(listed)
        })
    }
}

pub(super) fn check(manifests: &[(String, Manifest)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, manifest) in manifests {
        complaints.extend(directions(path, manifest));
        complaints.extend(pins(path, manifest));
        complaints.extend(lints(path, manifest));
    }
    complaints
}

/// Our crates depend on each other in one direction only.
fn directions(path: &str, manifest: &Manifest) -> Vec<String> {
    let Some(name) = manifest.name() else { return Vec::new() };
    let Some((_, allowed)) = MAY_DEPEND_ON.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{path}: the crate {name} is not in the dependency table of xtask's tidy")];
    };
    manifest
        .dependencies()
        .map(|(_, dependency, _)| dependency)
        .filter(|dependency| MAY_DEPEND_ON.iter().any(|(known, _)| known == dependency) && !allowed.contains(dependency))
        .map(|dependency| format!("{path}: {name} may not depend on {dependency}"))
        .collect()
}

/// Versions are exact, and members take theirs from the workspace.
fn pins(path: &str, manifest: &Manifest) -> Vec<String> {
    let own_workspace = manifest.sections.contains_key("workspace");
    let mut complaints = Vec::new();
    for (section, dependency, value) in manifest.dependencies() {
        let Some(value) = value else {
            complaints.push(format!("{path}: write {dependency} on one line, not as a section"));
            continue;
        };
        let inherited = value == "true" || value.contains("workspace = true");
        let local = value.contains("path = ");
        let version = value.split("version = ").nth(1).unwrap_or(value).trim_start_matches(['"', ' ']);
        if !(inherited || local || version.starts_with('=')) {
            complaints.push(format!("{path}: {dependency} is not pinned to one version (\"=x.y.z\")"));
        }
        if !own_workspace && !inherited && section != "workspace.dependencies" {
            complaints.push(format!("{path}: {dependency} does not come from the workspace's list"));
        }
    }
    complaints
}

/// Every package follows the workspace's lints.
fn lints(path: &str, manifest: &Manifest) -> Vec<String> {
    // A package that is its own workspace has nothing to inherit from.
    let inherits = manifest.value("lints", "workspace") == Some("true") || manifest.sections.contains_key("workspace");
    if manifest.name().is_some() && !inherits {
        return vec![format!("{path}: `[lints] workspace = true` is missing")];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        check(&[("Cargo.toml".to_owned(), Manifest::parse(text))])
    }

    const LINTS: &str = "[lints]\nworkspace = true\n";

    #[test]
    fn a_sound_manifest_passes() {
        let text = format!(
            "[package]\nname = \"longpole-ingest\"\n{LINTS}[dependencies]\nlongpole-trace.workspace = true\nmemchr = {{ workspace = true, features = [\"std\"] }}\n"
        );
        assert_eq!(complaints(&text), Vec::<String>::new());
        let root = "[workspace]\nmembers = [\n  \"a = b\",\n]\n[workspace.dependencies]\nlongpole-trace = { path = \"crates/longpole-trace\" }\nclap = { version = \"=4.6.9\", features = [\"derive\"] }\nmemchr = \"=2.8.3\"\n";
        assert_eq!(complaints(root), Vec::<String>::new());
    }

    #[test]
    fn a_wrong_direction_is_found_in_every_kind_of_section() {
        for section in ["dependencies", "dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
            let text = format!("[package]\nname = \"longpole-analysis\"\n{LINTS}[{section}]\nlongpole-ingest.workspace = true\n");
            assert_eq!(complaints(&text), ["Cargo.toml: longpole-analysis may not depend on longpole-ingest"], "{section}");
        }
        let text = format!("[package]\nname = \"longpole-trace\"\n{LINTS}[dependencies.longpole-report]\nworkspace = true\n");
        assert!(complaints(&text).contains(&"Cargo.toml: longpole-trace may not depend on longpole-report".to_owned()));
        let text = format!("[package]\nname = \"longpole-report\"\n{LINTS}[dependencies]\nlongpole-ingest = {{ workspace = true }}\n");
        assert_eq!(complaints(&text).len(), 1);
    }

    #[test]
    fn an_unknown_crate_is_found() {
        let text = format!("[package]\nname = \"longpole-new\"\n{LINTS}");
        assert_eq!(complaints(&text), ["Cargo.toml: the crate longpole-new is not in the dependency table of xtask's tidy"]);
    }

    #[test]
    fn loose_versions_are_found() {
        for loose in ["\"1.0\"", "\"^1.0.2\"", "{ version = \"1\", features = [] }", "{ git = \"https://example.com/x\" }", "\"*\""] {
            let root = format!("[workspace]\n[workspace.dependencies]\nserde = {loose}\n");
            assert_eq!(complaints(&root), ["Cargo.toml: serde is not pinned to one version (\"=x.y.z\")"], "{loose}");
        }
        let member = format!("[package]\nname = \"longpole-trace\"\n{LINTS}[dependencies]\nserde = \"=1.0.1\"\n");
        assert_eq!(complaints(&member), ["Cargo.toml: serde does not come from the workspace's list"]);
    }

    #[test]
    fn missing_lints_are_found() {
        assert_eq!(complaints("[package]\nname = \"longpole-trace\"\n"), ["Cargo.toml: `[lints] workspace = true` is missing"]);
        assert_eq!(complaints("[package]\nname = \"longpole-trace\"\n[lints]\nrust = { x = 1 }\n").len(), 1);
    }
}
