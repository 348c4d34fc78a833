//! `longpole ncu --table`

use std::collections::BTreeMap;

use longpole_analysis::Family;
use longpole_ncu::table::{self, RowOrder, TableRow, sort_rows};
use longpole_report::views::ncu::{LaunchRow, TotalRow};
use longpole_report::{redact_launches, views, wire};

use super::open::{Chosen, PIECE, Session};
use crate::args::Format;
use crate::exit::Failure;

/// The order that `--sort` names; longest first if it is not given.
pub(super) fn order(asked: Option<&str>) -> Result<RowOrder, Failure> {
    let Some(asked) = asked else { return Ok(RowOrder::Duration) };
    // The JSON key of a column, and what other commands call it, name it as well.
    let name = asked.trim_end_matches("_ns").trim_end_matches("_pct").trim_end_matches("_per_sm").trim_start_matches("achieved_");
    let name = match name {
        "time" | "cuda" => "duration",
        "id" => "launch",
        name => name,
    };
    let found = RowOrder::ALL.iter().find(|(word, _)| *word == name).map(|(_, order)| *order);
    found.ok_or_else(|| {
        let words: Vec<&str> = RowOrder::ALL.iter().map(|(word, _)| *word).collect();
        Failure::Usage(format!("unknown sort key `{asked}`; use one of {}", words.join(", ")))
    })
}

/// The column that shows what an order sorts by.
const fn column(order: RowOrder) -> &'static str {
    match order {
        RowOrder::Launch => "id",
        RowOrder::Duration => "duration_ns",
        RowOrder::Dram => "dram_pct",
        RowOrder::Memory => "memory_pct",
        RowOrder::Sm => "sm_pct",
        RowOrder::Occupancy => "achieved_occupancy_pct",
        RowOrder::Waves => "waves_per_sm",
        RowOrder::Name => "short_name",
    }
}

/// Totals by name and by family.
pub(super) struct Totals {
    pub(super) names: Vec<TotalRow>,
    pub(super) families: Vec<TotalRow>,
}

fn rows(session: &Session<'_>, chosen: &[Chosen]) -> Vec<TableRow> {
    let report = &session.report;
    let selection = table::selection(report);
    let ids: Vec<usize> = chosen.iter().map(|chosen| chosen.id).collect();
    let mut rows = Vec::with_capacity(ids.len());
    // In pieces, so that the results of a large report are not all in memory at once.
    for piece in ids.chunks(PIECE) {
        rows.extend(table::rows(report, &report.decode_each(piece, &selection)));
    }
    if !session.args.no_redact {
        redact_launches(&mut rows);
    }
    rows
}

fn totals_of(rows: &[TableRow], chosen: &BTreeMap<usize, &Chosen>) -> Totals {
    let of = |row: &TableRow| chosen.get(&row.id).copied();
    let mut by_name: BTreeMap<&str, &Chosen> = BTreeMap::new();
    for row in rows {
        if let Some(chosen) = of(row) {
            by_name.insert(&row.name, chosen);
        }
    }
    let names = table::totals(rows, |row| row.name.clone()).into_iter().map(|total| {
        let known = by_name.get(total.key.as_str());
        TotalRow {
            name: known.map_or_else(|| total.key.clone(), |chosen| chosen.short_name.clone()),
            full_name: Some(total.key.clone()),
            family: known.and_then(|chosen| chosen.family),
            total,
        }
    });
    let word = |row: &TableRow| {
        of(row).and_then(|chosen| chosen.family).map_or_else(|| row.kind.name().replace('_', " "), |family| family.name().to_owned())
    };
    let families = table::totals(rows, word).into_iter().map(|total| TotalRow {
        name: total.key.clone(),
        full_name: None,
        family: Family::ALL.iter().copied().find(|family| family.name() == total.key),
        total,
    });
    Totals { names: names.collect(), families: families.collect() }
}

fn by_id(chosen: &[Chosen]) -> BTreeMap<usize, &Chosen> {
    chosen.iter().map(|chosen| (chosen.id, chosen)).collect()
}

/// Totals over the chosen results.
pub(super) fn totals(session: &Session<'_>, chosen: &[Chosen]) -> Totals {
    totals_of(&rows(session, chosen), &by_id(chosen))
}

/// A row a launch, as they are ordered, and totals.
pub(super) fn launches(session: &Session<'_>, chosen: &[Chosen], order: RowOrder) -> (Vec<LaunchRow>, Totals) {
    let mut rows = rows(session, chosen);
    let by_id = by_id(chosen);
    let totals = totals_of(&rows, &by_id);
    sort_rows(&mut rows, order);
    let launch = |row: TableRow| LaunchRow {
        short_name: by_id.get(&row.id).map_or_else(|| row.name.clone(), |chosen| chosen.short_name.clone()),
        family: by_id.get(&row.id).and_then(|chosen| chosen.family),
        process: session.process(row.process),
        row,
    };
    (rows.into_iter().map(launch).collect(), totals)
}

/// Prints the table of the chosen results.
pub(super) fn run(session: &mut Session<'_>, chosen: &[Chosen], order: RowOrder) -> Result<(), Failure> {
    let (mut launches, Totals { names, families }) = launches(session, chosen, order);
    let total_ns = launches.iter().filter_map(|launch| launch.row.duration_ns).fold(0, u64::saturating_add);
    session.analysed();
    if session.format() == Format::Json {
        launches.truncate(session.limit().unwrap_or(usize::MAX));
        let header = session.header();
        return session.print_json(&wire::ncu(&wire::NcuDocument {
            header: header.as_header(),
            kernels: &[],
            launches: Some(&launches),
            names: &names,
            families: &families,
            hot: None,
            with_source: false,
        }));
    }
    let mut tables = vec![
        ("By family", views::ncu::families(&families)),
        ("By name", views::ncu::names(&names)),
        ("Launches", views::ncu::launches(&launches, total_ns, session.args.full_names)),
    ];
    if session.args.kernel.is_some() {
        let left_out = session.results() - launches.len();
        for (_, table) in &mut tables {
            table.filtered_out = left_out;
        }
    }
    session.print_tables(tables, &[column(order)])
}
