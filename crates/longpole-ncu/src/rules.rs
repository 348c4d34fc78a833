//! What ncu's own rules said of a result.

use crate::container::wire::{Field, Fields, Malformed};

/// What an estimate of a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Of the whole kernel's time.
    Global,
    /// Of the time of the part that the rule looks at.
    Local,
}

impl Scope {
    /// The word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Local => "local",
        }
    }
}

/// The kind of a rule's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// No kind given.
    Plain,
    /// Information (`INF`).
    Information,
    /// A warning (`WRN`).
    Warning,
    /// The rule itself failed (`ERR`).
    Error,
    /// A suggestion (`OPT`).
    Optimization,
}

impl MessageKind {
    /// ncu's own abbreviation.
    pub const fn abbreviation(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Information => "INF",
            Self::Warning => "WRN",
            Self::Error => "ERR",
            Self::Optimization => "OPT",
        }
    }
}

/// A metric that a message rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct FocusMetric {
    /// Its name.
    pub name: String,
    /// Its value when the rule ran.
    pub value: Option<f64>,
    /// What the rule says it should become.
    pub info: String,
}

/// One message of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its title; often empty.
    pub title: String,
    /// Its text, without ncu's markup.
    pub text: String,
    /// Its kind.
    pub kind: MessageKind,
    /// ncu's estimate: of what, and how many percent. An upper bound; estimates of several rules overlap.
    pub speedup: Option<(Scope, f64)>,
    /// What it rests on.
    pub focus: Vec<FocusMetric>,
}

/// One rule that fired.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its stable name, e.g. `SOLBottleneck`.
    pub id: String,
    /// What ncu calls it on screen.
    pub title: String,
    /// The section it belongs to.
    pub section: String,
    /// What it said, in order.
    pub messages: Vec<Message>,
}

/// Reads one rule result. A rule that did not fire has no messages.
pub(crate) fn decode(message: &[u8]) -> Result<Rule, Malformed> {
    let mut rule = Rule { id: String::new(), title: String::new(), section: String::new(), messages: Vec::new() };
    for field in Fields::of(message) {
        match field? {
            (1, Field::Bytes(id)) => rule.id = text(id),
            (2, Field::Bytes(title)) => rule.title = text(title),
            (3, Field::Bytes(body)) => decode_body(body, &mut rule.messages)?,
            (4, Field::Bytes(section)) => rule.section = text(section),
            _ => {}
        }
    }
    Ok(rule)
}

/// Items stand in the order the rule emitted them; an estimate and focus metrics belong to the message before them.
fn decode_body(body: &[u8], messages: &mut Vec<Message>) -> Result<(), Malformed> {
    for item in Fields::of(body) {
        let (1, Field::Bytes(item)) = item? else { continue };
        for part in Fields::of(item) {
            match part? {
                (1, Field::Bytes(message)) => messages.push(decode_message(message)?),
                (8, Field::Bytes(focus)) => {
                    let focus = decode_focus(focus)?;
                    if let Some(message) = messages.last_mut() {
                        message.focus.push(focus);
                    }
                }
                (10, Field::Bytes(speedup)) => {
                    let speedup = decode_speedup(speedup)?;
                    if let Some(message) = messages.last_mut() {
                        message.speedup = speedup;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn decode_message(bytes: &[u8]) -> Result<Message, Malformed> {
    let mut message = Message { title: String::new(), text: String::new(), kind: MessageKind::Plain, speedup: None, focus: Vec::new() };
    for field in Fields::of(bytes) {
        match field? {
            (1, Field::Bytes(words)) => message.text = without_markup(&text(words)),
            (2, Field::Varint(kind)) => {
                message.kind = match kind {
                    1 => MessageKind::Information,
                    2 => MessageKind::Warning,
                    3 => MessageKind::Error,
                    4 => MessageKind::Optimization,
                    _ => MessageKind::Plain,
                };
            }
            (4, Field::Bytes(title)) => message.title = without_markup(&text(title)),
            _ => {}
        }
    }
    Ok(message)
}

fn decode_focus(bytes: &[u8]) -> Result<FocusMetric, Malformed> {
    let mut focus = FocusMetric { name: String::new(), value: None, info: String::new() };
    for field in Fields::of(bytes) {
        match field? {
            (2, Field::Bytes(name)) => focus.name = text(name),
            (3, Field::Fixed64(bits)) => focus.value = Some(f64::from_bits(bits)).filter(|value| value.is_finite()),
            (5, Field::Bytes(info)) => focus.info = text(info),
            _ => {}
        }
    }
    Ok(focus)
}

fn decode_speedup(bytes: &[u8]) -> Result<Option<(Scope, f64)>, Malformed> {
    let (mut scope, mut percent) = (None, None);
    for field in Fields::of(bytes) {
        match field? {
            (1, Field::Varint(1)) => scope = Some(Scope::Local),
            (1, Field::Varint(2)) => scope = Some(Scope::Global),
            (2, Field::Fixed64(bits)) => percent = Some(f64::from_bits(bits)).filter(|value| value.is_finite()),
            _ => {}
        }
    }
    Ok(scope.zip(percent))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Takes ncu's links out of a text: `@section:ID:Label@`, `@source:PLACE:Label@` and `@url:Label:ADDRESS@` become their label. An `@` that opens no such link stays.
fn without_markup(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let (before, link) = rest.split_at(at);
        plain.push_str(before);
        if let Some((label, after)) = label(&link[1..]) {
            plain.push_str(label);
            rest = after;
        } else {
            plain.push('@');
            rest = &link[1..];
        }
    }
    plain.push_str(rest);
    plain
}

/// The label of a link that starts behind its `@`, and what follows the link.
fn label(link: &str) -> Option<(&str, &str)> {
    let (inside, after) = link.split_once('@')?;
    if let Some(section) = inside.strip_prefix("section:").or_else(|| inside.strip_prefix("source:")) {
        return section.split_once(':').map(|(_, label)| (label, after));
    }
    // The address has colons of its own, the label has none.
    inside.strip_prefix("url:").and_then(|url| url.split_once(':')).map(|(label, _)| (label, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_their_labels() {
        let text = "See @section:LaunchStats:Launch Statistics@ and the @url:guide:https://example.com/a#b@. Mail a@b.";
        assert_eq!(without_markup(text), "See Launch Statistics and the guide. Mail a@b.");
        assert_eq!(without_markup("at @source:7f00:0x7f00@ it waits"), "at 0x7f00 it waits");
        assert_eq!(without_markup("@section:half"), "@section:half");
    }

    #[test]
    fn a_body_without_items_is_a_rule_that_did_not_fire() {
        let rule = decode(&[10, 1, b'R', 26, 0]).unwrap();
        assert_eq!((rule.id.as_str(), rule.messages.len()), ("R", 0));
    }
}
