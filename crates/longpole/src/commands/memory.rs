//! `longpole memory`

use longpole_analysis::memory_table;
use longpole_report::{views, wire};

use crate::args::{Common, Format};
use crate::exit::Failure;
use crate::session::Session;
use crate::sort;

pub(super) fn run(common: &Common) -> Result<(), Failure> {
    let sorting = sort::memory(common.sort.as_deref())?;
    let mut session = Session::open(common)?;
    session.needs_timeline("memory")?;
    let mut table = memory_table(&session.index, &session.scope);
    session.analysed();
    if let Some(sorting) = &sorting {
        table.rows.sort_by(sorting.order);
    }
    session.filter(&mut table.rows, |regex, row| regex.is_match(&row.name));
    match session.format() {
        Format::Json => {
            table.rows.truncate(session.limit().unwrap_or(usize::MAX));
            session.print_json(&wire::memory(&session.header(), &table))
        }
        _ => session.print_table(views::memory(&table, session.index.trace().recorder), sorting.map(|sorting| sorting.column)),
    }
}
