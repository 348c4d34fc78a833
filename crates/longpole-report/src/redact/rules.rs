//! What shows itself by a mark: known prefixes, `password=`, URLs, e-mail addresses, home folders, host names, key blocks.
//!
//! Each rule is asked at one kind of byte, its anchor, and answers what to hide. `floor` is how far back it may look.

use super::Hidden;

/// How far back a name before `=` or `@` is read, and how far ahead a value is examined before it is believed.
const REACH: usize = 64;

/// Bytes at which some rule may begin.
const ANCHORS: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"=:/\\.@ _-IzJ%,";
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

/// The next part to hide at or after `from`.
pub(super) fn next(text: &[u8], from: usize) -> Option<Hidden> {
    let mut start = from;
    while let Some(offset) = text[start..].iter().position(|&byte| ANCHORS[usize::from(byte)]) {
        let position = start + offset;
        if let Some(hidden) = at(text, position, from) {
            return Some(hidden);
        }
        start = position + 1;
    }
    None
}

/// What to hide at the anchor at `at`.
fn at(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    match text[at] {
        b'=' | b':' => assignment(text, at, floor),
        b',' => argument(text, at, floor),
        b'/' => url(text, at, floor).or_else(|| home(text, at)),
        b'\\' => home(text, at),
        b'.' => host(text, at, floor)
            .or_else(|| trace_file(text, at, floor))
            .or_else(|| private_number(text, at, floor))
            .or_else(|| prefixed(text, at, floor)),
        b'@' => address(text, at, floor),
        b' ' => word_before(text, at, floor),
        b'_' => prefixed(text, at, floor).or_else(|| compiler_cache(text, at)),
        b'-' => prefixed(text, at, floor).or_else(|| key_block(text, at)),
        b'%' => encoded(text, at, floor),
        b'I' => aws_key(text, at, floor),
        b'J' => web_token(text, at, floor),
        _ => prefixed(text, at, floor),
    }
}

// Reading.

fn run(text: &[u8], from: usize, class: impl Fn(u8) -> bool) -> usize {
    text[from.min(text.len())..].iter().take_while(|&&byte| class(byte)).count()
}

fn run_back(text: &[u8], before: usize, floor: usize, class: impl Fn(u8) -> bool) -> usize {
    text[floor.max(before.saturating_sub(REACH)).min(before)..before].iter().rev().take_while(|&&byte| class(byte)).count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_value(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !matches!(byte, b',' | b';' | b'&' | b')' | b']' | b'}' | b'>' | b'|' | b'"' | b'\'' | b'\\')
}

/// True when the byte before `at` does not continue a word.
fn begins(text: &[u8], at: usize, floor: usize) -> bool {
    at == floor || at == 0 || !text[at - 1].is_ascii_alphanumeric()
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().take(REACH).any(u8::is_ascii_digit)
}

// Credentials with a known beginning.

/// What may follow a prefix.
#[derive(Clone, Copy)]
enum Body {
    /// Letters and digits.
    Plain,
    /// Letters, digits, `_` and `-`.
    Word,
    /// The same with at least one digit near its beginning.
    WordWithDigit,
}

/// Prefixes of credentials, the fewest characters that follow, and which.
const PREFIXES: [(&[u8], usize, Body); 23] = [
    (b"hf_", 20, Body::Plain),
    (b"sk-", 20, Body::WordWithDigit),
    (b"ghp_", 20, Body::Plain),
    (b"gho_", 20, Body::Plain),
    (b"ghu_", 20, Body::Plain),
    (b"ghs_", 20, Body::Plain),
    (b"ghr_", 20, Body::Plain),
    (b"github_pat_", 20, Body::Word),
    (b"glpat-", 16, Body::Word),
    (b"xoxa-", 10, Body::Word),
    (b"xoxb-", 10, Body::Word),
    (b"xoxp-", 10, Body::Word),
    (b"xoxs-", 10, Body::Word),
    (b"xoxe-", 10, Body::Word),
    (b"xoxr-", 10, Body::Word),
    (b"nvapi-", 20, Body::Word),
    (b"npm_", 30, Body::Plain),
    (b"pypi-", 20, Body::WordWithDigit),
    (b"sk_live_", 16, Body::Plain),
    (b"AIz", 30, Body::Word),
    (b"dckr_pat_", 16, Body::Word),
    (b"ya29.", 16, Body::WordWithDigit),
    (b"SG.", 16, Body::WordWithDigit),
];

/// A prefix that ends at `at`, with its body.
fn prefixed(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    let (before, body) = (&text[floor..=at], at + 1);
    for (prefix, least, class) in PREFIXES {
        if !before.ends_with(prefix) {
            continue;
        }
        let start = body - prefix.len();
        if !begins(text, start, floor) {
            return None;
        }
        let is_body = |byte: u8| match class {
            Body::Plain => byte.is_ascii_alphanumeric(),
            Body::Word | Body::WordWithDigit => is_word(byte),
        };
        // The whole body is read only once it is believed.
        let head = run(&text[..text.len().min(body + REACH)], body, is_body);
        let fits = head >= least && (!matches!(class, Body::WordWithDigit) || has_digit(&text[body..body + head]));
        return fits.then(|| Hidden::secret(start, body + run(text, body, is_body)));
    }
    None
}

/// `AKIA` or `ASIA` and 16 capitals or digits; `at` is at the `I`.
fn aws_key(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    let start = at.checked_sub(2).filter(|&start| start >= floor)?;
    let known = [b"AKIA", b"ASIA"].iter().any(|prefix| text[start..].starts_with(*prefix));
    let length = if known { run(&text[..text.len().min(start + 21)], start, |b| b.is_ascii_uppercase() || b.is_ascii_digit()) } else { 0 };
    let ends = text.get(start + 20).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    (length == 20 && ends && begins(text, start, floor)).then(|| Hidden::secret(start, start + 20))
}

/// A JSON web token, which begins with `eyJ` (`{"` in base 64); `at` is at the `J`.
fn web_token(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    let start = at.checked_sub(2).filter(|&start| start >= floor && text[start..].starts_with(b"eyJ"))?;
    if start > floor && (is_word(text[start - 1]) || text[start - 1] == b'.') {
        return None;
    }
    let head = start + run(text, start, is_word);
    let payload = run(text, head + 1, is_word);
    if head - start < 10 || text.get(head) != Some(&b'.') || payload < 8 {
        return None;
    }
    Some(Hidden::secret(start, start + run(text, start, |byte| is_word(byte) || byte == b'.')))
}

/// A private key from its first line to its last, or to the end of the text.
fn key_block(text: &[u8], at: usize) -> Option<Hidden> {
    let rest = text[at..].strip_prefix(b"-----BEGIN ")?;
    let title = &rest[..rest.len().min(REACH)];
    title.windows(11).find(|part| *part == b"PRIVATE KEY")?;
    let last = text[at..].windows(8).position(|part| part == b"-----END").map(|offset| at + offset + 8);
    let end = last.and_then(|last| text[last..].windows(5).position(|part| part == b"-----").map(|offset| last + offset + 5));
    Some(Hidden::secret(at, end.unwrap_or(text.len())))
}

// Credentials with a name.

/// Endings of names whose value is hidden whatever it is. Compared without case, `_` and `-`.
const SECRET_NAMES: [&[u8]; 13] = [
    b"password",
    b"passwd",
    b"passphrase",
    b"secret",
    b"secretkey",
    b"accesskey",
    b"apikey",
    b"privatekey",
    b"authkey",
    b"credential",
    b"credentials",
    b"authorization",
    b"cookie",
];
/// Endings of names whose value is hidden if it looks like a credential.
const TOKEN_NAMES: [&[u8]; 4] = [b"token", b"auth", b"pass", b"signature"];
/// Variables of the environment that name a person or a machine.
const IDENTITY_NAMES: [&[u8]; 7] = [b"USER", b"LOGNAME", b"USERNAME", b"HOSTNAME", b"COMPUTERNAME", b"MASTER_ADDR", b"SSH_CONNECTION"];
/// Schemes that stand between `Authorization:` and the value.
const SCHEMES: [&[u8]; 4] = [b"bearer", b"basic", b"token", b"digest"];
/// Values that hide nothing.
const EMPTY_VALUES: [&[u8]; 9] = [b"none", b"null", b"nil", b"true", b"false", b"undefined", b"***", b"[redacted", b"[redacted]"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    /// Its value is hidden.
    Secret,
    /// Its value is hidden if it looks like a credential: language models have tokens of another kind.
    Token,
    /// A token by a name in capitals: a quoted value needs no digit.
    Variable,
    /// The same as a secret, unless it is the path of a folder: shells call the current one so too.
    Pwd,
    /// Its value is hidden behind a `=`.
    Identity,
    Other,
}

/// What the word that ends before `before` announces, and where it begins.
fn name_before(text: &[u8], before: usize, floor: usize) -> (Name, usize) {
    let length = run_back(text, before, floor, is_word);
    let start = before - length;
    let mut letters = [0; REACH];
    let mut count = 0;
    for byte in text[start..before].iter().filter(|byte| byte.is_ascii_alphanumeric()) {
        letters[count] = byte.to_ascii_lowercase();
        count += 1;
    }
    let letters = &letters[..count];
    let name = if SECRET_NAMES.iter().any(|ending| letters.ends_with(ending)) {
        Name::Secret
    } else if letters.ends_with(b"pwd") {
        Name::Pwd
    } else if IDENTITY_NAMES.contains(&&text[start..before]) {
        Name::Identity
    } else if TOKEN_NAMES.iter().any(|ending| letters.ends_with(ending)) {
        let is_variable = !text[start..before].iter().any(u8::is_ascii_lowercase);
        if is_variable { Name::Variable } else { Name::Token }
    } else {
        Name::Other
    };
    (name, start)
}

/// `password=VALUE`, `"api_key": "VALUE"`; `at` is at the sign.
fn assignment(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    let sign = text[at];
    if text.get(at + 1) == Some(&sign) || (at > floor && text[at - 1] == sign) {
        return None;
    }
    let is_between = |byte: u8| matches!(byte, b' ' | b'"' | b'\'' | b'\\');
    let before = at - run_back(text, at, floor.max(at.saturating_sub(3)), is_between);
    let (mut name, start) = name_before(text, before, floor);
    // `"pw": "VALUE"`: too short a name to mean that anywhere else.
    if &text[start..before] == b"pw" && before < at && is_quote(text[before]) {
        name = Name::Pwd;
    }
    if name == Name::Other || (name == Name::Identity && (sign != b'=' || before != at)) {
        return None;
    }
    value(text, at + 1, name)
}

/// `setenv("HF_TOKEN", "VALUE", 1)`: a quoted name, a comma, a quoted value; `at` is at the comma.
fn argument(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    let before = at - run_back(text, at, floor.max(at.saturating_sub(2)), is_quote);
    let (name, _) = if before < at { name_before(text, before, floor) } else { return None };
    let next = at + 1 + run(&text[..text.len().min(at + 4)], at + 1, |byte| byte == b' ');
    let is_quoted = text.get(next).is_some_and(|&byte| is_quote(byte));
    if is_quoted && matches!(name, Name::Secret | Name::Token | Name::Variable) { value(text, at + 1, name) } else { None }
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'\\')
}

/// `HF_TOKEN%3DVALUE` and `%2Fhome%2FNAME`, as in addresses of pages; `at` is at the sign.
fn encoded(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    let code = text.get(at + 1..at + 3)?;
    if code.eq_ignore_ascii_case(b"3d") {
        let (name, _) = name_before(text, at, floor);
        return if name == Name::Other { None } else { value(text, at + 3, name) };
    }
    let folder = text.get(at..at + 10)?;
    let is_home = folder.eq_ignore_ascii_case(b"%2fhome%2f");
    let length = if is_home { run(&text[..text.len().min(at + 10 + REACH)], at + 10, is_word) } else { 0 };
    (length > 0).then(|| Hidden { start: at + 10, end: at + 10 + length, with: "~" })
}

/// `--password VALUE` and `Bearer VALUE`; `at` is at the space.
fn word_before(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    if at == floor || !is_word(text[at - 1]) {
        return None;
    }
    let (name, start) = name_before(text, at, floor);
    if name != Name::Other && text[start..at].starts_with(b"--") && text.get(at + 1) != Some(&b'-') {
        return value(text, at + 1, name);
    }
    // `HF_TOKEN VALUE`, as `export` and lists of variables print it.
    let is_variable = |word: &[u8]| word.contains(&b'_') && !word.iter().any(u8::is_ascii_lowercase);
    if matches!(name, Name::Secret | Name::Token | Name::Variable) && is_variable(&text[start..at]) {
        return value(text, at + 1, Name::Token);
    }
    // `curl -u NAME:PASSWORD`.
    if &text[start..at] == b"-u" {
        let length = run(&text[..text.len().min(at + 1 + REACH)], at + 1, |byte| is_value(byte) && byte != b'/');
        let password = text[at + 1..at + 1 + length].split(|&byte| byte == b':').nth(1).map_or(0, <[u8]>::len);
        return (password >= 4).then(|| Hidden::secret(at + 1, at + 1 + length));
    }
    if text[start..at].eq_ignore_ascii_case(b"bearer") {
        let is_body = |byte: u8| is_word(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=');
        let body = at + 1;
        let length = run(text, body, is_body);
        if length >= 8 && (length >= 20 || has_digit(&text[body..body + length])) {
            return Some(Hidden::secret(body, body + length));
        }
    }
    None
}

/// The value that begins at or shortly after `from`, if it is one to hide.
fn value(text: &[u8], from: usize, name: Name) -> Option<Hidden> {
    let mut start = from + run(&text[..text.len().min(from + 4)], from, |byte| byte == b' ');
    let is_nested = text.get(start) == Some(&b'\\');
    start += usize::from(is_nested);
    let quote = text.get(start).copied().filter(|byte| matches!(byte, b'"' | b'\''));
    start += usize::from(quote.is_some());
    let is_inside = |byte: u8| match quote {
        Some(quote) => byte != quote && byte != b'\\',
        None => is_value(byte),
    };
    // Judged by its beginning, so that a value that is not hidden costs little however long it is.
    let head = &text[start..start + run(&text[..text.len().min(start + REACH)], start, is_inside)];
    if head.is_empty() || EMPTY_VALUES.iter().any(|empty| head.eq_ignore_ascii_case(empty)) {
        return None;
    }
    if name == Name::Pwd && (matches!(head[0], b'/' | b'~' | b'.' | b'$' | b'(') || head.get(1) == Some(&b':')) {
        return None;
    }
    if matches!(name, Name::Token | Name::Variable) {
        let plain = head.iter().all(|&byte| is_word(byte) || matches!(byte, b'.' | b'+' | b'/' | b'=' | b':'));
        if head.len() < 6
            || !plain
            || !(has_digit(head) || (name == Name::Variable && quote.is_some()))
            || !head.iter().any(u8::is_ascii_alphabetic)
        {
            return None;
        }
    }
    let mut end = start + run(text, start, is_inside);
    // In a quoted value a quote behind a backslash is part of it, unless the whole text is quoted once more.
    while quote.is_some() && !is_nested && text.get(end) == Some(&b'\\') && end + 1 < text.len() {
        end += 2;
        // The second byte may begin a longer character.
        end += run(text, end, |byte| !byte.is_ascii());
        end += run(text, end, is_inside);
    }
    if SCHEMES.iter().any(|scheme| head.eq_ignore_ascii_case(scheme)) && text.get(end) == Some(&b' ') {
        end += 1 + run(text, end + 1, is_value);
    }
    Some(Hidden::secret(start, end))
}

// Addresses.

/// Schemes of addresses of machines.
const HOST_SCHEMES: [&[u8]; 21] = [
    b"http",
    b"https",
    b"ftp",
    b"sftp",
    b"ssh",
    b"git",
    b"tcp",
    b"udp",
    b"grpc",
    b"grpcs",
    b"ws",
    b"wss",
    b"redis",
    b"rediss",
    b"postgres",
    b"postgresql",
    b"mysql",
    b"mongodb",
    b"amqp",
    b"nats",
    b"rsync",
];
/// Endings of names of machines that are not public.
const PRIVATE_ENDINGS: [&[u8]; 8] =
    [b".internal", b".cluster.local", b".localdomain", b".intranet", b".corp", b".lan", b".svc", b".compute.amazonaws.com"];

fn is_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-')
}

/// An address of a machine with a user name or password, or of one that is not public; `at` is at the first slash of `://`.
fn url(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    if at <= floor || text[at - 1] != b':' || text.get(at + 1) != Some(&b'/') {
        return None;
    }
    let start = at + 2;
    let end = start + run(text, start, |byte| is_value(byte) && !matches!(byte, b'/' | b'?' | b'#' | b'<'));
    let authority = &text[start..end];
    let scheme = &text[at - 1 - run_back(text, at - 1, floor, |byte| byte.is_ascii_alphanumeric())..at - 1];
    let has_user = authority.contains(&b'@');
    let of_machine = HOST_SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    (has_user || (of_machine && is_private(authority))).then(|| Hidden::secret(start, end))
}

/// A name without a domain, a numeric address, or a name in a private domain; this machine itself is nobody's secret.
fn is_private(authority: &[u8]) -> bool {
    let host = authority.split(|&byte| byte == b':').next().unwrap_or_default();
    if host.is_empty() || !host.iter().all(|&byte| is_host(byte)) || [&b"localhost"[..], b"127.0.0.1", b"0.0.0.0"].contains(&host) {
        return false;
    }
    let is_number = host.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    is_number || !host.contains(&b'.') || PRIVATE_ENDINGS.iter().any(|ending| host.ends_with(ending))
}

/// `node-17.cluster.local`: a name with a digit or a hyphen in a private domain; `at` is at a dot.
fn host(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    let rest = &text[at..];
    let ending = PRIVATE_ENDINGS.iter().find(|ending| rest.starts_with(ending))?;
    let end = at + ending.len();
    let start = at - run_back(text, at, floor, is_host);
    let name = &text[start..at];
    let is_name = name.iter().any(|byte| byte.is_ascii_digit() || *byte == b'-') && name.iter().any(u8::is_ascii_alphabetic);
    let ends = text.get(end).is_none_or(|&byte| !is_word(byte) && byte != b'(');
    // A private domain may itself be in a public one.
    let end = end + if text.get(end) == Some(&b'.') { run(&text[..text.len().min(end + 253)], end, is_host) } else { 0 };
    (is_name && ends).then(|| Hidden::secret(start, end))
}

/// `192.168.1.5`, `10.0.0.7:29500`: a numeric address of a private network (RFC 1918) that stands alone; `at` is at its first dot.
/// Four numbers behind a letter, a dot or a hyphen are a version, as in `libcublas.so.10.2.1.3`.
fn private_number(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    let digits = |byte: u8| byte.is_ascii_digit();
    let start = at - run_back(text, at, floor, digits);
    if start == at || (start > floor && (is_word(text[start - 1]) || text[start - 1] == b'.')) {
        return None;
    }
    let mut parts = [0_u32; 4];
    let mut end = start;
    for (number, part) in parts.iter_mut().enumerate() {
        if number > 0 {
            if text.get(end) != Some(&b'.') {
                return None;
            }
            end += 1;
        }
        let length = run(&text[..text.len().min(end + 4)], end, digits);
        if !(1..=3).contains(&length) {
            return None;
        }
        *part = text[end..end + length].iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
        end += length;
    }
    let ends = text.get(end).is_none_or(|&byte| !is_word(byte) && (byte != b'.' || !text.get(end + 1).is_some_and(u8::is_ascii_digit)));
    let is_private = matches!(parts, [10, _, _, _] | [172, 16..=31, _, _] | [192, 168, _, _]) && parts.iter().all(|&part| part < 256);
    (is_private && ends).then(|| Hidden::secret(start, end))
}

/// The host name in `HOST_PID.TIME.pt.trace.json`, as torch names its files; `at` is at the dot before `pt`.
fn trace_file(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    if !text[at..].starts_with(b".pt.trace.json") {
        return None;
    }
    let digits = |byte: u8| byte.is_ascii_digit();
    let time = run_back(text, at, floor, digits);
    let dot = at.checked_sub(time + 1).filter(|&dot| time >= 10 && dot >= floor && text[dot] == b'.')?;
    let pid = run_back(text, dot, floor, digits);
    let end = dot.checked_sub(pid + 1).filter(|&end| pid >= 1 && end >= floor && text[end] == b'_')?;
    let start = end - run_back(text, end, floor, |byte| is_host(byte) || byte == b'_');
    (start < end && &text[start..end] != b"localhost").then(|| Hidden::secret(start, end))
}

/// Ends of `a@b.c` that are files, not domains.
const FILE_ENDINGS: [&[u8]; 8] = [b"py", b"so", b"cu", b"cpp", b"cc", b"json", b"gz", b"md"];

/// Login names of machines; what stands behind `@` after one of them is a machine.
const LOGINS: [&[u8]; 7] = [b"root", b"ubuntu", b"ec2-user", b"admin", b"debian", b"centos", b"azureuser"];

/// An e-mail address, `user@host:/path`, or a usual login name at a host; `at` is at the sign.
fn address(text: &[u8], at: usize, floor: usize) -> Option<Hidden> {
    let local = run_back(text, at, floor, |byte| is_word(byte) || matches!(byte, b'.' | b'%' | b'+'));
    let window = &text[..text.len().min(at + 1 + 253)];
    let mut end = at + 1 + run(window, at + 1, is_host);
    while end > at + 1 && matches!(text[end - 1], b'.' | b'-') {
        end -= 1;
    }
    let domain = &text[at + 1..end];
    if local == 0 || domain.is_empty() {
        return None;
    }
    let last = domain.rsplit(|&byte| byte == b'.').next().unwrap_or_default();
    let is_domain =
        last.len() < domain.len() && last.len() >= 2 && last.iter().all(u8::is_ascii_lowercase) && !FILE_ENDINGS.contains(&last);
    let is_remote_path = text.get(end) == Some(&b':') && matches!(text.get(end + 1), Some(b'/' | b'~'));
    let is_login = LOGINS.contains(&&text[at - local..at]);
    (is_domain || is_remote_path || is_login).then(|| Hidden::secret(at - local, end))
}

// User names in paths.

/// Folders of users. The name that follows is replaced.
const HOMES: [&[u8]; 5] = [b"/home/", b"/Users/", b"/users/", b"\\Users\\", b"\\\\Users\\\\"];

/// The user's name below a folder of users; `at` is at its first separator.
fn home(text: &[u8], at: usize) -> Option<Hidden> {
    let folder = HOMES.iter().find(|folder| text[at..].starts_with(folder))?;
    let start = at + folder.len();
    let extra = run(&text[..text.len().min(start + REACH)], start, |byte| byte == b'/');
    user_name(text, start + extra)
}

/// The user's name in the compiler's cache, `/tmp/torchinductor_NAME/`; `at` is at the underscore.
fn compiler_cache(text: &[u8], at: usize) -> Option<Hidden> {
    if !text[..at].ends_with(b"/torchinductor") || text[at + 1..].starts_with(b"root/") {
        return None;
    }
    user_name(text, at + 1)
}

/// The part of a path that begins at `start`, unless it is a file of source code or stands for a name already.
fn user_name(text: &[u8], start: usize) -> Option<Hidden> {
    let is_part = |byte: u8| {
        !byte.is_ascii_control() && !matches!(byte, b'/' | b'\\' | b'"' | b'\'' | b'<' | b'>' | b'|' | b':' | b'(' | b')' | b';' | b',')
    };
    let whole = run(text, start, is_part);
    // Names with spaces exist where a separator closes them; elsewhere a space ends the path.
    let is_closed = whole <= REACH && matches!(text.get(start + whole), Some(b'/' | b'\\'));
    let length = if is_closed { whole } else { run(text, start, |byte| is_part(byte) && byte != b' ') };
    let name = &text[start..start + length];
    let stands = name.first().is_none_or(|byte| matches!(byte, b'~' | b'$' | b'*' | b'{' | b'.' | b' '));
    (!stands && !name.ends_with(b".py")).then(|| Hidden { start, end: start + length, with: "~" })
}
