//! The template.

/// The page's script, as `web/` builds it.
const SCRIPT: &str = include_str!("../../assets/report.js");
/// Its style.
const STYLE: &str = include_str!("../../assets/report.css");
/// The hash that allows the script to run.
const SCRIPT_SHA256: &str = include_str!("../../assets/report.js.sha256");
/// And the style's.
const STYLE_SHA256: &str = include_str!("../../assets/report.css.sha256");

/// Puts a page together. `report` and `events` are base64.
pub(super) fn page(title: &str, text: &str, report: &str, events: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(report.len() + events.len() + text.len() * 2 + SCRIPT.len() + STYLE.len() + 4_096);
    let mut put = |parts: &[&str]| parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
    // Scripts and styles but the embedded ones, frames, forms, and anything over the network are refused. Widths of bars are set by the
    // script through the elements' own properties, which no policy of styles is about.
    put(&[
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-",
        SCRIPT_SHA256.trim(),
        "'; style-src 'sha256-",
        STYLE_SHA256.trim(),
        "'; img-src data:; base-uri 'none'; form-action 'none'\">\n",
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n",
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
        &escaped(title),
        "</title>\n<style>",
        STYLE,
        "</style>\n</head>\n<body>\n",
    ]);
    // What a printer or a reader gets where scripts are off.
    put(&[
        "<noscript>\n<p>This page needs scripts for tables, timeline and plots. They are inside it: nothing is loaded. The first page of the report:</p>\n<pre>",
        &escaped(text),
        "</pre>\n</noscript>\n",
    ]);
    put(&["<script type=\"text/plain\" id=\"longpole-report\">", report, "</script>\n"]);
    put(&["<script type=\"text/plain\" id=\"longpole-events\">", events, "</script>\n"]);
    put(&["<script>", SCRIPT, "</script>\n</body>\n</html>\n"]);
    out
}

/// Text as it may stand in an element. What would act on a terminal or turn the direction of text is written as what it is.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            out.push('\n');
        }
        for c in crate::names::printable(line).chars() {
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                _ => out.push(c),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_element() {
        let hostile = "</title></pre><script>alert(1)</script><!-- \u{202e}\u{1b}[31m\u{0} & \"'";
        let page = String::from_utf8(page(hostile, hostile, "UkVQT1JU", "RVZFTlRT")).unwrap();
        let without_own = page.replace(SCRIPT, "").replace(STYLE, "");
        assert_eq!(without_own.matches("<script").count(), 3, "{without_own}");
        assert_eq!(without_own.matches("</script>").count(), 3);
        assert!(!without_own.contains("alert(1)</script>") && !without_own.contains("<!--"), "{without_own}");
        assert!(!without_own.chars().any(|c| c != '\n' && crate::names::is_unprintable(c)), "{without_own}");
        assert!(page.contains(&format!("script-src 'sha256-{}'", SCRIPT_SHA256.trim())));
        assert!(!without_own.contains("http:") && !without_own.contains("https:"), "{without_own}");
    }

    #[test]
    fn the_script_stays_in_its_element() {
        for text in ["</script", "<script", "<!--", "\r"] {
            assert!(!SCRIPT.to_ascii_lowercase().contains(text), "{text}");
        }
        assert!(!STYLE.to_ascii_lowercase().contains("</style"));
    }
}
