//! Pages as wholes: the outer shape, and what stands in it when there is next to nothing.

use super::*;

fn made(text: &str, documents: Vec<(&'static str, Box<RawValue>)>) -> String {
    let page = HtmlPage {
        kind: HtmlKind::Trace,
        title: "a <trace> & more",
        made_by: "longpole 0",
        documents,
        before: None,
        cuts: HtmlCuts::default(),
        overview: None,
        before_overview: None,
        text,
        limits: HtmlLimits { rows: 10, chars: 10, bytes: 1_000 },
        names_bytes: 1_000,
    };
    String::from_utf8(page.write().unwrap().0).unwrap()
}

/// A page without what its script, style and data are.
#[test]
fn the_shell_is_as_recorded() {
    let page = made("first\n  <page>\n", Vec::new());
    let mut shell = page.clone();
    for (from, to) in [
        ("<style>", "</style>"),
        ("<script type=\"text/plain\" id=\"longpole-report\">", "</script>"),
        ("<script type=\"text/plain\" id=\"longpole-events\">", "</script>"),
        ("<script>", "</script>"),
        ("script-src 'sha256-", "'"),
        ("style-src 'sha256-", "'"),
    ] {
        let (before, rest) = shell.split_once(from).unwrap();
        let (_, after) = rest.split_once(to).unwrap();
        shell = format!("{before}{from}...{to}{after}");
    }
    insta::assert_snapshot!(shell);
}

#[test]
fn the_same_makes_the_same() {
    let document = || {
        let mut cuts = HtmlCuts::default();
        html_document("x", &[1, 2, 3], &HtmlLimits { rows: 2, chars: 9, bytes: 99 }, &mut cuts).unwrap()
    };
    assert_eq!(document().get(), "[1,2]");
    assert_eq!(made("t", vec![("idle", document())]), made("t", vec![("idle", document())]));
}
