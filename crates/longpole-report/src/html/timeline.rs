//! An overview as the page reads it: numbers in the blob, everything else as JSON.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_analysis::{
    EventName, EventOrigin, Family, IcicleKind, LaneKind, LanePlace, Level, MomentSubject, Overview, OverviewEvent, OverviewLane,
};
use longpole_trace::{DetailId, Ns, StrId};

use super::blob::Blob;
use super::data::{ColumnsOut, CurveOut, IcicleOut, LaneOut, LevelOut, MomentOut, TimelineOut};
use super::places::{Places, curve, detail, lane_kind};
use super::{HtmlCuts, HtmlLimits, HtmlOverview};

/// What of a page shows time.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) timeline: Option<TimelineOut>,
    pub(super) icicle: Option<IcicleOut>,
    pub(super) curves: Vec<CurveOut>,
    pub(super) moments: Vec<MomentOut>,
}

/// Names longer than this are cut in any case.
const LONGEST_NAME: usize = 4_000;
/// Names of threads and devices above lanes.
const LONGEST_TITLE: usize = 200;
/// However many names there are, each keeps so many bytes.
const SHORTEST_NAME: usize = 24;

/// Turns an overview into what the page reads.
pub(super) fn parts(of: &HtmlOverview<'_>, limits: &HtmlLimits, names_bytes: usize, blob: &mut Blob, cuts: &mut HtmlCuts) -> Parts {
    let overview = of.overview;
    let timeline = timeline(of, "", names_bytes, blob, cuts);
    let places = Places::new(of.trace);
    let curves: Vec<CurveOut> = overview
        .curves
        .iter()
        .map(|of_device| {
            let (kind, words, unit) = curve(of_device.kind);
            CurveOut {
                kind,
                title: format!("{} · {words}", places.gpu(of_device.rank, of_device.device)),
                device: Some(of_device.device),
                unit,
                t: blob.delta(of_device.points.iter().map(|&(at, _)| since(of, at))),
                v: blob.varint(of_device.points.iter().map(|&(_, value)| value)),
            }
        })
        .collect();
    let mut icicle = icicle(of, overview);
    if let Some(icicle) = &mut icicle {
        shorten(&mut icicle.name, "icicle.names", names_bytes, cuts);
    }
    // What stands for others is a node of the page, and none of the tree.
    let nodes = overview.icicle.iter().filter(|node| node.kind != IcicleKind::Rest).count();
    cuts.add("icicle.nodes", nodes as u64, overview.icicle_total as u64);
    cuts.add("moments", overview.moments.len() as u64, overview.moments_total as u64);
    Parts { timeline, icicle, curves, moments: moments(of, overview, limits.chars) }
}

/// The lanes of an overview. `side` stands before the names of lists that are cut.
pub(super) fn timeline(of: &HtmlOverview<'_>, side: &str, names_bytes: usize, blob: &mut Blob, cuts: &mut HtmlCuts) -> Option<TimelineOut> {
    let overview = of.overview;
    let mut maker = Maker { of, names: Names::default(), details: Details::new(), blob };
    let places = Places::new(of.trace);
    let lanes: Vec<LaneOut> = overview.lanes.iter().map(|lane| maker.lane(lane, &places)).collect();
    let Maker { names, details, .. } = maker;
    let mut texts: Vec<String> = names.all.iter().map(|&(name, _)| text(of, name)).collect();
    let families = families(of, &names);
    let mut add = |list: &str, kept: usize, all: u64| cuts.add(&format!("{side}timeline.{list}"), kept as u64, all);
    let (kept, total) = (overview.events_kept(), overview.events_total);
    add("events", kept, total);
    let group_count = |is_it: fn(&LanePlace) -> bool| {
        let mut places: Vec<LanePlace> = overview.lanes.iter().map(|lane| lane.place).filter(is_it).collect();
        places.dedup();
        places.len()
    };
    let threads = group_count(|place| matches!(place, LanePlace::Thread(_)));
    add("threads", threads, (threads + overview.threads_left_out) as u64);
    let streams = group_count(|place| matches!(place, LanePlace::Stream(_)));
    add("streams", streams, (streams + overview.streams_left_out) as u64);
    shorten(&mut texts, &format!("{side}timeline.names"), names_bytes, cuts);
    (!lanes.is_empty()).then(|| TimelineOut {
        start_ns: since(of, overview.window.start),
        end_ns: since(of, overview.window.end),
        names: texts,
        name_family: families.0,
        families: families.1,
        details: details.texts,
        lanes,
        events_total: total,
        events_kept: kept,
    })
}

/// Cuts names to their share of what all of them may have.
fn shorten(texts: &mut [String], list: &str, names_bytes: usize, cuts: &mut HtmlCuts) {
    let most = (names_bytes / texts.len().max(1)).clamp(SHORTEST_NAME, LONGEST_NAME);
    let whole = texts.iter().filter(|text| text.len() <= most).count();
    cuts.add(list, whole as u64, texts.len() as u64);
    for text in texts {
        cut(text, most);
    }
}

/// A time counted from the first event.
fn since(of: &HtmlOverview<'_>, at: Ns) -> u64 {
    crate::views::since_first(of.trace, at).get().max(0) as u64
}

fn unsigned(time: Ns) -> u64 {
    time.get().max(0) as u64
}

/// Cuts a text behind so many bytes, between characters.
fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}

/// Distinct names in order of first use; those of device work stand apart from those of the host.
#[derive(Default)]
struct Names {
    all: Vec<(EventName, bool)>,
    numbers: HashMap<(EventName, bool), u64, FixedState>,
}

impl Names {
    fn number(&mut self, name: EventName, is_device_work: bool) -> u64 {
        *self.numbers.entry((name, is_device_work)).or_insert_with(|| {
            self.all.push((name, is_device_work));
            self.all.len() as u64 - 1
        })
    }
}

/// Texts of details; the first is empty.
struct Details {
    texts: Vec<String>,
    of_detail: HashMap<DetailId, u64, FixedState>,
    of_step: HashMap<u32, u64, FixedState>,
}

impl Details {
    fn new() -> Self {
        Self { texts: vec![String::new()], of_detail: HashMap::default(), of_step: HashMap::default() }
    }
}

struct Maker<'a, 'o> {
    of: &'a HtmlOverview<'o>,
    names: Names,
    details: Details,
    blob: &'a mut Blob,
}

impl Maker<'_, '_> {
    fn lane(&mut self, lane: &OverviewLane, places: &Places<'_>) -> LaneOut {
        let of = self.of;
        let is_device_work = lane.kind == LaneKind::Stream;
        let window = |window: &longpole_trace::Interval| (since(of, window.start), since(of, window.end));
        let mut group = places.group(lane.place);
        cut(&mut group, LONGEST_TITLE);
        LaneOut {
            kind: lane_kind(lane.kind),
            group,
            title: places.title(lane.kind, lane.place),
            rows: lane.rows,
            first: lane.first,
            total: lane.total,
            events: self.columns(&lane.events, is_device_work),
            complete: lane.complete.iter().map(window).collect(),
            levels: lane.levels.iter().map(|level| self.level(level, is_device_work)).collect(),
        }
    }

    fn columns(&mut self, events: &[OverviewEvent], is_device_work: bool) -> ColumnsOut {
        let of = self.of;
        let names: Vec<u64> = events.iter().map(|event| self.names.number(event.name, is_device_work)).collect();
        let owners: Vec<u64> =
            events.iter().map(|event| event.owner.map_or(0, |owner| 1 + self.names.number(EventName::Text(owner), false))).collect();
        let details: Vec<u64> = events.iter().map(|event| self.detail(event)).collect();
        let blob = &mut *self.blob;
        ColumnsOut {
            n: events.len(),
            start: blob.delta(events.iter().map(|event| since(of, event.start))),
            dur: blob.varint(events.iter().map(|event| unsigned(event.dur))),
            name: blob.varint(names.into_iter()),
            row: blob.unless_zero(events.iter().map(|event| u64::from(event.row))),
            launch: blob.unless_zero(events.iter().map(|event| event.launch.map_or(0, |call| 1 + u64::from(call)))),
            owner: blob.unless_zero(owners.into_iter()),
            detail: blob.unless_zero(details.into_iter()),
        }
    }

    fn level(&mut self, level: &Level, is_device_work: bool) -> LevelOut {
        let (of, blocks) = (self.of, &level.blocks);
        let names: Vec<u64> = blocks.iter().map(|block| self.names.number(block.name, is_device_work)).collect();
        let blob = &mut *self.blob;
        LevelOut {
            resolution_ns: level.resolution.get(),
            n: blocks.len(),
            start: blob.delta(blocks.iter().map(|block| since(of, block.start))),
            dur: blob.varint(blocks.iter().map(|block| unsigned(block.dur))),
            row: blob.unless_zero(blocks.iter().map(|block| u64::from(block.row))),
            count: blob.varint(blocks.iter().map(|block| block.count)),
            busy: blob.varint(blocks.iter().map(|block| unsigned(block.busy))),
            name: blob.varint(names.into_iter()),
        }
    }

    /// The number of an event's detail.
    fn detail(&mut self, event: &OverviewEvent) -> u64 {
        let Details { texts, of_detail, of_step } = &mut self.details;
        let mut add = |text: String| {
            if text.is_empty() {
                return 0;
            }
            texts.push(text);
            texts.len() as u64 - 1
        };
        match event.origin {
            EventOrigin::Activity(activity) => {
                let Some(id) = self.of.trace.activities.detail(activity.index()) else { return 0 };
                *of_detail.entry(id).or_insert_with(|| self.of.trace.details.get(id.index()).map_or(0, |known| add(detail(known))))
            }
            EventOrigin::Step(number) => *of_step.entry(number).or_insert_with(|| add(format!("step {number}"))),
            EventOrigin::Node(_) | EventOrigin::Stretch(_) => 0,
        }
    }
}

fn text(of: &HtmlOverview<'_>, name: EventName) -> String {
    match name {
        EventName::Text(id) => of.trace.strings.get(id).to_owned(),
        EventName::Cause(cause) => cause.code().to_owned(),
        EventName::Group(group) => of.steps.groups.get(group as usize).map_or_else(String::new, |group| group.name.clone()),
    }
}

/// The family of each name, and the families there are.
fn families(of: &HtmlOverview<'_>, names: &Names) -> (Vec<i32>, Vec<&'static str>) {
    let trace = of.trace;
    let mut kind_of = HashMap::<StrId, longpole_trace::ActivityKind, FixedState>::default();
    if names.all.iter().any(|&(_, is_device_work)| is_device_work) {
        for (&name, &kind) in trace.activities.name.iter().zip(&trace.activities.kind) {
            kind_of.entry(name).or_insert(kind);
        }
    }
    let mut known: Vec<Family> = Vec::new();
    let family = |&(name, is_device_work): &(EventName, bool)| {
        let EventName::Text(id) = name else { return -1 };
        let Some(&kind) = kind_of.get(&id).filter(|_| is_device_work) else { return -1 };
        let family = Family::of(kind, trace.strings.get(id));
        let at = known.iter().position(|&other| other == family).unwrap_or_else(|| {
            known.push(family);
            known.len() - 1
        });
        at as i32
    };
    let of_names = names.all.iter().map(family).collect();
    (of_names, known.into_iter().map(Family::name).collect())
}

fn icicle(of: &HtmlOverview<'_>, overview: &Overview) -> Option<IcicleOut> {
    let nodes = &overview.icicle;
    let name = |kind: IcicleKind, name: Option<StrId>| match (kind, name) {
        (IcicleKind::Range, Some(id)) if of.trace.strings.get(id).starts_with("ProfilerStep#") => "ProfilerStep*".to_owned(),
        (_, Some(id)) => of.trace.strings.get(id).to_owned(),
        (IcicleKind::Root, None) => "all".to_owned(),
        (IcicleKind::NoLaunch, None) => "(no launch recorded)".to_owned(),
        (_, None) => "(others)".to_owned(),
    };
    let kind = |kind: IcicleKind| match kind {
        IcicleKind::Root => "root",
        IcicleKind::Range => "range",
        IcicleKind::Op => "op",
        IcicleKind::Call => "call",
        IcicleKind::Kernel => "kernel",
        IcicleKind::Rest | IcicleKind::NoLaunch => "rest",
    };
    (!nodes.is_empty()).then(|| IcicleOut {
        parent: nodes.iter().map(|node| node.parent.map_or(-1, i64::from)).collect(),
        name: nodes.iter().map(|node| name(node.kind, node.name)).collect(),
        kind: nodes.iter().map(|node| kind(node.kind)).collect(),
        host_ns: nodes.iter().map(|node| node.host_ns.map(Ns::get)).collect(),
        device_ns: nodes.iter().map(|node| node.device_ns.get()).collect(),
        calls: nodes.iter().map(|node| node.calls).collect(),
    })
}

fn moments(of: &HtmlOverview<'_>, overview: &Overview, chars: usize) -> Vec<MomentOut> {
    // As documents cut them, so that both are the same text.
    let shown = |text: &str| match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let name = |id: StrId| shown(of.trace.strings.get(id));
    let subject = |subject: &MomentSubject| match subject {
        MomentSubject::Smell(at) => {
            of.triage.smells.get(*at as usize).map(|smell| format!("smell:{}:{}", smell.code, shown(&smell.subject)))
        }
        MomentSubject::Cause(cause) => Some(format!("cause:{}", cause.code())),
        MomentSubject::Step(group, number) => {
            of.steps.groups.get(*group as usize).map(|group| format!("step:{}:{number}", shown(&group.name)))
        }
        MomentSubject::Kernel(id) => Some(format!("kernel:{}", name(*id))),
        MomentSubject::Op(id) => Some(format!("op:{}", name(*id))),
        MomentSubject::Range(name) => Some(format!("range:{}", shown(name))),
    };
    overview
        .moments
        .iter()
        .filter_map(|moment| {
            let of_what = subject(&moment.subject)?;
            let (start_ns, end_ns) = (since(of, moment.start), since(of, moment.end));
            Some(MomentOut { of: of_what, label: moment.label, start_ns, end_ns, lane: moment.lane, event: moment.event })
        })
        .collect()
}
