//! `longpole steps`

use std::ffi::OsStr;

use longpole_analysis::{Scope, StepOptions, StepTable, borrow_roles, role_donors, step_table};
use longpole_report::views::StepLayout;
use longpole_report::{views, wire};
use regex::Regex;

use crate::args::{Format, StepRows, StepsArgs};
use crate::exit::Failure;
use crate::session::Session;
use crate::sort;

pub(super) fn run(args: &StepsArgs) -> Result<(), Failure> {
    let order = sort::steps(args.common.sort.as_deref())?;
    let mut session = Session::open(&args.common)?;
    let mut table = find(&session, args);
    if let Some(donor) = &args.roles_from {
        borrow(&session, &mut table, donor, args)?;
    }
    session.analysed();
    let trace = session.index.trace();
    let layout = StepLayout { order, limit: session.limit(), by_kernel: args.by == StepRows::Kernel, full_names: args.common.full_names };
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

/// Names what the trace leaves unnamed after the steps of another one.
fn borrow(session: &Session<'_>, table: &mut StepTable, donor: &OsStr, args: &StepsArgs) -> Result<(), Failure> {
    let other = session.read_beside(donor)?;
    let options = StepOptions { filter: None, ignore_ranges: args.ignore_ranges };
    let donors = role_donors(other.trace(), &step_table(&other, &Scope::whole(), &options));
    if donors.is_empty() {
        return Err(Failure::Input(format!("`{}` has no steps with named roles", donor.to_string_lossy())));
    }
    for group in &mut table.groups {
        borrow_roles(session.index.trace(), group, &donors);
    }
    Ok(())
}
