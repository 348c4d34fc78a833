//! `longpole explain`

use std::io::{self, Write as _};

use longpole_analysis::{explain, explanations};
use longpole_report::{explain_list, explain_markdown, explain_text, wire};

use crate::args::{ExplainArgs, Format};
use crate::exit::Failure;
use crate::terminal;

pub(super) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let found = match &args.code {
        None => explanations(),
        // Codes are also typed as they are read aloud.
        Some(code) => vec![explain(&code.trim().to_ascii_lowercase().replace(['-', ' '], "_")).ok_or_else(|| unknown(code))?],
    };
    let mut out = io::stdout().lock();
    match args.format.format() {
        Format::Json => wire::write(&mut out, &wire::explain(&found))?,
        Format::Markdown => out.write_all(explain_markdown(&found).as_bytes())?,
        Format::Csv => return Err(Failure::Usage("explain is text; use --json for a script".to_owned())),
        Format::Text => {
            let options = terminal::plain_options(args.color);
            let text = if args.code.is_some() { explain_text(&found, &options) } else { explain_list(&found, &options) };
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(out.flush()?)
}

fn unknown(code: &str) -> Failure {
    let codes: Vec<&str> = explanations().iter().map(|smell| smell.code).collect();
    Failure::Usage(format!("there is no suspect `{code}`; there are {}", codes.join(", ")))
}
