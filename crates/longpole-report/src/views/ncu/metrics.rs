//! Raw metrics, a row each.

use longpole_ncu::Value as Raw;

use super::super::text;
use crate::names::ellipsis;
use crate::ncu::NcuKernel;
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::{count, decimal};

/// The value as people read it: whole numbers with separators, others with two decimals.
fn shown(value: &Raw) -> String {
    match value {
        Raw::Text(text) => short_text(text),
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

/// Columns of a text: names of metrics come first.
const TEXT: usize = 24;

/// Texts are long lists of names in `group:` and `breakdown:` metrics; others are cut in their middle.
fn short_text(text: &str) -> String {
    let names = text.split([',', ';', ' ', '\n']).filter(|name| !name.is_empty());
    let is_list = text.len() > TEXT && names.clone().nth(1).is_some() && names.clone().all(|name| name.contains("__"));
    if is_list { format!("{} names", count(names.count() as u64)) } else { ellipsis(text, TEXT).into_owned() }
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

/// Wider than any name or unit of ncu: such a column is never cut while another can go.
const WHOLE: usize = 256;

/// The metrics of these kernels, kernel by kernel in the order of the report.
pub fn metrics(kernels: &[NcuKernel]) -> Table {
    let columns = vec![
        Column::new("metric", "metric", Kind::Text).at_least(WHOLE),
        Column::new("value", "value", Kind::Quantity).not_in_csv(),
        Column::new("value", "", Kind::Text).in_csv_only(),
        Column::new("unit", "unit", Kind::Text).at_least(WHOLE),
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
        empty: Some("no metric matches; the names of all metrics: --metrics ."),
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

    #[test]
    fn texts_give_way_to_names() {
        assert_eq!(short_text("sm__a.sum,sm__b.sum,sm__cdefgh.sum"), "3 names");
        assert_eq!(short_text("PreferNone"), "PreferNone");
        assert_eq!(short_text("NVIDIA H200 with a very long description").chars().count(), TEXT);
    }
}
