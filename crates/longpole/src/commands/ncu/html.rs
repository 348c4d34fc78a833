//! What a page shows of reports: the documents of `longpole ncu --source --json` and `--table --json` in one, or that of `--compare`.

use longpole_ncu::table::RowOrder;
use longpole_report::{HtmlCuts, HtmlKind, HtmlLimits, KernelPage, TextOptions, comparison_text, html_document, kernels_text, wire};
use serde_json::value::RawValue;

use super::kernels::{self, Wanted};
use super::open::Session;
use super::{HOTTEST, IN_FULL, compare, table};
use crate::args::NcuArgs;
use crate::commands::report::title_of;
use crate::exit::Failure;

/// Kernels of a page with source lines and instructions, those that took longest; of the others there is a row.
const IN_PAGE: usize = 100;
/// Columns of the text that a reader without scripts gets.
const WIDTH: usize = 120;

/// A document with the name of its command.
type Named = (&'static str, Box<RawValue>);

/// A page of one or two reports.
pub(crate) struct NcuPage<'a> {
    pub(crate) kind: HtmlKind,
    /// What was read, as it may be shown.
    pub(crate) title: String,
    /// The first page.
    pub(crate) text: String,
    /// Kernels that are shown in full, and all of them.
    pub(crate) in_full: (usize, usize),
    /// The document, by the name of its command.
    pub(crate) document: &'a dyn Fn(&HtmlLimits, &mut HtmlCuts) -> serde_json::Result<Named>,
}

/// Reads what `args` name, and hands the page over.
pub(crate) fn page(args: &NcuArgs, mut write: impl FnMut(NcuPage<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
    let options = TextOptions { width: WIDTH, color: false, full_names: args.full_names, wrap: true };
    if let Some(before) = &args.view.compare {
        return compare::compared(args, before, |page, session| {
            let document = |limits: &HtmlLimits, cuts: &mut HtmlCuts| {
                Ok(("ncu_compare", html_document("ncu_compare", &wire::ncu_compare(page), limits, cuts)?))
            };
            let title = title_of(&page.after.source.path, Some(&page.before.source.path));
            let pairs = page.comparison.pairs.len();
            write(NcuPage {
                kind: HtmlKind::NcuCompare,
                title,
                text: comparison_text(page, &options),
                in_full: (pairs, pairs),
                document: &document,
            })?;
            session.end()
        });
    }
    let mut session = Session::open(args, &args.input)?;
    let chosen = session.choose()?;
    let (launches, totals) = table::launches(&session, &chosen, RowOrder::Duration);
    let mut longest: Vec<usize> = launches.iter().take(IN_PAGE).map(|launch| launch.row.id).collect();
    longest.sort_unstable();
    let in_full: Vec<_> = chosen.iter().filter(|chosen| longest.binary_search(&chosen.id).is_ok()).cloned().collect();
    let kernels = kernels::of(&session, &in_full, &Wanted { source: true, metrics: None })?;
    session.analysed();
    let header = session.header();
    let document = |limits: &HtmlLimits, cuts: &mut HtmlCuts| {
        let document = wire::ncu(&wire::NcuDocument {
            header: header.as_header(),
            kernels: &kernels,
            launches: Some(&launches),
            names: &totals.names,
            families: &totals.families,
            hot: None,
            with_source: true,
        });
        Ok(("ncu", html_document("ncu", &document, limits, cuts)?))
    };
    let head = &kernels[..kernels.len().min(IN_FULL)];
    let page = KernelPage { hot: Some(HOTTEST), full: false, left_out: session.results() - head.len() };
    write(NcuPage {
        kind: HtmlKind::Ncu,
        title: title_of(&header.source.path, None),
        text: kernels_text(&header.as_header(), head, &page, &options),
        in_full: (kernels.len(), chosen.len()),
        document: &document,
    })?;
    session.end()
}
