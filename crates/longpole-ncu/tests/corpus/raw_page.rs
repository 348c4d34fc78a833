//! Every value of every result against ncu's raw page, to the printed digits.

use longpole_ncu::{ProfiledResult, Report, Value, units};

use crate::files;

/// What was compared, and where it differed.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) compared: usize,
    pub(crate) differing: Vec<String>,
}

impl Tally {
    pub(crate) fn check(&mut self, place: impl Fn() -> String, printed: &str, ours: Option<String>) {
        self.compared += 1;
        let ours = ours.unwrap_or_default();
        if printed != ours {
            self.differing.push(format!("{}: ncu prints `{printed}`, we have `{ours}`", place()));
        }
    }

    /// Prints the counts and fails if anything differs or too little was compared.
    pub(crate) fn finish(self, what: &str, at_least: usize) {
        println!("{what}: {} cells compared, {} differ", self.compared, self.differing.len());
        let first: Vec<_> = self.differing.iter().take(40).map(String::as_str).collect();
        assert!(self.differing.is_empty(), "{} of {} cells differ, first:\n{}", self.differing.len(), self.compared, first.join("\n"));
        assert!(self.compared >= at_least, "only {} cells were compared", self.compared);
    }
}

/// A value as ncu prints it in `unit`, without grouping, with as many decimals as `printed` has.
pub(crate) fn print_like(printed: &str, unit: &str, value: Option<&Value>) -> Option<String> {
    // ncu multiplies with the reciprocal, which shows where a value lies half-way between two printed ones.
    let unit = units::parse(unit).unwrap_or_else(|| panic!("unit {unit}"));
    let scale = 1.0 / unit.factor();
    match value? {
        Value::Text(text) => Some(text.clone()),
        Value::Unsigned(count) if unit.exponent == 0 && !printed.contains('.') => Some(count.to_string()),
        Value::Unsigned(count) => Some(rounded(*count as f64 * scale, printed)),
        Value::Double(number) => Some(rounded(number * scale, printed)),
        Value::Float(number) => Some(rounded(f64::from(*number) * scale, printed)),
    }
}

/// A number with as many decimals as `printed` has. ncu knows no negative zero. A number exactly half-way between two printed ones
/// may be printed as either: ncu scales with more digits than a double has.
fn rounded(number: f64, printed: &str) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    let decimals = printed.rsplit_once('.').map_or(0, |(_, decimals)| decimals.len());
    let size = number.abs();
    let exact = format!("{size:.100}");
    let behind = exact.split_once('.').map_or("", |(_, behind)| &behind[decimals..]);
    let is_half = behind.strip_prefix('5').is_some_and(|rest| rest.bytes().all(|digit| digit == b'0'));
    let candidates = if is_half { [size, size.next_up()] } else { [size; 2] };
    let [even, up] = candidates.map(|size| {
        let text = format!("{size:.decimals$}");
        if number < 0.0 && text.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) { format!("-{text}") } else { text }
    });
    if up == printed { up } else { even }
}

/// A printed number without grouping; anything else as it is.
pub(crate) fn plain(printed: &str) -> String {
    let ungrouped = printed.replace(',', "");
    if ungrouped.parse::<f64>().is_ok() { ungrouped } else { printed.to_owned() }
}

/// A kernel's name without what ncu 2025.3 leaves out when it shows one: the types of constants that are not negative (`(int)2`), and
/// some namespaces of PyTorch's.
pub(crate) fn name_alike(name: &str) -> String {
    let mut alike = name.replace("native::", "").replace("detail::", "").replace("at::", "");
    for cast in ["(int)", "(unsigned int)", "(long)", "(unsigned long)", "(bool)", "(short)"] {
        for digit in 0..10 {
            alike = alike.replace(&format!("{cast}{digit}"), &digit.to_string());
        }
    }
    alike
}

/// Sizes as ncu prints them. A graph has none of its own, and ncu prints what its launch metrics say.
fn dimensions(sizes: Option<[u64; 3]>, result: &ProfiledResult, what: &str) -> Option<String> {
    let metric = |axis| result.metrics.count(&format!("launch__{what}_dim_{axis}"));
    let [x, y, z] = sizes.or_else(|| Some([metric('x')?, metric('y')?, metric('z')?]))?;
    Some(format!("({x}, {y}, {z})"))
}

/// The columns before the metrics that a result has.
const ABOUT: [&str; 8] = ["ID", "Process ID", "Process Name", "Host Name", "Context", "Stream", "Block Size", "Grid Size"];

/// What stands in one of these columns.
fn about(report: &Report, result: &ProfiledResult, column: &str) -> Option<String> {
    let process = result.process.map(|process| &report.processes()[process]);
    match column {
        "ID" => Some(result.id.to_string()),
        "Process ID" => process.map(|process| process.id.to_string()),
        "Process Name" => process.map(|process| process.name.rsplit('/').next().unwrap_or_default().to_owned()),
        "Host Name" => process.map(|process| process.host.clone()),
        "Context" => result.context.map(|context| context.to_string()),
        "Stream" => Some(result.stream.map_or_else(|| "n/a".to_owned(), |stream| stream.to_string())),
        "Block Size" => dimensions(result.block, result, "block"),
        "Grid Size" => dimensions(result.grid, result, "grid"),
        other => panic!("{other} is not a column about a result"),
    }
}

#[test]
fn every_value_is_what_ncu_prints() {
    let mut tally = Tally::default();
    for path in files::with_pages("raw") {
        let name = path.display();
        let Some((report, page)) = files::report_and_page(&path, "raw") else { continue };
        let results = report.decode_all(&report.select().values(|_| true).nvtx());
        let [header, units, rows @ ..] = &page[..] else { panic!("{name} has no rows") };
        assert_eq!(results.len(), rows.len(), "{name}");
        for (result, row) in results.iter().zip(rows) {
            for ((column, unit), printed) in header.iter().zip(units).zip(row) {
                let place = || format!("{name}, result {}, {column} [{unit}]", result.id);
                if column == "Kernel Name" {
                    tally.check(place, &name_alike(printed), Some(name_alike(&result.name)));
                } else if ABOUT.contains(&column.as_str()) {
                    tally.check(place, printed, about(&report, result, column));
                } else if ["Device", "CC"].contains(&column.as_str()) || column.contains("Domain:") {
                    // Not part of a result, or in a form of its own.
                } else {
                    let value = result.metrics.get(column).and_then(|metric| metric.value.as_ref());
                    let printed = if printed == "no data" { String::new() } else { plain(printed) };
                    tally.check(place, &printed, print_like(&printed, unit, value));
                }
            }
        }
        assert!(report.troubles().is_empty(), "{name}: {:?}", report.troubles());
    }
    tally.finish("raw page", files::at_least(170_000, 10_000));
}
