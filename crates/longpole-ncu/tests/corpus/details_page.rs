//! Rules and labelled metrics against ncu's details page.

use longpole_ncu::{Message, ProfiledResult};

use crate::files;
use crate::raw_page::{Tally, plain, print_like};

/// A percentage as ncu prints an estimate: four significant digits, without zeros behind.
pub(crate) fn estimate(percent: f64) -> String {
    let places = 3 - percent.abs().log10().floor().max(-5.0) as i32;
    let text = format!("{percent:.*}", places.clamp(0, 10) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A text without the addresses that ncu prints behind the labels of links.
pub(crate) fn without_addresses(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once(" (https://") {
        plain.push_str(before);
        rest = link.split_once(')').map_or("", |(_, after)| after);
    }
    plain + rest
}

/// Messages of all rules that fired, as rows of the page: section, rule, kind, text, scope, estimate.
fn rule_rows(result: &ProfiledResult) -> Vec<[String; 6]> {
    let cells = |section: &str, rule: &str, message: &Message| {
        let (scope, percent) =
            message.speedup.map_or_else(Default::default, |(scope, percent)| (scope.name().to_owned(), estimate(percent)));
        [section.to_owned(), rule.to_owned(), message.kind.abbreviation().to_owned(), message.text.clone(), scope, percent]
    };
    result.rules.iter().flat_map(|rule| rule.messages.iter().map(|message| cells(&rule.section, &rule.id, message))).collect()
}

#[test]
fn rules_and_labelled_metrics_are_what_ncu_prints() {
    let (mut rules, mut metrics) = (Tally::default(), Tally::default());
    for path in files::with_pages("details") {
        let name = path.display();
        let Some((report, page)) = files::report_and_page(&path, "details") else { continue };
        let results = report.decode_all(&report.select().values(|_| true).rules().sections());
        let [header, rows @ ..] = &page[..] else { panic!("{name} has no rows") };
        let column = |title: &str| header.iter().position(|column| column == title).unwrap();
        let metric_columns = ["Section Name", "Metric Name", "Metric Unit", "Metric Value"].map(column);
        let rule_columns =
            ["Section Name", "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup"].map(column);
        let mut expected_rules = vec![Vec::new(); results.len()];
        for row in rows {
            let id: usize = row[0].parse().unwrap();
            let result = &results[id];
            let [title, label, unit, printed] = metric_columns.map(|at| row[at].as_str());
            if label.is_empty() {
                expected_rules[id].push(rule_columns.map(|at| without_addresses(&row[at])));
                continue;
            }
            let section = result.sections.iter().find(|section| section.title == title).unwrap_or_else(|| panic!("{name}: no {title}"));
            let Some((metric, _)) = section.labels.iter().find(|(_, known)| known == label) else { panic!("{name}: no label {label}") };
            if label.starts_with("L2 Compression") || label == "Maximum Sampling Interval" {
                // Which metric such a label stands for depends on the device.
                continue;
            }
            let value = result.metrics.get(metric).and_then(|metric| metric.value.as_ref());
            let printed = plain(printed);
            metrics.check(|| format!("{name}, result {id}, {label} = {metric} [{unit}]"), &printed, print_like(&printed, unit, value));
        }
        for (result, mut expected) in results.iter().zip(expected_rules) {
            let mut ours = rule_rows(result);
            ours.sort();
            expected.sort();
            rules.check(
                || format!("{name}, result {}, number of messages", result.id),
                &expected.len().to_string(),
                Some(ours.len().to_string()),
            );
            for (expected, ours) in expected.iter().zip(&ours) {
                for (expected, ours) in expected.iter().zip(ours) {
                    rules.check(|| format!("{name}, result {}", result.id), expected, Some(ours.clone()));
                }
            }
        }
    }
    rules.finish("rules", files::at_least(8_000, 400));
    metrics.finish("details page", files::at_least(14_000, 400));
}
