//! Bytes as a Nsight Compute report, plain, compressed or as a table, and everything that can be asked of it.
//!
//! Nothing may panic, and what is asked for may not change what else is read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use longpole_ncu::Report;

fuzz_target!(|data: &[u8]| {
    let Ok(report) = Report::read(data, "fuzz") else { return };
    let everything = report.select().values(|_| true).instances(|_| true).rules().sections().nvtx();
    let values = report.select().values(|_| true);
    for result in report.decode_all(&everything) {
        let alone = report.decode(result.id, &values).map(|result| (result.name.clone(), result));
        let Some((name, alone)) = alone else { panic!("result {} is there or not", result.id) };
        assert_eq!(name, result.name);
        let of = |result: &longpole_ncu::ProfiledResult| -> Vec<String> {
            result.metrics.iter().filter_map(|(name, metric)| Some(format!("{name} {:?}", metric.value.as_ref()?))).collect()
        };
        // Damage inside instances loses their metric, and instances that nobody asks for are not looked at.
        if report.troubles().is_empty() {
            assert_eq!(of(&alone), of(&result));
        }
        report.source_of(&result);
    }
    assert_eq!(report.is_empty(), report.len() == 0);
    let _ = format!("{:?} {:?} {:?}", report.session(), report.processes(), report.troubles());
});
