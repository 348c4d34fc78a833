//! `schema`: what the built program prints as JSON, held against the schemas in `docs/schema`.
//!
//! A document names its schema in its first key, and a schema names the document in `properties.schema.const`; that is how the two find
//! each other. A schema that no command line below makes use of is an error, so a new command brings its line with it. Schemas called
//! `suite-...` describe what suites of benchmarks print: that they are sound is checked here, what suites print by tests of `longpole-bench`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use jsonschema::Validator;
use serde_json::Value;

/// Documents that no command prints: files that are kept, and what suites of benchmarks print. Tests of their crates check them.
const NOT_PRINTED: [&str; 2] = ["longpole.bench.results/1", "longpole.report/1"];

/// Command lines that read no trace. `--json` is added at the end.
const COMMANDS_ALONE: [&[&str]; 10] = [
    &["formats"],
    &["bench", "list", "--suite", "corpus/bench/suite.sh"],
    &["bench", "run", "--suite", "corpus/bench/suite.sh", "--no-save"],
    &["bench", "run", "--suite", "corpus/bench/suite.sh", "--no-save", "--compare", "corpus/bench/before.json"],
    &["bench", "compare", "corpus/bench/before.json", "corpus/bench/after.json"],
    &["bench", "peaks", "--suite", "corpus/bench/suite.sh", "-o", "/dev/null"],
    &["explain"],
    &["explain", "host_bound"],
    &["doctor"],
    &["doctor", "--captured", "crates/longpole-doctor/tests/machines/ubuntu_admin_only.machine"],
];

/// Command lines on the reports of `corpus/ncu`, from the root of the repository. `--json` is added at the end.
const COMMANDS_ON_REPORTS: [&[&str]; 6] = [
    &["ncu", "corpus/ncu/kern_basic.ncu-rep"],
    &["ncu", "corpus/ncu/kern_basic.ncu-rep", "--table"],
    &["ncu", "corpus/ncu/gemv_before.ncu-repz", "--source"],
    &["ncu", "corpus/ncu/gemv_after.ncu-repz", "--metrics", "dram|opcode"],
    &["ncu", "corpus/ncu/gemv_after.ncu-repz", "--compare", "corpus/ncu/gemv_before.ncu-repz"],
    &["ncu", "corpus/ncu/kern_basic.ncu-rep", "--compare", "corpus/ncu/gemv_before.ncu-repz"],
];

/// Command lines on profiles that hold sums alone, from the root of the repository. `--json` is added at the end.
const COMMANDS_ON_SUMS: [&[&str]; 8] = [
    &["triage", "corpus/other/proton_scopes.hatchet"],
    &["kernels", "corpus/other/proton_scopes.hatchet"],
    &["families", "corpus/other/proton_scopes.hatchet"],
    &["ranges", "corpus/other/proton_scopes.hatchet"],
    &["triage", "corpus/other/proton_cycles.hatchet"],
    &["triage", "corpus/other/tensorrt_layers.json"],
    &["kernels", "corpus/other/tensorrt_layers.json"],
    &["diff", "corpus/other/proton_scopes.hatchet", "corpus/other/proton_scopes.hatchet"],
];

/// Command lines whose output is checked on every trace. The trace and `--json --quiet` are added at the end.
const COMMANDS: [&[&str]; 17] = [
    &["triage"],
    &["ops"],
    &["ops", "--by", "shape"],
    &["ops", "--by", "stack", "3"],
    &["kernels"],
    &["families"],
    &["ranges"],
    &["memory"],
    &["steps"],
    &["steps", "--ignore-ranges"],
    &["steps", "--limit", "3", "--sort", "time"],
    &["idle"],
    &["roofline"],
    &["ranks"],
    &["diff", "corpus/kineto/qwen3_graph.json.gz"],
    &["check", "--budget", "corpus/budgets/sane.toml"],
    &["triage", "--compare", "corpus/kineto/qwen3_graph.json.gz"],
];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Check this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Where test data beside the repository lies, when it is there.
fn shared(root: &Path) -> PathBuf {
    std::env::var_os("LONGPOLE_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from)
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let schemas = load(&root.join("docs/schema"))?;
    let of_suites = load_of_suites(&root.join("docs/schema"))?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => crate::bench::build(root).context("longpole could not be built")?,
    };
    let mut traces = traces(&root.join("corpus/kineto"))?;
    ensure!(!traces.is_empty(), "there is no trace in corpus/kineto");
    let public = shared(root).join("corpus/kineto/public");
    if public.is_dir() {
        traces.extend(self::traces(&public)?);
    } else {
        println!("{} is not there: only the repository's own traces are checked", public.display());
    }
    let mut complaints = Vec::new();
    let mut seen = BTreeSet::new();
    let mut documents = 0;
    let of_traces = traces.iter().flat_map(|trace| COMMANDS.map(|command| (command, Some(trace.as_path()))));
    let alone = COMMANDS_ALONE.into_iter().chain(COMMANDS_ON_REPORTS).chain(COMMANDS_ON_SUMS).map(|command| (command, None));
    for (command, trace) in of_traces.chain(alone) {
        let name = format!("longpole {} {}", command.join(" "), trace.unwrap_or(Path::new("")).display());
        match output(root, &binary, command, trace).and_then(|document| check(&schemas, &document)) {
            Ok((schema, faults)) => {
                complaints.extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
                seen.insert(schema);
                documents += 1;
            }
            Err(error) => complaints.push(format!("{name}: {error:#}")),
        }
    }
    let is_printed = |name: &&String| !NOT_PRINTED.contains(&name.as_str());
    complaints.extend(
        schemas.keys().filter(is_printed).filter(|name| !seen.contains(*name)).map(|name| format!("no document of {name} was checked")),
    );
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    ensure!(complaints.is_empty(), "{} faults in {documents} documents", complaints.len());
    println!(
        "{documents} documents of {} traces follow their {} schemas; {of_suites} more of suites are sound",
        traces.len(),
        schemas.len()
    );
    Ok(())
}

/// The traces of a folder, by name. Everything beside them (tables, answers, notes) is left out.
fn traces(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_trace = [".json", ".json.gz", ".json.zst", ".tar.gz"].iter().any(|end| name.ends_with(end));
        if is_trace && !name.ends_with(".keyavg.json") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The schemas of a folder, by the document they describe.
fn load(directory: &Path) -> Result<BTreeMap<String, Validator>> {
    let mut schemas = BTreeMap::new();
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        if is_of_suites(&path) {
            continue;
        }
        let read = || -> Result<(String, Validator)> { compile(&serde_json::from_slice(&std::fs::read(&path)?)?) };
        let (name, validator) = read().with_context(|| format!("{} is no usable schema", path.display()))?;
        if schemas.insert(name.clone(), validator).is_some() {
            bail!("two schemas in {} describe {name}", directory.display());
        }
    }
    ensure!(!schemas.is_empty(), "there is no schema in {}", directory.display());
    Ok(schemas)
}

/// Whether a schema describes what suites print.
fn is_of_suites(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("suite-"))
}

/// The number of schemas of what suites print, all of them sound.
fn load_of_suites(directory: &Path) -> Result<usize> {
    let mut sound = 0;
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let path = entry?.path();
        if is_of_suites(&path) {
            let schema = serde_json::from_slice(&std::fs::read(&path)?).with_context(|| format!("{} is no JSON", path.display()))?;
            jsonschema::validator_for(&schema).map_err(|error| anyhow::anyhow!("{} is no usable schema: {error}", path.display()))?;
            sound += 1;
        }
    }
    Ok(sound)
}

fn compile(schema: &Value) -> Result<(String, Validator)> {
    let name = schema["properties"]["schema"]["const"].as_str().context("it has no properties.schema.const")?;
    let validator = jsonschema::validator_for(schema).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok((name.to_owned(), validator))
}

fn output(root: &Path, binary: &Path, command: &[&str], trace: Option<&Path>) -> Result<Value> {
    let quiet = trace.map(|_| "--quiet");
    let result = Command::new(binary)
        .current_dir(root)
        .args(command)
        .args(trace)
        .arg("--json")
        .args(quiet)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", binary.display()))?;
    if !result.status.success() {
        bail!("{}: {}", result.status, String::from_utf8_lossy(&result.stderr).trim());
    }
    serde_json::from_slice(&result.stdout).context("what it printed is no JSON")
}

/// The schema a document names, and where the document breaks it.
fn check(schemas: &BTreeMap<String, Validator>, document: &Value) -> Result<(String, Vec<String>)> {
    let keys = document.as_object().context("the document is no object")?;
    let name = keys.get("schema").and_then(Value::as_str).context("the document names no schema")?;
    let validator = schemas.get(name).with_context(|| format!("there is no schema for {name}"))?;
    let faults = validator.iter_errors(document).take(5).map(|error| format!("{} at {}", error, error.instance_path())).collect();
    Ok((name.to_owned(), faults))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schemas() -> BTreeMap<String, Validator> {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "longpole.x.1.schema.json",
            "type": "object",
            "required": ["schema", "rows"],
            "properties": {
                "schema": { "const": "longpole.x/1" },
                "rows": { "type": "array", "items": { "$ref": "#/$defs/row" } },
            },
            "$defs": { "row": { "type": "object", "required": ["busy_ns"], "properties": { "busy_ns": { "type": ["integer", "null"] } } } },
        });
        BTreeMap::from([compile(&schema).unwrap()])
    }

    #[test]
    fn documents_are_held_against_the_schema_they_name() {
        let schemas = schemas();
        let good = json!({ "schema": "longpole.x/1", "rows": [{ "busy_ns": 3 }, { "busy_ns": null }] });
        assert_eq!(check(&schemas, &good).unwrap(), ("longpole.x/1".to_owned(), Vec::new()));
        let bad = json!({ "schema": "longpole.x/1", "rows": [{ "busy_ns": 3.5 }, {}] });
        let (_, faults) = check(&schemas, &bad).unwrap();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("/rows/0/busy_ns"), "{faults:?}");
    }

    #[test]
    fn documents_without_a_schema_are_errors() {
        let schemas = schemas();
        for document in [json!([]), json!({}), json!({ "schema": "longpole.y/1" }), json!({ "schema": 3 })] {
            assert!(check(&schemas, &document).is_err(), "{document}");
        }
        assert!(compile(&json!({ "type": "object" })).is_err());
    }

    #[test]
    fn schemas_of_suites_stand_apart() {
        let directory = crate::root().join("docs/schema");
        assert_eq!(load_of_suites(&directory).unwrap(), 2);
        assert!(load(&directory).unwrap().keys().all(|name| !name.starts_with("longpole.suite.")));
    }

    #[test]
    fn answers_and_tables_are_no_traces() {
        let found = traces(&crate::root().join("corpus/kineto")).unwrap();
        assert!(found.iter().any(|path| path.ends_with("qwen3_eager.json.gz")));
        assert!(found.iter().all(|path| !path.to_string_lossy().contains("keyavg")));
    }
}
