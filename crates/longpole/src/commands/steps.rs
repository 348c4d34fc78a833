//! `longpole steps`

use longpole_analysis::{StepOptions, StepTable, step_table};
use longpole_report::views::StepLayout;
use longpole_report::{views, wire};
use regex::Regex;

use crate::args::{Format, StepsArgs};
use crate::exit::Failure;
use crate::session::Session;
use crate::sort;

pub(super) fn run(args: &StepsArgs) -> Result<(), Failure> {
    let order = sort::steps(args.common.sort.as_deref())?;
    let mut session = Session::open(&args.common)?;
    let table = find(&session, args);
    session.analysed();
    let trace = session.index.trace();
    let layout = StepLayout { order, limit: session.limit(), full_names: args.common.full_names };
    match session.format() {
        Format::Json => session.print_json(&wire::steps(&session.header(), &table, trace, &layout)),
        Format::Csv => session.print_table(views::steps_csv(&table, trace), None),
        Format::Text | Format::Markdown => session.print_blocks(&views::steps(&table, trace, &layout)),
    }
}

/// The steps of the scope, as the flags ask for them.
fn find(session: &Session<'_>, args: &StepsArgs) -> StepTable {
    let accepts = args.common.filter.as_ref().map(|regex: &Regex| move |name: &str| regex.is_match(name));
    let filter = accepts.as_ref().map(|accepts| accepts as &(dyn Fn(&str) -> bool + Sync));
    step_table(&session.index, &session.scope, &StepOptions { filter, ignore_ranges: args.ignore_ranges })
}
