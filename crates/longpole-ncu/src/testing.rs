//! Results made by hand, for tests.

use std::sync::Arc;

use crate::container::{EntryKind, Names};
use crate::metrics::{Metric, Metrics, Value};
use crate::nvtx::NvtxRange;
use crate::report::{Backing, Report};
use crate::result::ProfiledResult;
use crate::rules::{Message, MessageKind, Rule, Scope};
use crate::sections::Section;
use crate::session::Session;
use crate::trouble::Troubles;

/// One result in the making.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    kind: EntryKind,
    name: String,
    grid: Option<[u64; 3]>,
    block: Option<[u64; 3]>,
    clocks_locked: Option<bool>,
    values: Vec<(String, Value)>,
    rules: Vec<Rule>,
    sections: Vec<Section>,
    nvtx: Vec<NvtxRange>,
}

impl Sample {
    /// A kernel of this name; its function is what stands before `<` or `(`.
    pub(crate) fn kernel(name: &str) -> Self {
        Self::of(EntryKind::Kernel, name)
    }

    /// A result of a kind.
    pub(crate) fn of(kind: EntryKind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            grid: None,
            block: None,
            clocks_locked: None,
            values: Vec::new(),
            rules: Vec::new(),
            sections: Vec::new(),
            nvtx: Vec::new(),
        }
    }

    /// Adds a metric with a number.
    pub(crate) fn value(mut self, metric: &str, number: f64) -> Self {
        self.values.push((metric.to_owned(), Value::Double(number)));
        self
    }

    /// Sets the grid.
    pub(crate) fn grid(mut self, grid: [u64; 3]) -> Self {
        self.grid = Some(grid);
        self
    }

    /// Sets the block.
    pub(crate) fn block(mut self, block: [u64; 3]) -> Self {
        self.block = Some(block);
        self
    }

    /// Says whether the clocks were locked.
    pub(crate) fn clocks_locked(mut self, locked: bool) -> Self {
        self.clocks_locked = Some(locked);
        self
    }

    /// Adds a section.
    pub(crate) fn section(mut self, id: &str) -> Self {
        self.sections.push(Section { id: id.to_owned(), title: id.to_owned(), labels: Vec::new() });
        self
    }

    /// Adds an NVTX range inside those there are.
    pub(crate) fn nvtx(mut self, name: &str) -> Self {
        self.nvtx.push(NvtxRange { name: name.to_owned(), domain: None });
        self
    }

    /// Adds a rule with one message.
    pub(crate) fn rule(mut self, id: &str, section: &str, text: &str, kind: MessageKind, speedup: Option<(Scope, f64)>) -> Self {
        let message = Message { title: String::new(), text: text.to_owned(), kind, speedup, focus: Vec::new() };
        self.rules.push(Rule { id: id.to_owned(), title: id.to_owned(), section: section.to_owned(), messages: vec![message] });
        self
    }

    /// Its metrics alone.
    pub(crate) fn metrics(self) -> Metrics {
        self.finish(0).metrics
    }

    /// The result, at a place of its report, with names of its own.
    pub(crate) fn finish(self, id: usize) -> ProfiledResult {
        let mut names = Names::default();
        self.list_names(&mut names);
        self.finish_with(id, &Arc::new(names))
    }

    fn list_names(&self, names: &mut Names) {
        for (name, _) in &self.values {
            names.intern(name);
        }
    }

    fn finish_with(self, id: usize, names: &Arc<Names>) -> ProfiledResult {
        let row = |(name, value): (String, Value)| {
            Some(Metric { name: names.find(&name)?, value: Some(value), instances: Vec::new(), is_series: false })
        };
        let rows = self.values.into_iter().filter_map(row).collect();
        let function = self.name.split(['<', '(']).next().map(str::to_owned);
        ProfiledResult {
            id,
            kind: self.kind,
            process: None,
            function: function.filter(|_| self.kind == EntryKind::Kernel),
            mangled: None,
            name: self.name,
            grid: self.grid,
            block: self.block,
            thread: None,
            context: None,
            stream: None,
            clocks_locked: self.clocks_locked,
            sources: Vec::new(),
            metrics: Metrics::new(Arc::clone(names), rows),
            rules: self.rules,
            sections: self.sections,
            nvtx: self.nvtx,
        }
    }
}

/// A report with these results and an empty session.
pub(crate) fn report(samples: Vec<Sample>) -> Report {
    report_of(Session::default(), samples)
}

/// A report with this session and these results, which share its names as those of a file do.
pub(crate) fn report_of(session: Session, samples: Vec<Sample>) -> Report {
    let mut names = Names::default();
    for sample in &samples {
        sample.list_names(&mut names);
    }
    let names = Arc::new(names);
    let results = samples.into_iter().enumerate().map(|(id, sample)| sample.finish_with(id, &names)).collect();
    Report {
        page: crate::report::Page::Whole,
        path: "made by hand".to_owned(),
        format: "ncu-csv",
        bytes: 0,
        session,
        processes: Vec::new(),
        troubles: Troubles::default(),
        names,
        backing: Backing::Table(results),
    }
}
