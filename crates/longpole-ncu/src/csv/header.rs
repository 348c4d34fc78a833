//! What each column of a table is.

use csv::ByteRecord;

use super::text_of;
use crate::container::Names;

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Id,
    ProcessId,
    ProcessName,
    HostName,
    KernelName,
    Context,
    Stream,
    BlockSize,
    GridSize,
    Device,
    ComputeCapability,
    Nvtx,
    SectionName,
    MetricName,
    MetricUnit,
    MetricValue,
    RuleName,
    RuleType,
    RuleText,
    SpeedupScope,
    Speedup,
    /// A column of the raw page: the number of the metric's name.
    Metric(u32),
    /// Known, and not needed.
    Other,
}

/// The columns of a table.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) columns: Vec<Column>,
    /// True for the details page.
    pub(super) is_details: bool,
    /// The fewest cells of a row: details rows without a rule leave out the columns of rules.
    pub(super) fewest: usize,
}

/// True for the row that starts a table.
pub(super) fn is_header(row: &ByteRecord) -> bool {
    row.get(0) == Some(b"ID") && row.get(1) == Some(b"Process ID")
}

impl Header {
    /// Reads a header; metrics are added to the names.
    pub(super) fn of(row: &ByteRecord, names: &mut Names) -> Self {
        let is_details = row.iter().any(|cell| cell == b"Metric Name") && row.iter().any(|cell| cell == b"Metric Value");
        let columns: Vec<Column> = row
            .iter()
            .map(|cell| match cell {
                b"ID" => Column::Id,
                b"Process ID" => Column::ProcessId,
                b"Process Name" => Column::ProcessName,
                b"Host Name" => Column::HostName,
                b"Kernel Name" => Column::KernelName,
                b"Context" => Column::Context,
                b"Stream" => Column::Stream,
                b"Block Size" => Column::BlockSize,
                b"Grid Size" => Column::GridSize,
                b"Device" => Column::Device,
                b"CC" => Column::ComputeCapability,
                b"Kernel Time" => Column::Other,
                b"Section Name" => Column::SectionName,
                b"Metric Name" => Column::MetricName,
                b"Metric Unit" => Column::MetricUnit,
                b"Metric Value" => Column::MetricValue,
                b"Rule Name" => Column::RuleName,
                b"Rule Type" => Column::RuleType,
                b"Rule Description" => Column::RuleText,
                b"Estimated Speedup Type" => Column::SpeedupScope,
                b"Estimated Speedup" => Column::Speedup,
                _ if memchr::memmem::find(cell, b"Domain:").is_some() => Column::Nvtx,
                _ if is_details => Column::Other,
                _ => Column::Metric(names.intern(&text_of(cell))),
            })
            .collect();
        let last_needed = columns.iter().position(|column| *column == Column::MetricValue);
        let fewest = last_needed.filter(|_| is_details).map_or(columns.len(), |at| at + 1);
        Self { columns, is_details, fewest }
    }

    /// True if a row may belong to this table.
    pub(super) fn fits(&self, row: &ByteRecord) -> bool {
        (self.fewest..=self.columns.len()).contains(&row.len())
    }
}
