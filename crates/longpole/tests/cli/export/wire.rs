//! Reads a Perfetto trace again, from the public definitions and nothing of the writer: bytes to fields, fields to slices.

use std::collections::HashMap;

/// A field of a message.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        value |= u64::from(byte & 127).checked_shl(shift).unwrap_or(0);
        if byte < 128 {
            return value;
        }
    }
    panic!("a number of more than ten bytes")
}

pub(crate) fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_at(8);
                bytes = rest;
                Value::Fixed(u64::from_le_bytes(value.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value)
            }
            kind => panic!("kind {kind} of field {}", tag >> 3),
        };
        found.push((tag >> 3, value));
    }
    found
}

fn number(fields: &[(u64, Value<'_>)], wanted: u64) -> Option<u64> {
    fields.iter().find_map(|(field, value)| match value {
        Value::Number(number) if *field == wanted => Some(*number),
        _ => None,
    })
}

fn messages<'a>(fields: &[(u64, Value<'a>)], wanted: u64) -> Vec<&'a [u8]> {
    let of = |(field, value): &(u64, Value<'a>)| match value {
        Value::Bytes(bytes) if *field == wanted => Some(*bytes),
        _ => None,
    };
    fields.iter().filter_map(of).collect()
}

fn text(fields: &[(u64, Value<'_>)], wanted: u64) -> String {
    let found = messages(fields, wanted);
    String::from_utf8(found.first().copied().unwrap_or_default().to_vec()).expect("texts are UTF-8")
}

/// A slice that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) track: u64,
    pub(crate) category: String,
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) dur: u64,
}

/// A Perfetto trace.
#[derive(Default)]
pub(crate) struct Perfetto {
    /// Names and parents of tracks.
    pub(crate) tracks: HashMap<u64, (String, Option<u64>)>,
    /// The place of a track among its siblings.
    pub(crate) places: HashMap<u64, i64>,
    pub(crate) slices: Vec<Slice>,
    /// Track, time, value.
    pub(crate) counts: Vec<(u64, u64, i64)>,
    /// Arrows that begin, and that end.
    pub(crate) flows: (Vec<u64>, Vec<u64>),
    /// All texts.
    pub(crate) texts: Vec<String>,
}

/// One event, before all are put in order.
struct Event<'a> {
    at: u64,
    fields: Vec<(u64, Value<'a>)>,
}

impl Perfetto {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let (mut read, mut tables) = (Self::default(), [(); 4].map(|()| HashMap::<u64, String>::new()));
        let mut events = Vec::new();
        for (field, value) in fields(bytes) {
            let (1, Value::Bytes(packet)) = (field, value) else { panic!("field {field} of the trace") };
            let packet = fields(packet);
            assert_eq!(number(&packet, 10), Some(1), "one sequence");
            for table in messages(&packet, 12) {
                for (at, kind) in [1, 2, 3, 29].into_iter().enumerate() {
                    for entry in messages(&fields(table), kind) {
                        let entry = fields(entry);
                        let before = tables[at].insert(number(&entry, 1).unwrap(), text(&entry, 2));
                        assert_eq!(before, None, "names are written once");
                        read.texts.push(text(&entry, 2));
                    }
                }
            }
            for track in messages(&packet, 60) {
                let track = fields(track);
                let (parent, id) = (number(&track, 5), number(&track, 1).unwrap());
                assert!(parent.is_none_or(|parent| read.tracks.contains_key(&parent)), "parents come first");
                read.texts.push(text(&track, 2));
                let before = read.tracks.insert(id, (text(&track, 2), parent));
                assert!(before.is_none(), "track {id} twice");
                let place = number(&track, 12).unwrap_or(0);
                read.places.insert(id, place as i64);
            }
            for event in messages(&packet, 11) {
                events.push(Event { at: number(&packet, 8).expect("a time"), fields: fields(event) });
            }
        }
        // As the trace processor does: by time, of equals in the order of the file.
        events.sort_by_key(|event| event.at);
        let [categories, names, keys, values] = &tables;
        let mut open: HashMap<u64, Vec<(u64, String, String)>> = HashMap::new();
        for Event { at, fields: event } in &events {
            let track = number(event, 11).expect("a track");
            assert!(read.tracks.contains_key(&track), "track {track} is not there");
            for note in messages(event, 4) {
                let note = fields(note);
                assert!(keys.contains_key(&number(&note, 1).unwrap()));
                assert!(number(&note, 17).is_none_or(|value| values.contains_key(&value)));
                read.texts.push(text(&note, 6));
            }
            for (field, value) in event {
                match (field, value) {
                    (47, Value::Fixed(id)) => read.flows.0.push(*id),
                    (48, Value::Fixed(id)) => read.flows.1.push(*id),
                    _ => {}
                }
            }
            match number(event, 9) {
                Some(1) => {
                    let category = categories[&number(event, 3).expect("a category")].clone();
                    open.entry(track).or_default().push((*at, category, names[&number(event, 10).expect("a name")].clone()));
                }
                Some(2) => {
                    let (start, category, name) = open.get_mut(&track).and_then(Vec::pop).expect("what ends has begun");
                    read.slices.push(Slice { track, category, name, start, dur: at - start });
                }
                Some(4) => read.counts.push((track, *at, number(event, 30).unwrap() as i64)),
                kind => panic!("kind {kind:?} of an event"),
            }
        }
        assert!(open.values().all(Vec::is_empty), "what begins ends");
        read
    }

    /// The time of a category.
    pub(crate) fn total(&self, category: &str) -> u64 {
        self.slices.iter().filter(|slice| slice.category == category).map(|slice| slice.dur).sum()
    }
}
