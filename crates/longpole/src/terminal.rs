//! What is known of standard output, or of what stands for it.

use longpole_report::TextOptions;

use crate::args::{ColorWhen, Common, NcuArgs};
use crate::sink::Sink;

/// Columns when output goes to a file or pipe and `COLUMNS` does not say.
const DEFAULT_WIDTH: usize = 120;
/// Narrower terminals get lines that wrap.
const MIN_WIDTH: usize = 40;

fn columns(sink: &Sink) -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    said.or_else(|| sink.columns()).unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH)
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn color(when: ColorWhen, sink: &Sink) -> bool {
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => sink.is_terminal() && !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
    }
}

fn options(sink: &Sink, when: ColorWhen, full_names: bool) -> TextOptions {
    TextOptions { width: columns(sink), color: color(when, sink), full_names, wrap: sink.is_terminal() }
}

/// How text is laid out on standard output.
pub(crate) fn text_options(common: &Common) -> TextOptions {
    options(&Sink::Stdout, common.color, common.full_names)
}

/// The same on standard error.
pub(crate) fn error_options(common: &Common) -> TextOptions {
    options(&Sink::Stderr, common.color, common.full_names)
}

/// The same for a report.
pub(crate) fn report_options(args: &NcuArgs) -> TextOptions {
    options(&args.sink, args.color, args.full_names)
}

/// The same where no trace is read.
pub(crate) fn plain_options(when: ColorWhen) -> TextOptions {
    options(&Sink::Stdout, when, false)
}
