//! Validates a document against the schema it names.

use std::path::Path;

/// Parses `json`, finds the schema that its `schema` key names in `docs/schema/`, and fails with every violation.
pub(crate) fn validate(json: &str) -> serde_json::Value {
    let document: serde_json::Value = serde_json::from_str(json).expect("the output is JSON");
    let named = document["schema"].as_str().expect("the document names its schema");
    assert!(json.trim_start_matches(['{', ' ', '\n']).starts_with("\"schema\""), "`schema` comes first: {json:.40}");
    let (name, version) = named.split_once('/').expect("name/version");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{name}.{version}.schema.json"));
    let schema = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let schema = serde_json::from_str(&schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
    let errors: Vec<_> = validator.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{named}:\n{}", errors.join("\n"));
    document
}
