//! Time by stack: speedscope's profiles, and collapsed lines.

use std::ffi::OsStr;

use longpole_analysis::{StackTree, device_stacks, host_stacks, idle_stacks};
use longpole_report::{Profile, collapsed as write_collapsed, count, speedscope as write_speedscope};
use longpole_trace::Ns;

use super::{WRITER, end, open, target, write};
use crate::args::{ExportArgs, Weight};
use crate::exit::Failure;
use crate::session::Session;
use crate::target::Target;

/// The stacks of a kind of time.
fn stacks(session: &Session<'_>, weight: Weight) -> StackTree {
    match weight {
        Weight::Host => host_stacks(&session.index, &session.scope),
        Weight::Device => device_stacks(&session.index, &session.scope),
        Weight::Idle => idle_stacks(&session.index, &session.scope),
    }
}

const fn what(weight: Weight) -> &'static str {
    match weight {
        Weight::Host => "host time",
        Weight::Device => "device time",
        Weight::Idle => "idle time",
    }
}

/// Nothing to write is said instead of an empty file.
fn nothing(session: &Session<'_>, weight: Weight) -> Failure {
    let trace = session.index.trace();
    Failure::Usage(match weight {
        Weight::Device | Weight::Idle if trace.activities.is_empty() => {
            format!("there is no {}: {}", what(weight), trace.recorder.advice().no_device)
        }
        _ => format!("there is no {} in this scope, so there is nothing to write", what(weight)),
    })
}

pub(super) fn speedscope(args: &ExportArgs) -> Result<(), Failure> {
    let target = target(args)?;
    let session = open(args)?;
    let weights = args.weight.map_or_else(|| vec![Weight::Host, Weight::Device, Weight::Idle], |weight| vec![weight]);
    let trees: Vec<_> = weights.iter().map(|&weight| (what(weight), stacks(&session, weight))).collect();
    if trees.iter().all(|(_, tree)| tree.total() == Ns::ZERO) {
        return Err(nothing(&session, weights[0]));
    }
    let profiles: Vec<_> = trees.iter().map(|(what, stacks)| Profile { what, stacks }).collect();
    let name = session.source_path().to_owned();
    let (summary, size) = write(args, &session, &target, |out| write_speedscope(&profiles, session.index.trace(), &name, WRITER, out))?;
    end(args, session, &format!("{} profiles, {} stacks", count(summary.profiles), count(summary.stacks)), summary.bytes, size)
}

pub(super) fn collapsed(args: &ExportArgs) -> Result<(), Failure> {
    // Lines of text are for people too.
    let target = Target::find(args.output.as_deref().unwrap_or(OsStr::new("-")), &[&args.common.input])?;
    let session = open(args)?;
    let weight = args.weight.unwrap_or(Weight::Host);
    let stacks = stacks(&session, weight);
    if stacks.total() == Ns::ZERO {
        return Err(nothing(&session, weight));
    }
    let (summary, size) = write(args, &session, &target, |out| write_collapsed(&stacks, session.index.trace(), out))?;
    end(args, session, &format!("{} stacks of {}", count(summary.stacks), what(weight)), summary.bytes, size)
}
