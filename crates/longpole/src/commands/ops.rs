//! `longpole ops`

use longpole_analysis::{SortKey, op_table};
use longpole_report::{views, wire};

use crate::args::{Format, OpsArgs};
use crate::exit::Failure;
use crate::session::Session;

/// The key that `--sort` names, in torch's spelling.
pub(super) fn sort_key(asked: Option<&str>) -> Result<SortKey, Failure> {
    asked.map_or(Ok(SortKey::default()), |text| text.parse().map_err(Failure::Usage))
}

pub(super) fn run(args: &OpsArgs) -> Result<(), Failure> {
    let key = sort_key(args.common.sort.as_deref())?;
    let mut session = Session::open(&args.common)?;
    let mut table = op_table(&session.index, &session.scope, args.by);
    table.sort(key);
    session.analysed();
    session.filter(&mut table.rows, |regex, row| regex.is_match(&row.name));
    match session.format() {
        Format::Json => {
            table.rows.truncate(session.limit().unwrap_or(usize::MAX));
            session.print_json(&wire::ops(&session.header(), &table, args.by))
        }
        _ => session.print_table(views::ops(&table, args.by)),
    }
}
