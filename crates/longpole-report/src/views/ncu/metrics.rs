//! Raw metrics, a row each.

use longpole_ncu::Value as Raw;

use super::super::text;
use crate::ncu::NcuKernel;
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::{count, decimal};

/// The value as people read it: whole numbers with separators, others with two decimals.
fn shown(value: &Raw) -> String {
    match value {
        Raw::Text(text) => text.clone(),
        Raw::Unsigned(number) => count(*number),
        value => value.number().map_or_else(
            || "not a number".to_owned(),
            |number| {
                let whole = number >= 0.0 && number.fract() == 0.0 && number < 1e15;
                if whole { count(number as u64) } else { significant(number) }
            },
        ),
    }
}

/// Six digits that mean something, more only before the point.
fn significant(number: f64) -> String {
    let magnitude = number.abs();
    if !(1e-4..1e15).contains(&magnitude) {
        return format!("{number:e}");
    }
    if magnitude >= 1e5 {
        return decimal(number);
    }
    let decimals = (5.0 - magnitude.log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{number:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The value as programs read it.
fn plain(value: &Raw) -> String {
    match value {
        Raw::Text(text) => text.clone(),
        Raw::Unsigned(number) => number.to_string(),
        Raw::Float(number) => number.to_string(),
        Raw::Double(number) => number.to_string(),
    }
}

/// The metrics of these kernels, kernel by kernel in the order of the report.
pub fn metrics(kernels: &[NcuKernel]) -> Table {
    let columns = vec![
        Column::new("metric", "metric", Kind::Text).at_least(56).not_below(32),
        Column::new("value", "value", Kind::Quantity).not_in_csv(),
        Column::new("value", "", Kind::Text).in_csv_only(),
        Column::new("unit", "unit", Kind::Text).at_least(6),
        Column::new("instances", "instances", Kind::Count).droppable(1),
        Column::new("id", "id", Kind::Count).droppable(6),
        Column::new("short_name", "kernel", Kind::Text).at_least(16).droppable(5),
    ];
    let rows = kernels.iter().flat_map(|kernel| {
        kernel.metrics.iter().flatten().map(|metric| {
            Row::new(vec![
                text(&metric.name),
                metric.value.as_ref().map_or(Value::Missing, |value| Value::Text(shown(value))),
                metric.value.as_ref().map_or(Value::Missing, |value| Value::Text(plain(value))),
                text(&metric.unit),
                if metric.instances.is_empty() { Value::Blank } else { Value::Count(metric.instances.len() as u64) },
                Value::Count(kernel.summary.id as u64),
                text(&kernel.short_name),
            ])
        })
    });
    Table {
        noun: "metrics",
        columns,
        rows: rows.collect(),
        totals: Vec::new(),
        hidden: 0,
        filtered_out: 0,
        empty: Some("the names of all metrics: --metrics ."),
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_digits() {
        let values = [0.071_969_696, 33.917_123_4, 0.5, 123_456.789, 1e-7, -2.25];
        assert_eq!(values.map(significant), ["0.0719697", "33.9171", "0.5", "123,456.79", "1e-7", "-2.25"]);
        assert_eq!(shown(&Raw::Double(99_635_968.0)), "99,635,968");
        assert_eq!(shown(&Raw::Double(f64::NAN)), "not a number");
        assert_eq!(plain(&Raw::Double(0.1)), "0.1");
    }
}
