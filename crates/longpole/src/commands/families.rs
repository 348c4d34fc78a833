//! `longpole families`

use longpole_analysis::{device_busy, family_table};
use longpole_report::{views, wire};

use crate::args::{Common, Format};
use crate::exit::Failure;
use crate::session::Session;
use crate::sort;

pub(super) fn run(common: &Common) -> Result<(), Failure> {
    let sorting = sort::families(common.sort.as_deref())?;
    let mut session = Session::open(common)?;
    if session.has_totals_only() {
        return super::sums::families(common, &mut session);
    }
    let mut rows = family_table(&session.index, &session.scope);
    session.analysed();
    let total = rows.iter().map(|row| row.self_cuda_ns).sum();
    if let Some(sorting) = &sorting {
        rows.sort_by(sorting.order);
    }
    session.filter(&mut rows, |regex, row| regex.is_match(row.family.name()));
    if session.format() == Format::Json {
        rows.truncate(session.limit().unwrap_or(usize::MAX));
        session.print_json(&wire::families(&session.header(), &rows))
    } else {
        let mut table = views::families(&rows);
        if session.index.trace().activities.is_empty() {
            table.empty = Some(session.index.trace().recorder.advice().no_device);
        }
        let busy = device_busy(&session.index, &session.scope);
        table.notes.extend(views::overlap_note(Some(total), busy, views::SharesOf::Sum));
        session.print_table(table, sorting.map(|sorting| sorting.column))
    }
}
