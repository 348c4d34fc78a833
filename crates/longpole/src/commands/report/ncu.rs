//! A page of one or two reports of Nsight Compute.

use std::ffi::OsString;

use clap::Parser as _;
use longpole_report::{HtmlCuts, HtmlPage, count};

use super::{MADE_BY, Out, first_page, size};
use crate::args::{Cli, Command};
use crate::commands::ncu;
use crate::exit::Failure;

pub(super) fn run(out: &Out<'_>) -> Result<(), Failure> {
    let (args, common) = (out.args, &out.args.common);
    let given = [
        ("--range, --step, --time, --device and --rank", common.scope.spec() != longpole_analysis::ScopeSpec::default()),
        ("--workload", args.workload.is_some()),
        ("--unprofiled-step-ms", args.unprofiled_step_ms.is_some()),
        ("--ignore-ranges", args.ignore_ranges),
        ("--roles-from", args.roles_from.is_some()),
        ("--peaks", args.peaks.is_some()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::Usage(format!("{flag} are for traces: a report of Nsight Compute has no place for them")));
    }
    let mut line: Vec<OsString> = vec!["longpole".into(), "ncu".into()];
    line.extend(args.before.iter().flat_map(|before| ["--compare".into(), before.clone()]));
    line.extend(common.threads.map(|threads| format!("--threads={threads}").into()));
    for (flag, is_given) in [
        ("--no-redact", common.no_redact),
        ("--quiet", common.quiet),
        ("--strict", common.strict),
        ("--full-names", common.full_names),
        ("--stats=text", common.stats == Some(crate::args::StatsFormat::Text)),
        ("--stats=json", common.stats == Some(crate::args::StatsFormat::Json)),
    ] {
        line.extend(is_given.then(|| flag.into()));
    }
    // A name that looks like a flag is none.
    line.extend(["--".into(), common.input.clone()]);
    let cli = Cli::try_parse_from(line).map_err(|error| Failure::Usage(error.to_string()))?;
    let Command::Ncu(args) = &cli.command else { return Err(Failure::Usage("no report".to_owned())) };
    ncu::page(args, |page| {
        let text = first_page(page.text.clone());
        let (html, cuts) = size::fitting(|room| {
            let mut cuts = HtmlCuts::default();
            cuts.add("ncu.kernels", page.in_full.0 as u64, page.in_full.1 as u64);
            let document = (page.document)(&room.limits, &mut cuts).map_err(std::io::Error::from)?;
            let of_room = HtmlPage {
                kind: page.kind,
                title: &page.title,
                made_by: MADE_BY,
                documents: vec![document],
                before: None,
                cuts,
                overview: None,
                before_overview: None,
                text: &text,
                limits: room.limits,
                names_bytes: room.names_bytes,
            };
            Ok(of_room.write()?)
        })?;
        let what = if out.args.before.is_some() { "pairs" } else { "results" };
        out.write(&html, &cuts, &format!("{} {what}, ", count(page.in_full.1 as u64)))
    })
}
