//! `longpole ops`

use longpole_analysis::{OpTable, SortKey, device_busy, op_table};
use longpole_report::{views, wire};

use crate::args::{Format, OpsArgs};
use crate::exit::Failure;
use crate::session::Session;
use crate::sort;

/// The key that `--sort` names, in torch's spelling.
pub(super) fn sort_key(asked: Option<&str>) -> Result<Option<SortKey>, Failure> {
    asked.map(|text| text.parse().map_err(Failure::Usage)).transpose()
}

/// Sorts by the key asked for, and returns it; by device time if none is, or host time where no device activity was recorded.
pub(super) fn sort_rows(table: &mut OpTable, asked: Option<SortKey>) -> SortKey {
    let own = if table.self_cuda_total_ns.is_some() { SortKey::default() } else { SortKey::CpuTimeTotal };
    let key = asked.unwrap_or(own);
    table.sort(key);
    key
}

/// Sorts as the command does when no key is asked for.
pub(crate) fn sort_by_own_key(table: &mut OpTable) {
    sort_rows(table, None);
}

pub(super) fn run(args: &OpsArgs) -> Result<(), Failure> {
    let key = sort_key(args.common.sort.as_deref())?;
    let mut session = Session::open(&args.common)?;
    session.needs_timeline("ops")?;
    let mut table = op_table(&session.index, &session.scope, args.by);
    let key = sort_rows(&mut table, key);
    session.analysed();
    session.filter(&mut table.rows, |regex, row| regex.is_match(&row.name));
    if session.format() == Format::Json {
        table.rows.truncate(session.limit().unwrap_or(usize::MAX));
        session.print_json(&wire::ops(&session.header(), &table, args.by))
    } else {
        let mut shown = views::ops(&table, args.by, session.index.trace().recorder);
        let busy = device_busy(&session.index, &session.scope);
        shown.notes.extend(views::overlap_note(table.self_cuda_total_ns, busy, views::SharesOf::Sum));
        session.print_table(shown, Some(sort::ops_column(key)))
    }
}
