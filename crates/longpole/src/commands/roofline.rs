//! `longpole roofline`

use longpole_analysis::roofline;
use longpole_report::{views, wire};

use crate::args::{Format, RooflineArgs};
use crate::exit::Failure;
use crate::peaks;
use crate::session::Session;
use crate::sort;

pub(super) fn run(args: &RooflineArgs) -> Result<(), Failure> {
    let common = &args.common;
    let sorting = sort::roofline(common.sort.as_deref())?;
    let measured = args.peaks.as_deref().map(peaks::read).transpose()?;
    let mut session = Session::open_with_arguments(common)?;
    session.needs_timeline("roofline")?;
    let trace = session.index.trace();
    let known = peaks::of_session(&session, measured)?;
    let mut table = roofline(&session.index, &session.scope, known.as_ref().ok());
    session.analysed();
    if let Some(sorting) = &sorting {
        table.rows.sort_by(sorting.order);
    }
    session
        .filter(&mut table.rows, |regex, row| regex.is_match(&row.name) || row.kernel.as_deref().is_some_and(|name| regex.is_match(name)));
    let missing = known.as_ref().err();
    if session.format() == Format::Json {
        table.rows.truncate(session.limit().unwrap_or(usize::MAX));
        return session.print_json(&wire::roofline(&session.header(), &table, missing));
    }
    let mut rows = views::roofline_rows(&table, session.index.trace().recorder);
    if let Some(sorting) = &sorting {
        rows.keep(sorting.column);
    }
    session.shorten(&mut rows);
    match session.format() {
        Format::Csv => session.print_table(rows, None),
        _ => session.print_blocks(&views::roofline(&table, missing, rows, trace)),
    }
}
