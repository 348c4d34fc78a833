//! `longpole bench list`

use longpole_report::{views, wire};

use super::print;
use super::work::suite;
use crate::args::BenchListArgs;
use crate::bench::{choose, show};
use crate::exit::Failure;

pub(super) fn run(args: &BenchListArgs) -> Result<(), Failure> {
    let list = suite(&args.suite)?.list()?;
    let chosen = choose::benchmarks(&list, &args.keys, args.model.as_deref())?;
    let listed = show::list(&list, &chosen);
    let limit = args.output.rows();
    print(&args.output, || views::bench_list(&listed, limit), || views::bench_list_table(&listed, limit), &wire::bench_list(&listed, limit))
}
