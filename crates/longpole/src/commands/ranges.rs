//! `longpole ranges`

use longpole_analysis::range_table;
use longpole_report::views::RangeLayout;
use longpole_report::{views, wire};

use crate::args::{Common, Format};
use crate::exit::Failure;
use crate::session::Session;
use crate::sort;

pub(super) fn run(common: &Common) -> Result<(), Failure> {
    let sorting = sort::ranges(common.sort.as_deref());
    let mut session = Session::open(common)?;
    if session.has_totals_only() {
        return super::sums::ranges(common, &mut session);
    }
    let sorting = sorting?;
    let mut rows = range_table(&session.index, &session.scope);
    session.analysed();
    // A sorted or filtered list is no tree any more.
    let layout = if sorting.is_some() || session.pattern().is_some() { RangeLayout::Paths } else { RangeLayout::Tree };
    if let Some(sorting) = &sorting {
        rows.sort_by(sorting.order);
    }
    session.filter(&mut rows, |regex, row| regex.is_match(&row.name));
    match session.format() {
        Format::Json => {
            rows.truncate(session.limit().unwrap_or(usize::MAX));
            session.print_json(&wire::ranges(&session.header(), &rows))
        }
        _ => session.print_table(views::ranges(&rows, layout, session.limit()), sorting.map(|sorting| sorting.column)),
    }
}
