//! Names that the profiler left mangled (common on AMD): enough of the Itanium scheme to find the function's name.

/// The function of a symbol, given without its `_Z`.
pub(super) fn short(symbol: &str) -> Option<String> {
    let nested = symbol.strip_prefix('N');
    let mut rest = nested.unwrap_or(symbol).trim_start_matches(['K', 'V', 'L']);
    let mut name = None;
    while let Some((part, after)) = length_prefixed(rest) {
        rest = after;
        if !part.starts_with("_GLOBAL__N") {
            name = Some(part);
        }
        if nested.is_none() {
            break;
        }
    }
    let name = name?;
    let base = name.strip_suffix("_kernel").filter(|b| !b.is_empty()).unwrap_or(name);
    if name == "kentry" {
        // Composable Kernel launches everything through one entry; the first type among its arguments is what ran.
        return first_type(rest).map(str::to_owned).or_else(|| Some(name.to_owned()));
    }
    Some(base.to_owned())
}

/// An identifier written as its length and its text, and what follows.
fn length_prefixed(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = text.get(..digits)?.parse().ok()?;
    let end = digits.checked_add(length)?;
    Some((text.get(digits..end)?, text.get(end..)?)).filter(|(part, _)| !part.is_empty())
}

/// The first identifier that begins with a capital letter among template arguments such as `ILi1ENS_12Rmsnorm2dFwdI...`.
fn first_type(arguments: &str) -> Option<&str> {
    let mut at = 0;
    while at < arguments.len() {
        let follows_namespace = at > 0 && arguments.as_bytes()[at - 1] == b'_';
        if follows_namespace
            && let Some((part, _)) = length_prefixed(&arguments[at..])
            && part.len() > 2
            && part.starts_with(|c: char| c.is_ascii_uppercase())
        {
            return Some(part);
        }
        at += 1;
        while !arguments.is_char_boundary(at) {
            at += 1;
        }
    }
    None
}
