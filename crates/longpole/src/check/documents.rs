//! The documents that figures are looked up in: what `longpole COMMAND --json` prints of a trace, each made when a path first asks for it
//! and then kept, or one that was printed before.

use longpole_analysis::{
    GroupBy, Scope, ScopeWork, StepOptions, TraceIndex, TriageOptions, family_sums, family_table, idle_table, kernel_sums, kernel_table,
    memory_table, op_table, peaks_of, range_table, rank_report, roofline, scope_sums, step_ceilings, step_table, sums_triage, triage,
};
use longpole_report::views::{StepLayout, StepOrder, Steps};
use longpole_report::{Header, wire};
use serde_json::{Value, to_value};

use crate::commands::sort_ops;

/// Whose document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Triage,
    Ops,
    Kernels,
    Families,
    Ranges,
    Memory,
    Steps,
    Idle,
    Roofline,
    Ranks,
}

impl Name {
    /// All of them.
    pub(crate) const ALL: [Self; 10] = [
        Self::Triage,
        Self::Ops,
        Self::Kernels,
        Self::Families,
        Self::Ranges,
        Self::Memory,
        Self::Steps,
        Self::Idle,
        Self::Roofline,
        Self::Ranks,
    ];

    /// The command.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Triage => "triage",
            Self::Ops => "ops",
            Self::Kernels => "kernels",
            Self::Families => "families",
            Self::Ranges => "ranges",
            Self::Memory => "memory",
            Self::Steps => "steps",
            Self::Idle => "idle",
            Self::Roofline => "roofline",
            Self::Ranks => "ranks",
        }
    }

    /// Whether a source that holds sums alone has it.
    pub(crate) const fn is_of_totals(self) -> bool {
        matches!(self, Self::Triage | Self::Kernels | Self::Families | Self::Ranges)
    }

    /// The document of a command.
    pub(crate) fn find(command: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.code() == command)
    }
}

/// A trace whose documents are asked for.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) index: &'a TraceIndex<'static>,
    pub(crate) scope: &'a Scope,
    pub(crate) header: Header<'a>,
    /// Whether the last part of the file was not read.
    pub(crate) is_cut: bool,
}

/// The documents of a trace, or the one that was printed.
pub(crate) struct Documents<'a> {
    subject: Option<Subject<'a>>,
    made: [Option<Value>; Name::ALL.len()],
}

impl<'a> Documents<'a> {
    /// Of a trace.
    pub(crate) fn of(subject: Subject<'a>) -> Self {
        Self { subject: Some(subject), made: Default::default() }
    }

    /// The one that a file holds.
    pub(crate) fn printed(document: Value) -> Result<Self, String> {
        let schema = document.get("schema").and_then(Value::as_str).unwrap_or_default();
        let name = schema.strip_prefix("longpole.").and_then(|rest| Name::find(rest.strip_suffix("/1")?));
        let name = name
            .ok_or_else(|| format!("it is no document to compare with: its schema is `{}`", schema.chars().take(40).collect::<String>()))?;
        let mut made: [Option<Value>; Name::ALL.len()] = Default::default();
        made[name as usize] = Some(document);
        Ok(Self { subject: None, made })
    }

    /// Of the document that a file holds: whose it is, and the scope it was printed with.
    pub(crate) fn printed_scope(&self) -> Option<(Name, &Value)> {
        let name = Name::ALL.into_iter().find(|&name| self.made[name as usize].is_some())?;
        let document = self.made[name as usize].as_ref().filter(|_| self.subject.is_none())?;
        Some((name, &document["scope"]))
    }

    /// The document of a command; `None` where only another one was printed.
    pub(crate) fn get(&mut self, name: Name) -> Result<Option<&Value>, String> {
        let slot = &mut self.made[name as usize];
        if let (None, Some(subject)) = (&slot, &self.subject) {
            let made = if subject.index.trace().has_totals_only() {
                make_of_sums(name, subject)?
            } else {
                make(name, subject).map_err(|error| error.to_string())?
            };
            *slot = Some(made);
        }
        Ok(slot.as_ref())
    }
}

/// The same of a source that holds sums alone.
fn make_of_sums(name: Name, subject: &Subject<'_>) -> Result<Value, String> {
    let Subject { index, scope, header, is_cut: _ } = subject;
    let trace = index.trace();
    let made = match name {
        Name::Triage => to_value(wire::sums_triage(header, &sums_triage(trace, scope, None, false), trace)),
        Name::Kernels => to_value(wire::kernel_sums(header, &kernel_sums(trace, scope))),
        Name::Families => to_value(wire::family_sums(header, &family_sums(trace, scope))),
        Name::Ranges => to_value(wire::scope_sums(header, &scope_sums(trace, scope), trace)),
        Name::Ops | Name::Memory | Name::Steps | Name::Idle | Name::Roofline | Name::Ranks => {
            return Err(format!(
                "`{}` holds totals only, not when anything ran, so there is no document `{}` of it",
                header.source.path,
                name.code()
            ));
        }
    };
    made.map_err(|error| error.to_string())
}

/// A document as its command prints it when nothing is sorted, filtered or shortened.
fn make(name: Name, subject: &Subject<'_>) -> serde_json::Result<Value> {
    let Subject { index, scope, header, is_cut } = subject;
    let trace = index.trace();
    match name {
        Name::Triage => {
            let options = TriageOptions { is_cut: *is_cut, ..TriageOptions::default() };
            let mut result = triage(index, scope, &options);
            sort_ops(&mut result.ops);
            to_value(wire::triage(header, &result, trace))
        }
        Name::Ops => {
            let mut table = op_table(index, scope, GroupBy::Name);
            sort_ops(&mut table);
            to_value(wire::ops(header, &table, GroupBy::Name))
        }
        Name::Kernels => to_value(wire::kernels(header, &kernel_table(index, scope))),
        Name::Families => to_value(wire::families(header, &family_table(index, scope))),
        Name::Ranges => to_value(wire::ranges(header, &range_table(index, scope))),
        Name::Memory => to_value(wire::memory(header, &memory_table(index, scope))),
        Name::Steps => {
            let table = step_table(index, scope, &StepOptions::default());
            let peaks = peaks_of(trace, scope);
            let ceilings = step_ceilings(&ScopeWork::find(index, scope, peaks.as_ref().ok()), &table, &[]);
            let report = Steps { table: &table, ceilings: &ceilings, peaks: peaks.as_ref(), recorded: None };
            let layout = StepLayout { order: StepOrder::default(), limit: None, by_kernel: false, full_names: false };
            to_value(wire::steps(header, &report, trace, &layout))
        }
        Name::Idle => to_value(wire::idle(header, &idle_table(index, scope), trace)),
        Name::Roofline => {
            let known = peaks_of(trace, scope);
            to_value(wire::roofline(header, &roofline(index, scope, known.as_ref().ok()), known.as_ref().err()))
        }
        Name::Ranks => to_value(wire::ranks(header, &rank_report(index, scope), trace, None)),
    }
}
