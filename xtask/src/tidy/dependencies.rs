//! Rules on dependencies that nothing needs or nothing justifies.

use std::collections::{BTreeMap, BTreeSet};

use super::manifest::Manifest;

/// Where every dependency has its reason.
pub(super) const TABLE: &str = "ARCHITECTURE.md";

/// Complaints about manifests, given as path and content, in view of the texts of all sources and of [`TABLE`].
pub(super) fn check(manifests: &[(String, Manifest)], texts: &BTreeMap<String, String>) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut taken = BTreeSet::new();
    for (path, manifest) in manifests.iter().filter(|(_, manifest)| manifest.name().is_some()) {
        let sources = sources(path.strip_suffix("Cargo.toml").unwrap_or_default(), texts);
        let direct = manifest.dependencies().filter(|(section, _, _)| *section != "workspace.dependencies");
        for (_, dependency, _) in direct {
            taken.insert(dependency);
            let identifier = dependency.replace('-', "_");
            if !sources.iter().any(|text| super::sources::word(text, &identifier)) {
                complaints.push(format!("{path}: {dependency} is not used by the sources"));
            }
        }
    }
    let table = texts.get(TABLE).map_or("", String::as_str);
    for (path, manifest) in manifests {
        for (section, dependency, value) in manifest.dependencies() {
            if section == "workspace.dependencies" && !taken.contains(dependency) {
                complaints.push(format!("{path}: no crate uses {dependency}"));
            }
            let ours = value.is_none_or(|value| value.contains("path = "));
            if section == "workspace.dependencies" && !ours && !table.contains(&format!("`{dependency}`")) {
                complaints.push(format!("{TABLE}: no reason is given for {dependency}"));
            }
        }
    }
    complaints
}

/// The sources below a folder, and those elsewhere that they take in by a path attribute.
fn sources<'a>(folder: &str, texts: &'a BTreeMap<String, String>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (path, text) in texts.iter().filter(|(path, _)| path.starts_with(folder) && *path != TABLE) {
        found.push(text.as_str());
        for line in text.lines().map(str::trim) {
            let Some((named, _)) = line.strip_prefix("#[path = \"").and_then(|rest| rest.split_once('"')) else { continue };
            found.extend(texts.get(&beside(path, named)).map(String::as_str));
        }
    }
    found
}

/// The path that `named` means in the file at `path`, both with slashes and from the same root.
fn beside(path: &str, named: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in named.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Complaints about a workspace of one member with one dependency and one source.
    fn complaints(root: &str, member: &str, texts: &[(&str, &str)]) -> Vec<String> {
        let manifests =
            [("Cargo.toml", root), ("crates/a/Cargo.toml", member)].map(|(path, text)| (path.to_owned(), Manifest::parse(text)));
        let texts = texts.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
        check(&manifests, &texts)
    }

    const ROOT: &str = "[workspace.dependencies]\nserde-json = \"=1.0.1\"\na = { path = \"crates/a\" }\n";
    const MEMBER: &str = "[package]\nname = \"b\"\n[dependencies]\nserde-json.workspace = true\n[dev-dependencies]\na.workspace = true\n";
    const REASON: (&str, &str) = (TABLE, "| `serde-json` | writes JSON |");

    #[test]
    fn what_is_used_and_explained_passes() {
        let source = ("crates/a/src/lib.rs", "use serde_json::Value;\nuse a::b;");
        assert_eq!(complaints(ROOT, MEMBER, &[source, REASON]), Vec::<String>::new());
    }

    #[test]
    fn a_shared_source_counts_for_each_package_that_takes_it_in() {
        let main = ("crates/a/tests/main.rs", "use a::b;\n#[path = \"../../c/tests/shared.rs\"]\nmod shared;");
        let shared = ("crates/c/tests/shared.rs", "serde_json::to_string(&1)");
        assert_eq!(complaints(ROOT, MEMBER, &[main, shared, REASON]), Vec::<String>::new());
        assert_eq!(complaints(ROOT, MEMBER, &[main, REASON]), ["crates/a/Cargo.toml: serde-json is not used by the sources"]);
    }

    #[test]
    fn what_is_not_used_is_found() {
        let source = ("crates/a/src/lib.rs", "use a::b; // my_serde_json");
        assert_eq!(complaints(ROOT, MEMBER, &[source, REASON]), ["crates/a/Cargo.toml: serde-json is not used by the sources"]);
        let without = "[package]\nname = \"b\"\n[dependencies]\na.workspace = true\n";
        assert_eq!(complaints(ROOT, without, &[source, REASON]), ["Cargo.toml: no crate uses serde-json"]);
    }

    #[test]
    fn what_has_no_reason_is_found() {
        let source = ("crates/a/src/lib.rs", "use serde_json::Value;\nuse a::b;");
        assert_eq!(complaints(ROOT, MEMBER, &[source, (TABLE, "serde-json")]), ["ARCHITECTURE.md: no reason is given for serde-json"]);
    }
}
