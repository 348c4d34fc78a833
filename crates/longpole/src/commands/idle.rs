//! `longpole idle`

use longpole_analysis::idle_table;
use longpole_report::views::IdleLayout;
use longpole_report::{views, wire};

use crate::args::{Common, Format};
use crate::exit::Failure;
use crate::session::Session;
use crate::sort;

/// Rows of the tables by range and by host frame when the user does not say.
const HEAD: usize = 10;

pub(super) fn run(common: &Common) -> Result<(), Failure> {
    let sorting = sort::idle(common.sort.as_deref())?;
    let mut session = Session::open(common)?;
    session.needs_timeline("idle")?;
    let mut table = idle_table(&session.index, &session.scope);
    session.analysed();
    if let Some((causes, frames)) = sorting {
        table.causes.sort_by(causes);
        table.devices.iter_mut().for_each(|device| device.causes.sort_by(causes));
        table.by_frame.sort_by(frames);
    }
    let (frames, ranges) = (table.by_frame.len(), table.by_range.len());
    session.filter(&mut table.by_frame, |regex, row| row.name.as_deref().is_some_and(|name| regex.is_match(name)));
    session.filter(&mut table.by_range, |regex, row| regex.is_match(&row.name));
    let limit = session.limit_or(HEAD);
    let layout =
        IdleLayout { limit, frames_filtered_out: frames - table.by_frame.len(), ranges_filtered_out: ranges - table.by_range.len() };
    let trace = session.index.trace();
    match session.format() {
        Format::Json => {
            table.by_frame.truncate(limit.unwrap_or(usize::MAX));
            table.by_range.truncate(limit.unwrap_or(usize::MAX));
            session.print_json(&wire::idle(&session.header(), &table, trace))
        }
        Format::Csv => session.print_table(views::idle_csv(&table, trace), None),
        Format::Text | Format::Markdown => session.print_blocks(&views::idle(&table, trace, &layout)),
    }
}
