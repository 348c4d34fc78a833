//! What is known of standard output, and of standard error where a report goes there.

use std::io::{self, IsTerminal as _};

use longpole_report::TextOptions;

use crate::args::{ColorWhen, Common, NcuArgs};

/// Columns when output goes to a file or pipe and `COLUMNS` does not say.
const DEFAULT_WIDTH: usize = 120;
/// Narrower terminals get lines that wrap.
const MIN_WIDTH: usize = 40;

fn columns() -> usize {
    columns_of(|| terminal_size::terminal_size_of(io::stdout()))
}

fn columns_of(size: impl Fn() -> Option<(terminal_size::Width, terminal_size::Height)>) -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let measured = || size().map(|(width, _)| usize::from(width.0));
    said.or_else(measured).unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH)
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn color(when: ColorWhen) -> bool {
    color_of(when, io::stdout().is_terminal())
}

fn color_of(when: ColorWhen, is_terminal: bool) -> bool {
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => is_terminal && !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
    }
}

/// How text is laid out on standard output.
pub(crate) fn text_options(common: &Common) -> TextOptions {
    TextOptions { width: columns(), color: color(common.color), full_names: common.full_names, wrap: io::stdout().is_terminal() }
}

/// The same on standard error.
pub(crate) fn error_options(common: &Common) -> TextOptions {
    let is_terminal = io::stderr().is_terminal();
    TextOptions {
        width: columns_of(|| terminal_size::terminal_size_of(io::stderr())),
        color: color_of(common.color, is_terminal),
        full_names: common.full_names,
        wrap: is_terminal,
    }
}

/// The same for a report.
pub(crate) fn report_options(args: &NcuArgs) -> TextOptions {
    TextOptions { width: columns(), color: color(args.color), full_names: args.full_names, wrap: io::stdout().is_terminal() }
}

/// The same where no trace is read.
pub(crate) fn plain_options(when: ColorWhen) -> TextOptions {
    TextOptions { width: columns(), color: color(when), full_names: false, wrap: io::stdout().is_terminal() }
}
