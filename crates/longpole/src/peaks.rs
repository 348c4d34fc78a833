//! The file of `--peaks`: what was measured on the machine.
//!
//! One JSON object, every key of it optional:
//!
//! ```json
//! { "name": "my H200", "memory_bytes_per_s": 4.3e12, "cache_bytes": 52428800, "flops_per_s": { "bf16": 7.5e14, "fp8": 1.4e15 } }
//! ```
//!
//! What it leaves out is taken from the table of devices.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;

use longpole_analysis::{MeasuredPeaks, NoPeaks, PeakKind, Peaks, peaks_of};
use serde_json::{Map, Value};

use crate::exit::Failure;
use crate::session::Session;

/// Larger files are no list of peaks.
const MOST_BYTES: u64 = 1 << 20;

/// Reads the file.
pub(crate) fn read(path: &OsStr) -> Result<MeasuredPeaks, Failure> {
    let shown = path.to_string_lossy();
    let unreadable = |error: &dyn std::fmt::Display| Failure::Input(format!("--peaks `{shown}`: {error}"));
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text)).map_err(|error| unreadable(&error))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    let name = path.to_string_lossy();
    parse(&value, &name).map_err(|error| unreadable(&error))
}

/// The peaks of a scope's devices: those of the table, with those of the file over them. Without, why there are none.
pub(crate) fn of_session(session: &Session<'_>, measured: Option<MeasuredPeaks>) -> Result<Result<Peaks, NoPeaks>, Failure> {
    let known = peaks_of(session.index.trace(), &session.scope);
    let Some(mut measured) = measured else { return Ok(known) };
    // A path, and a name that anyone may have written.
    measured.source = session.shown(Some(&measured.source)).unwrap_or_default();
    measured.name = session.shown(measured.name.as_deref());
    fill_in(known.as_ref().ok(), &measured).map(Ok)
}

/// Measured peaks over those of the table.
fn fill_in(known: Option<&Peaks>, measured: &MeasuredPeaks) -> Result<Peaks, Failure> {
    Peaks::measured(known, measured)
        .ok_or_else(|| Failure::Usage("--peaks: `memory_bytes_per_s` is needed, since the device is not in the table of peaks".to_owned()))
}

fn parse(value: &Value, source: &str) -> Result<MeasuredPeaks, String> {
    let object = value.as_object().ok_or("it is no JSON object")?;
    let mut peaks = MeasuredPeaks { source: format!("measured, {source}"), ..MeasuredPeaks::default() };
    for (key, value) in object {
        match key.as_str() {
            "name" => peaks.name = Some(value.as_str().ok_or("`name` is no text")?.to_owned()),
            "memory_bytes_per_s" => peaks.memory_bytes_per_s = Some(amount(key, value)?),
            "cache_bytes" => peaks.cache_bytes = Some(amount(key, value)?),
            "flops_per_s" => peaks.flops_per_s = rates(value.as_object().ok_or("`flops_per_s` is no object")?)?,
            _ => return Err(format!("unknown key `{key}`; there are name, memory_bytes_per_s, cache_bytes, flops_per_s")),
        }
    }
    Ok(peaks)
}

fn rates(object: &Map<String, Value>) -> Result<Vec<(PeakKind, u64)>, String> {
    let rate = |(key, value): (&String, &Value)| {
        let kind = PeakKind::ALL.into_iter().find(|kind| kind.name() == key).ok_or_else(|| {
            let names: Vec<&str> = PeakKind::ALL.iter().map(|kind| kind.name()).collect();
            format!("unknown type `{key}`; there are {}", names.join(", "))
        })?;
        Ok((kind, amount(key, value)?))
    };
    object.iter().map(rate).collect()
}

/// A positive number, which people also write as `4.3e12`.
fn amount(key: &str, value: &Value) -> Result<u64, String> {
    let number = value.as_u64().or_else(|| value.as_f64().filter(|number| (1.0..1e19).contains(number)).map(|number| number as u64));
    number.filter(|&number| number > 0).ok_or_else(|| format!("`{key}` is no positive number"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_is_read_and_what_is_wrong_is_named() {
        let peaks =
            parse(&json!({ "name": "n", "memory_bytes_per_s": 4.3e12, "flops_per_s": { "bf16": 750_000_000_000_000_u64 } }), "p.json");
        let peaks = peaks.unwrap();
        assert_eq!((peaks.name.as_deref(), peaks.memory_bytes_per_s), (Some("n"), Some(4_300_000_000_000)));
        assert_eq!(peaks.flops_per_s, [(PeakKind::Bf16, 750_000_000_000_000)]);
        assert_eq!(peaks.source, "measured, p.json");
        for (value, error) in [
            (json!([]), "no JSON object"),
            (json!({ "memory": 1 }), "unknown key `memory`"),
            (json!({ "memory_bytes_per_s": -1 }), "no positive number"),
            (json!({ "memory_bytes_per_s": "fast" }), "no positive number"),
            (json!({ "flops_per_s": { "bf15": 1 } }), "unknown type `bf15`; there are fp64"),
            (json!({ "flops_per_s": 3 }), "no object"),
        ] {
            let found = parse(&value, "p.json").unwrap_err();
            assert!(found.contains(error), "{found}");
        }
        assert!(matches!(fill_in(None, &MeasuredPeaks::default()), Err(Failure::Usage(_))));
    }
}
