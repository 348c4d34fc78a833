//! `longpole steps`

mod recorded;

use std::ffi::OsStr;

use longpole_analysis::{
    FloorDonor, MeasuredPeaks, Peaks, Scope, ScopeWork, StepOptions, StepTable, borrow_roles, floor_donors, role_donors, step_ceilings,
    step_table,
};
use longpole_report::views::{Recorded, StepLayout, StepOrder, Steps};
use longpole_report::{views, wire};
use longpole_trace::Ns;
use regex::Regex;

use crate::args::{Format, StepRows, StepsArgs};
use crate::exit::Failure;
use crate::peaks;
use crate::session::Session;
use crate::sort;

pub(super) fn run(args: &StepsArgs) -> Result<(), Failure> {
    let prepared = Prepared::new(args)?;
    if args.recording.run {
        return recorded::run(args, &prepared);
    }
    let input = match (args.common.input.is_empty(), args.recording.command.as_slice()) {
        (_, []) => &args.common.input,
        // A file whose name begins like a flag.
        (true, [input]) => input,
        _ => return Err(Failure::Usage("what stands behind -- is a program; --run runs it: longpole steps --run -- PROGRAM".to_owned())),
    };
    let mut session = Session::open_other(&args.common, input)?;
    session.needs_timeline("steps")?;
    show(args, &prepared, &mut session, &Shown { last_half: args.last_half, windows: Vec::new(), recorded: None })?;
    Ok(())
}

/// What is read of the flags before anything else is done.
struct Prepared {
    order: StepOrder,
    measured: Option<MeasuredPeaks>,
}

impl Prepared {
    fn new(args: &StepsArgs) -> Result<Self, Failure> {
        let order = sort::steps(args.common.sort.as_deref())?;
        Ok(Self { order, measured: args.peaks.as_deref().map(peaks::read).transpose()? })
    }
}

/// Which steps are shown, and of what.
struct Shown<'a> {
    last_half: bool,
    windows: Vec<Ns>,
    recorded: Option<Recorded<'a>>,
}

/// Prints the steps; whether there are any.
fn show(args: &StepsArgs, prepared: &Prepared, session: &mut Session<'_>, shown: &Shown<'_>) -> Result<bool, Failure> {
    let known = peaks::of_session(session, prepared.measured.clone())?;
    let peaks = known.as_ref().ok();
    let (mut table, work) = {
        let (index, scope) = (&session.index, &session.scope);
        let options = StepOptions { filter: None, ignore_ranges: args.ignore_ranges, last_half: shown.last_half, windows: &shown.windows };
        // The links are there before, so that neither waits for the other inside.
        index.links();
        rayon::join(|| find(session, args.common.filter.as_ref(), options), || ScopeWork::find(index, scope, peaks))
    };
    let lent = match &args.roles_from {
        Some(donor) => borrow(session, &mut table, donor, peaks, args.ignore_ranges)?,
        None => Vec::new(),
    };
    let ceilings = step_ceilings(&work, &table, &lent);
    session.analysed();
    let trace = session.index.trace();
    let layout = StepLayout {
        order: prepared.order,
        limit: session.limit(),
        by_kernel: args.by == StepRows::Kernel,
        full_names: args.common.full_names,
    };
    let report = Steps { table: &table, ceilings: &ceilings, peaks: known.as_ref(), recorded: shown.recorded.as_ref() };
    match session.format() {
        Format::Json => session.print_json(&wire::steps(&session.header(), &report, trace, &layout)),
        Format::Csv => session.print_table(views::steps_csv(&report, trace), None),
        Format::Text | Format::Markdown => session.print_blocks(&views::steps(&report, trace, &layout)),
    }?;
    Ok(!table.groups.is_empty())
}

/// The steps of the scope, as the flags ask for them.
pub(super) fn find(session: &Session<'_>, filter: Option<&Regex>, options: StepOptions<'_>) -> StepTable {
    let accepts = filter.map(|regex: &Regex| move |name: &str| regex.is_match(name));
    let filter = accepts.as_ref().map(|accepts| accepts as &(dyn Fn(&str) -> bool + Sync));
    step_table(&session.index, &session.scope, &StepOptions { filter, ..options })
}

/// Names what the trace leaves unnamed after the steps of another one. Returns the floors that those steps lend.
pub(super) fn borrow(
    session: &Session<'_>,
    table: &mut StepTable,
    donor: &OsStr,
    peaks: Option<&Peaks>,
    ignore_ranges: bool,
) -> Result<Vec<FloorDonor>, Failure> {
    let other = session.read_beside(donor)?;
    let options = StepOptions { ignore_ranges, ..StepOptions::default() };
    let steps = step_table(&other, &Scope::whole(), &options);
    let donors = role_donors(other.trace(), &steps);
    if donors.is_empty() {
        return Err(Failure::Input(format!("`{}` has no steps with named roles", donor.to_string_lossy())));
    }
    let mut borrowed = 0;
    for group in &mut table.groups {
        borrowed += usize::from(borrow_roles(session.index.trace(), group, &donors).is_some());
    }
    if borrowed == 0 && !table.groups.is_empty() {
        let donor = donor.to_string_lossy();
        session.note_to_stderr(&format!(
            "no role is taken from `{donor}`: its kernels do not match those of these steps, or these have roles of their own"
        ));
    }
    Ok(peaks.map_or_else(Vec::new, |peaks| floor_donors(&other, &Scope::whole(), &steps, peaks)))
}
