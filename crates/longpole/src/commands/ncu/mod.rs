//! `longpole ncu`: reports of Nsight Compute.

mod compare;
mod disassemble;
mod html;
mod kernels;
mod open;
mod table;

pub(crate) use html::page;
pub(crate) use open::is_report;

use longpole_report::{KernelPage, Table, csv, kernel_lines, kernels_markdown, kernels_text, sources_markdown, sources_text, views, wire};

use crate::args::{Format, NcuArgs};
use crate::exit::{Failure, complain};
use kernels::Wanted;
use open::{Chosen, Session};

/// Kernels that are shown in full when nothing narrower is asked for.
const IN_FULL: usize = 4;

/// Said on standard error where CSV has a header only.
const NO_METRIC: &str = "no metric matches";

/// Hottest instructions of a summary when the user does not say.
const HOTTEST: usize = 5;

pub(super) fn run(args: &NcuArgs) -> Result<(), Failure> {
    let order = table::order(args.sort.as_deref())?;
    if let Some(before) = &args.view.compare {
        return compare::run(args, before);
    }
    let mut session = Session::open(args, &args.input)?;
    let chosen = session.choose()?;
    let format = args.format.format();
    let view = &args.view;
    let is_table = view.table || (format == Format::Csv && !view.source && view.metrics.is_none());
    let is_long = chosen.len() > IN_FULL && format != Format::Json && !view.source && view.metrics.is_none() && !view.report_only;
    // Of nothing the page says why in a sentence, whatever was asked for.
    let is_nothing = chosen.is_empty() && matches!(format, Format::Text | Format::Markdown);
    if (is_table && !is_nothing) || is_long {
        return table::run(&mut session, &chosen, order);
    }
    let wanted = Wanted { source: !view.report_only && view.metrics.is_none(), metrics: view.metrics.as_ref() };
    if view.metrics.is_some() && format != Format::Json {
        return metrics(&mut session, &chosen, &wanted);
    }
    let kernels = kernels::of(&session, &chosen, &wanted)?;
    if format == Format::Json {
        let totals = table::totals(&session, &chosen);
        session.analysed();
        let header = session.header();
        return session.print_json(&wire::ncu(&wire::NcuDocument {
            header: header.as_header(),
            kernels: &kernels,
            launches: None,
            names: &totals.names,
            families: &totals.families,
            hot: session.limit_or(None),
            with_source: view.source,
        }));
    }
    session.analysed();
    let header = session.header();
    if view.source {
        let limit = session.limit();
        return match format {
            Format::Csv => {
                let sources = kernels.iter().filter_map(|kernel| Some((kernel.summary.id, kernel.source.as_ref()?)));
                session.print_csv(views::ncu::instruction_rows(sources))
            }
            Format::Markdown => session.print(&sources_markdown(&header.as_header(), &kernels, limit)),
            Format::Text | Format::Json => session.print(&sources_text(&header.as_header(), &kernels, limit, &session.options)),
        };
    }
    if view.report_only {
        if kernels.is_empty() && !args.quiet {
            complain("no kernel matches");
        }
        session.trust_to_stderr();
        return session.print(&kernel_lines(&kernels, &header.trust, &session.options));
    }
    let page = KernelPage { hot: session.limit_or(Some(HOTTEST)), full: args.full, left_out: session.results() - chosen.len() };
    session.print(&match format {
        Format::Markdown => kernels_markdown(&header.as_header(), &kernels, &page),
        _ => kernels_text(&header.as_header(), &kernels, &page, &session.options),
    })
}

/// Prints raw metrics, of which no more is kept than is shown: CSV goes out piece by piece.
fn metrics(session: &mut Session<'_>, chosen: &[Chosen], wanted: &Wanted<'_>) -> Result<(), Failure> {
    let is_csv = session.format() == Format::Csv;
    let limit = session.limit().unwrap_or(usize::MAX);
    let mut whole = views::ncu::metrics(&[]);
    let (mut rows, mut is_first) = (0, true);
    kernels::metrics_by_piece(session, chosen, wanted, |kernels| {
        let mut piece = views::ncu::metrics(&kernels);
        let left = limit.saturating_sub(rows);
        rows += piece.rows.len();
        piece.truncate(Some(left));
        if is_csv && (is_first || !piece.rows.is_empty()) {
            session.args.sink.write(csv_piece(&piece, is_first).as_bytes())?;
            is_first = false;
        } else {
            whole.hidden += piece.hidden;
            whole.rows.append(&mut piece.rows);
        }
        Ok(())
    })?;
    session.analysed();
    if !is_csv {
        return session.print_tables(vec![("Metrics", whole)], &[]);
    }
    if rows == 0 && !session.args.quiet {
        complain(NO_METRIC);
    }
    session.trust_to_stderr();
    session.print(if is_first { csv_piece(&whole, true) } else { String::new() }.as_str())
}

/// A table as CSV, below the header or as more of the same table.
fn csv_piece(table: &Table, has_header: bool) -> String {
    let text = csv(table);
    if has_header { text } else { text.split_once('\n').map_or_else(String::new, |(_, rows)| rows.to_owned()) }
}
