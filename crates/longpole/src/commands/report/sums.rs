//! A page of a source that holds sums alone, or of two.

use longpole_analysis::{SumsSide, diff_sums, sums_triage};
use longpole_report::{HtmlCuts, HtmlKind, HtmlPage, Page, TextOptions, html_document, sums_text, wire};

use super::{MADE_BY, Out, WIDTH, first_page, size, title_of};
use crate::commands::sums::same_kind;
use crate::exit::Failure;
use crate::session::Session;

/// Rows of the text that a reader without scripts gets.
const HEAD: usize = 20;

pub(super) fn run(out: &Out<'_>, session: &mut Session<'_>) -> Result<(), Failure> {
    let args = out.args;
    if args.unprofiled_step_ms.is_some() {
        return Err(Failure::Usage("--unprofiled-step-ms restates host times, and totals have none".to_owned()));
    }
    let full_names = args.common.full_names;
    let workload = session.shown(args.workload.as_deref());
    let trace = session.index.trace();
    let result = sums_triage(trace, &session.scope, workload.as_deref(), full_names);
    let before = match &args.before {
        Some(named) => {
            let before = session.read_second(named)?;
            same_kind(session, &before, named)?;
            let side = |trace, scope| SumsSide { trace, scope };
            let diff = diff_sums(&side(before.index.trace(), &before.scope), &side(trace, &session.scope));
            let first = sums_triage(before.index.trace(), &before.scope, None, full_names);
            Some((before, diff, first))
        }
        None => None,
    };
    session.analysed();
    let header = session.header();
    let options = TextOptions { width: WIDTH, color: false, full_names, wrap: true };
    let page = Page { limit: Some(HEAD), ..Page::default() };
    let text = first_page(sums_text(&header, &result, trace, &page, full_names, &options));
    let path = session.source_path();
    let of_before = before.as_ref().map(|(before, ..)| before.header().source.path.clone());
    let title = title_of(path, of_before.as_deref());
    let (html, cuts) = size::fitting(|room| {
        let (limits, mut cuts) = (&room.limits, HtmlCuts::default());
        let mut documents = vec![(
            "sums",
            html_document("sums", &wire::sums_triage(&header, &result, trace), limits, &mut cuts).map_err(std::io::Error::from)?,
        )];
        let mut of_before = None;
        if let Some((before, diff, first)) = &before {
            let compared = wire::diff(&before.header(), &header, diff, None);
            documents.push(("diff", html_document("diff", &compared, limits, &mut cuts).map_err(std::io::Error::from)?));
            let first = wire::sums_triage(&before.header(), first, before.index.trace());
            of_before = Some(vec![("sums", html_document("before.sums", &first, limits, &mut cuts).map_err(std::io::Error::from)?)]);
        }
        let (kind, names_bytes) = (HtmlKind::Sums, room.names_bytes);
        let page = HtmlPage {
            kind,
            title: &title,
            made_by: MADE_BY,
            documents,
            before: of_before,
            cuts,
            overview: None,
            before_overview: None,
            text: &text,
            limits: room.limits,
            names_bytes,
        };
        Ok(page.write()?)
    })?;
    out.write(&html, &cuts, "")?;
    session.finish()?;
    before.map_or(Ok(()), |(before, ..)| session.judge(&before))
}
