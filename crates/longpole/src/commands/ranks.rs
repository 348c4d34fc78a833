//! `longpole ranks`

use longpole_analysis::rank_report;
use longpole_report::views::RankLayout;
use longpole_report::{views, wire};

use crate::args::{Format, RanksArgs};
use crate::exit::Failure;
use crate::session::Session;
use crate::sort;

/// Rows of the tables of collectives when the user does not say.
const HEAD: usize = 10;

pub(super) fn run(args: &RanksArgs) -> Result<(), Failure> {
    let common = &args.common;
    let order = sort::ranks(common.sort.as_deref())?;
    let mut session = Session::open_all(common, &args.more)?;
    session.needs_timeline("ranks")?;
    let mut report = rank_report(&session.index, &session.scope);
    session.analysed();
    if let Some(sorting) = &order {
        report.ranks.sort_by(sorting.order);
    }
    let ranks = report.ranks.len();
    session.filter(&mut report.ranks, |regex, row| regex.is_match(&row.label) || regex.is_match(&row.number.to_string()));
    let (trace, limit) = (session.index.trace(), session.limit_or(HEAD));
    match session.format() {
        Format::Json => session.print_json(&wire::ranks(&session.header(), &report, trace, limit)),
        Format::Csv => session.print_table(views::ranks_csv(&report), None),
        Format::Text | Format::Markdown => session.print_blocks(&views::ranks(&report, trace, &RankLayout { limit, ranks })),
    }
}
