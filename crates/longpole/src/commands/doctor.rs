//! `longpole doctor`

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use longpole_doctor::{Captured, Diagnosis, Host, examine};
use longpole_report::{doctor_markdown, doctor_text, redact_diagnosis, wire};

use crate::args::{DoctorArgs, Format};
use crate::exit::Failure;
use crate::terminal;

/// Most text of a captured machine; a real one has some ten kilobytes.
const MOST_TEXT: u64 = 16 << 20;

pub(super) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let mut diagnosis = match &args.captured {
        Some(path) => examine(&captured(path)?),
        None => examine(&Host::default()),
    };
    let failed = diagnosis.failed();
    redact_diagnosis(&mut diagnosis);
    print(args, &diagnosis)?;
    if args.strict && !failed.is_empty() {
        return Err(Failure::Check(format!("{} of the checks failed and --strict was given: {}", failed.len(), failed.join(", "))));
    }
    Ok(())
}

fn print(args: &DoctorArgs, diagnosis: &Diagnosis) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match args.format.format() {
        Format::Json => wire::write(&mut out, &wire::doctor(diagnosis))?,
        Format::Markdown => out.write_all(doctor_markdown(diagnosis).as_bytes())?,
        Format::Csv => return Err(Failure::Usage("doctor is text; use --json for a script".to_owned())),
        Format::Text => out.write_all(doctor_text(diagnosis, &terminal::plain_options(args.color)).as_bytes())?,
    }
    Ok(out.flush()?)
}

fn captured(path: &Path) -> Result<Captured, Failure> {
    let named = path.display();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_TEXT).read_to_end(&mut bytes));
    read.map_err(|error| Failure::Input(format!("cannot read `{named}`: {error}")))?;
    let text = String::from_utf8_lossy(&bytes);
    Captured::parse(&text).map_err(|error| Failure::Input(format!("`{named}` is no captured machine: {error}")))
}
