//! Units by name against every unit that ncu prints in the corpus.

use std::collections::BTreeSet;

use longpole_ncu::units;

use crate::files;

#[test]
fn units_by_name_are_those_that_ncu_prints() {
    let mut printed = BTreeSet::new();
    for path in files::with_pages("raw") {
        let Some((_, page)) = files::report_and_page(&path, "raw") else { continue };
        // The columns before "CC" are not metrics.
        let metrics = page[0].iter().zip(&page[1]).skip_while(|(column, _)| *column != "CC").skip(1);
        printed.extend(metrics.map(|(column, unit)| (column.clone(), unit.clone())));
    }
    let (mut agreeing, mut unknown, mut wrong) = (0, Vec::new(), Vec::new());
    for (name, unit) in &printed {
        let base = units::parse(unit).unwrap_or_else(|| panic!("{name} has the unit {unit}")).base;
        match units::of_metric(name) {
            Some(ours) if ours == base => agreeing += 1,
            Some(ours) => wrong.push(format!("{name}: ncu prints {unit}, we have {ours}")),
            None if base.is_empty() => {}
            None => unknown.push(format!("{name} [{unit}]")),
        }
    }
    println!("units by name: {agreeing} agree, {} differ, {} have a unit that the name does not give", wrong.len(), unknown.len());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(agreeing >= files::at_least(1_250, 1_100) && unknown.len() < 100, "{agreeing} agree, unknown:\n{}", unknown.join("\n"));
}
