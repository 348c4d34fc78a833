//! The four narrow questions of a first pass, answered with numbers and the place to look. Where the trace cannot tell, the answer
//! says so and what to record.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, Interval, IntervalSet, Ns};

use crate::families::{Family, FamilyOfName};
use crate::median::lower_median;
use crate::phrases::{count, counted, fine_percent, fraction, percent, percent_of, time};
use crate::ranges::{RangeRow, is_users, wrapping};
use crate::scope::{Scope, ScopeSpec};
use crate::smells::{CRITICAL_COPY_SHARE, DENSE_SHARE, Fact, FactValue, Facts, HOST_ALONE_SHARE, PACKED_SHARE};

/// An answered question.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Stable code of the question.
    pub code: &'static str,
    /// The question, for people.
    pub question: &'static str,
    /// One word for machines; `unknown` where the trace cannot tell.
    pub verdict: &'static str,
    /// The answer: numbers, and the place to look.
    pub answer: String,
    /// The numbers.
    pub evidence: Vec<Fact>,
}

const UNKNOWN: &str = "unknown";
const CUT: &str = "cannot be known: the file was cut, and device events come last in it (record or copy it again)";

const OUTSIDE: &str = "cannot be known: nothing in scope ran on a device";

fn no_device(facts: &Facts<'_, '_>) -> Answer {
    Answer::new(UNKNOWN, if facts.has_work_outside_scope() { OUTSIDE } else { facts.trace().recorder.advice().device_unknown })
}

struct Answer {
    verdict: &'static str,
    text: String,
    evidence: Vec<Fact>,
}

impl Answer {
    fn new(verdict: &'static str, text: impl Into<String>) -> Self {
        Self { verdict, text: text.into(), evidence: Vec::new() }
    }

    fn fact(mut self, key: &'static str, value: impl Into<FactValue>) -> Self {
        self.evidence.push(Fact { key, value: value.into() });
        self
    }
}

/// What the evidence on the two phases is called: range, calls, kernels, busy, collectives, busy share of the span.
const PREFILL_KEYS: [&str; 6] =
    ["prefill", "prefill_calls", "prefill_kernels", "prefill_gpu_busy_ns", "prefill_collectives", "prefill_gpu_busy_of_span_fraction"];
const DECODE_KEYS: [&str; 6] =
    ["decode", "decode_calls", "decode_kernels", "decode_gpu_busy_ns", "decode_collectives", "decode_gpu_busy_of_span_fraction"];

type Ask = fn(&Facts<'_, '_>) -> Answer;

const QUESTIONS: &[(&str, &str, Ask)] = &[
    ("kernels_packed", "Are kernels packed, or does the GPU wait between launches?", kernels_packed),
    ("host_and_gpu", "Do host ranges line up with GPU work, or is the host busy while the GPU is empty?", host_and_gpu),
    ("prefill_and_decode", "Is prefill one dense block and decode many small repeated ones?", prefill_and_decode),
    ("copies_critical", "Are memory copies on the critical path?", copies_critical),
];

/// The questions of a source that can answer none of them, and why.
pub(crate) fn unknown_questions(why: &str) -> Vec<Question> {
    let unknown = |&(code, question, _): &(&'static str, &'static str, Ask)| Question {
        code,
        question,
        verdict: UNKNOWN,
        answer: why.to_owned(),
        evidence: Vec::new(),
    };
    QUESTIONS.iter().map(unknown).collect()
}

/// The answers, in order.
pub(crate) fn questions(facts: &Facts<'_, '_>) -> Vec<Question> {
    let answer = |&(code, question, ask): &(&'static str, &'static str, Ask)| {
        let Answer { verdict, text, evidence } = if facts.tables.is_cut { Answer::new(UNKNOWN, CUT) } else { ask(facts) };
        Question { code, question, verdict, answer: text, evidence }
    };
    QUESTIONS.iter().map(answer).collect()
}

/// The range in which the device idles most, and a phrase that points to it.
fn idlest_range<'a>(facts: &Facts<'a, '_>) -> Option<&'a RangeRow> {
    let rows = facts.tables.ranges.iter().filter(|row| is_users(&row.name) && row.gpu_idle_ns.is_some_and(|idle| idle > Ns::ZERO));
    // Of a range and one inside it that idle about as much, the inner one is the place to look.
    let most = rows.clone().filter_map(|row| row.gpu_idle_ns).max()?;
    rows.filter(|row| row.gpu_idle_ns.is_some_and(|idle| idle.get() >= most.get() / 10 * 9)).max_by_key(|row| row.parents.len())
}

fn look(facts: &Facts<'_, '_>) -> String {
    idlest_range(facts).map_or_else(String::new, |row| {
        let idle = row.gpu_idle_ns.map(time).unwrap_or_default();
        format!("; look in {} ({idle} idle)", told_apart(facts, row))
    })
}

/// The name of a range, with the one around it where the same name has another row.
fn told_apart(facts: &Facts<'_, '_>, row: &RangeRow) -> String {
    let same = facts.tables.ranges.iter().filter(|other| other.name == row.name).take(MOST_PATHS);
    let paths: Vec<_> = same.map(|other| other.parents.names()).collect();
    let around = level_apart(&paths).and_then(|level| at_level(&row.parents.names(), level));
    match around {
        Some(around) => format!("{} of {}", facts.clip(&row.name), facts.clip(around)),
        None => facts.clip(&row.name),
    }
}

/// Rows of one name whose surroundings are compared: a name may have a row for every request.
const MOST_PATHS: usize = 16;

/// The innermost level of ranges around rows of one name at which their names differ; the innermost is 0.
fn level_apart(paths: &[Vec<&str>]) -> Option<usize> {
    let deepest = paths.iter().map(Vec::len).max()?;
    (0..deepest).find(|&level| paths.windows(2).any(|pair| at_level(&pair[0], level) != at_level(&pair[1], level)))
}

/// The name of a path's range so many levels outside the innermost.
fn at_level<'n>(path: &[&'n str], level: usize) -> Option<&'n str> {
    path.len().checked_sub(level + 1).and_then(|at| path.get(at).copied())
}

/// What was seen of idle time, and where a step was timed without the profiler, how much of it is left.
fn under_profiler(facts: &Facts<'_, '_>, text: String) -> String {
    if facts.plain.is_some() { format!("under the profiler: {text}{}", facts.unprofiled_idle()) } else { text }
}

fn kernels_packed(facts: &Facts<'_, '_>) -> Answer {
    if facts.tables.totals.devices.is_empty() {
        return no_device(facts);
    }
    let (busy, span, idle) = (facts.busy, facts.span, facts.idle());
    if span == Ns::ZERO {
        return Answer::new(UNKNOWN, "cannot be known: the device work has no length");
    }
    let pace = &facts.evidence.pace;
    let gaps = || (0..pace.busy.len()).flat_map(|rank| pace.gaps(rank)).map(Interval::len);
    let (median, gaps) = (lower_median(gaps), gaps().count() as u64);
    let (starved, in_call) = (pace.starved_ns(), pace.in_call_ns());
    let share = percent_of(fraction(busy, span));
    let outside = span - busy - idle;
    let outside = if outside > Ns::ZERO {
        format!(" ({} with work from outside the scope)", percent_of(fraction(span - idle, span)))
    } else {
        String::new()
    };
    let between = || {
        let gaps = counted(gaps, "gap");
        format!("idle {} in {gaps} of median {}", time(idle), median.map(time).unwrap_or_default())
    };
    let of_idle = |part: Ns| percent(part, idle).unwrap_or_default();
    let (verdict, text) = if PACKED_SHARE.is_met(span - idle, span) {
        ("packed", format!("packed: busy {share} of its span{outside}"))
    } else if starved.get() >= idle.get() / 2 {
        let text = format!(
            "the GPU waits for launches: busy {share} of its span{outside}, {}, {} of it with nothing launched{}",
            between(),
            of_idle(starved),
            look(facts)
        );
        ("waits_for_launches", text)
    } else if (starved + in_call).get() >= idle.get() / 2 {
        let text = format!(
            "the GPU waits for calls: busy {share} of its span{outside}, {}, {} of it inside the call that launches the next work and {} before that call; \
             the longest gap is {}{}",
            between(),
            of_idle(in_call),
            of_idle(starved),
            time(pace.largest_gap_ns()),
            look(facts)
        );
        ("waits_in_calls", text)
    } else if pace.largest_gap_ns().get() > idle.get() / 2 {
        let text = format!(
            "not packed: busy {share} of its span{outside}, idle {}, {} of it in one gap although the next work was launched: it waits for another stream or for \
             work that is not recorded{}",
            time(idle),
            time(pace.largest_gap_ns()),
            look(facts)
        );
        ("gaps_after_launch", text)
    } else {
        let text = format!(
            "not packed, but the next work is mostly launched in time: busy {share} of its span{outside}, {}{}",
            between(),
            look(facts)
        );
        ("gaps_after_launch", text)
    };
    let is_packed_without = facts.calibration.as_ref().and_then(|known| known.busy_fraction).is_some_and(|busy| busy >= PACKED_SHARE.value);
    let verdict = if verdict != "packed" && facts.plain.is_some() && is_packed_without { "packed_without_profiler" } else { verdict };
    Answer::new(verdict, under_profiler(facts, text))
        .fact("gpu_busy_ns", busy)
        .fact("gpu_span_ns", span)
        .fact("gpu_busy_of_span_fraction", fraction(busy, span))
        .fact("gpu_idle_ns", idle)
        .fact("starved_ns", starved)
        .fact("idle_in_launching_call_ns", in_call)
        .fact("gaps", gaps)
        .fact("median_gap_ns", median)
        .fact("largest_gap_ns", pace.largest_gap_ns())
        .fact("look_in", idlest_range(facts).map(|row| row.name.as_str()))
}

fn host_and_gpu(facts: &Facts<'_, '_>) -> Answer {
    if facts.tables.totals.devices.is_empty() {
        return no_device(facts);
    }
    if facts.tables.totals.host_ops == 0 && facts.tables.ranges.is_empty() {
        return Answer::new(UNKNOWN, facts.trace().recorder.advice().host_unknown);
    }
    let host = &facts.evidence.host_work;
    let rows = facts.tables.ranges.iter().zip(wrapping(facts.tables.ranges)).filter(|(_, wraps)| !wraps).map(|(row, _)| row);
    let busy_of = |row: &RangeRow| Some(fraction(row.gpu_busy_ns?, row.gpu_span_ns?));
    let mut worst: Vec<&RangeRow> =
        rows.filter(|row| is_users(&row.name) && row.gpu_busy_ns.is_some() && fraction(row.cpu_ns, facts.wall) >= 0.05).collect();
    worst.sort_by_key(|row| std::cmp::Reverse(row.cpu_ns - row.gpu_busy_ns.unwrap_or_default()));
    worst.truncate(3);
    let each: Vec<String> = worst
        .iter()
        .filter_map(|row| {
            let share = percent_of(busy_of(row)?);
            Some(format!("{} x{}: {} of host, GPU busy {share} of its span", told_apart(facts, row), row.calls, time(row.cpu_ns)))
        })
        .collect();
    let listed = if each.is_empty() { String::new() } else { format!("; {}", each.join("; ")) };
    let share = facts.host_share(host.idle).unwrap_or_default();
    let alone = format!("{} ({} of wall)", time(host.idle), percent_of(share));
    let waits = facts.host_share(host.waiting).unwrap_or_default();
    let blocked = format!("{} ({} of wall)", time(host.waiting), percent_of(waits));
    let (verdict, text) = if share >= HOST_ALONE_SHARE.value {
        ("host_alone", format!("the host is busy while the GPU is empty for {alone}{listed}"))
    } else if waits >= HOST_ALONE_SHARE.value {
        ("host_waits", format!("the host waits in blocking calls while the GPU is empty for {blocked}, and works so for {alone}{listed}"))
    } else {
        ("aligned", format!("they mostly line up: the host works with the GPU empty for {alone}{listed}"))
    };
    Answer::new(verdict, under_profiler(facts, text))
        .fact("host_busy_ns", host.total)
        .fact("host_busy_gpu_empty_ns", host.idle)
        .fact("host_busy_gpu_empty_fraction", facts.host_share(host.idle))
        .fact("host_waiting_gpu_empty_ns", host.waiting)
        .fact("ranges", FactValue::List(each))
}

/// What a range name says of the tokens that it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Prefill,
    Decode,
    /// Both in one batch.
    Mixed,
}

/// Ranges whose names say what they are; a capture or replay of a graph is a step of decoding in most engines.
fn phase(name: &str) -> Option<Phase> {
    let name = name.to_ascii_lowercase();
    if let Some(phase) = phase_of_batch(&name) {
        return Some(phase);
    }
    if ["prefill", "extend", "prompt"].iter().any(|part| name.contains(part)) {
        Some(Phase::Prefill)
    } else if ["decode", "generate", "replay"].iter().any(|part| name.contains(part)) {
        Some(Phase::Decode)
    } else {
        None
    }
}

/// vLLM names a step by the requests in it: `execute_32_context_0(...)_generation_32(...)` has 32 that decode and none in prefill.
fn phase_of_batch(name: &str) -> Option<Phase> {
    let requests = |key: &str| -> Option<u64> {
        let rest = &name[name.find(key)? + key.len()..];
        rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
    };
    match (requests("_context_")?, requests("_generation_")?) {
        (0, 0) => None,
        (0, _) => Some(Phase::Decode),
        (_, 0) => Some(Phase::Prefill),
        _ => Some(Phase::Mixed),
    }
}

/// All rows of a range's name, whatever is around each of them.
#[derive(Clone)]
struct Named<'a> {
    name: &'a str,
    /// Ranges around the innermost of the rows.
    depth: usize,
    /// The ranges around the rows; of the first [`MOST_PATHS`] of them.
    paths: Vec<Vec<&'a str>>,
    /// Fewest and most kernels of a call, by rows.
    kernels_of_call: (u64, u64),
    calls: u64,
    kernels: u64,
    busy: Ns,
    span: Ns,
}

impl<'a> Named<'a> {
    /// The ranges of a phase that launched kernels, in order.
    fn of_phase(rows: &'a [RangeRow], wanted: Phase) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let mut at_of: HashMap<&str, usize, FixedState> = HashMap::default();
        for row in rows.iter().filter(|row| phase(&row.name) == Some(wanted) && row.kernels > 0) {
            let of_call = row.kernels / row.calls.max(1);
            let at = *at_of.entry(&row.name).or_insert_with(|| {
                all.push(Self {
                    name: &row.name,
                    depth: 0,
                    paths: Vec::new(),
                    kernels_of_call: (of_call, of_call),
                    calls: 0,
                    kernels: 0,
                    busy: Ns::ZERO,
                    span: Ns::ZERO,
                });
                all.len() - 1
            });
            // Inside one of its own name it is part of that one already.
            if row.parents.names().contains(&row.name.as_str()) {
                continue;
            }
            let Some(named) = all.get_mut(at) else { continue };
            named.depth = named.depth.max(row.parents.len());
            named.calls += row.calls;
            named.kernels += row.kernels;
            named.busy += row.gpu_busy_ns.unwrap_or_default();
            named.span += row.gpu_span_ns.unwrap_or_default();
            named.kernels_of_call = (named.kernels_of_call.0.min(of_call), named.kernels_of_call.1.max(of_call));
            if named.paths.len() < MOST_PATHS {
                named.paths.push(row.parents.names());
            }
        }
        all
    }
}

/// The work of the ranges of a name without collectives, which mostly wait for other ranks.
struct PhaseWork<'a> {
    named: Named<'a>,
    kernels: u64,
    busy: Ns,
    /// The span less the time in which collectives alone ran.
    span: Ns,
    collectives: u64,
    waited: Ns,
}

impl<'a> PhaseWork<'a> {
    /// Names of ranges around it that are listed.
    const MOST_AROUND: usize = 3;

    fn of(facts: &Facts<'_, '_>, named: Named<'a>) -> Self {
        let (index, trace) = (facts.tables.index, facts.trace());
        let Named { name, kernels, busy, span, .. } = named;
        let mut work = Self { named, kernels, busy, span, collectives: 0, waited: Ns::ZERO };
        if facts.tables.totals.comm_busy_ns.is_none_or(|busy| busy == Ns::ZERO) {
            return work;
        }
        let spec = ScopeSpec { range: Some(name.to_owned()), ..ScopeSpec::default() };
        let Ok(scope) = Scope::resolve(index, &spec) else { return work };
        let mut families = FamilyOfName::new(trace);
        let mut computing = vec![Vec::new(); trace.devices.len()];
        let mut collectives = computing.clone();
        let activities = &trace.activities;
        for row in 0..activities.len() {
            let id = ActivityId::from_index(row);
            if scope.includes_activity(index, id) && facts.tables.scope.includes_activity(index, id) {
                let is_collective = families.get(trace, row) == Family::Communication;
                work.collectives += u64::from(is_collective);
                let side = if is_collective { &mut collectives } else { &mut computing };
                side[trace.lanes[activities.lane[row].index()].device.index()]
                    .push(Interval::new(activities.start[row], activities.dur[row]));
            }
        }
        for (collectives, computing) in collectives.into_iter().zip(computing) {
            let alone = IntervalSet::from_unsorted(collectives).difference(&IntervalSet::from_unsorted(computing));
            work.waited += alone.total();
        }
        work.kernels = work.kernels.saturating_sub(work.collectives);
        (work.busy, work.span) = ((work.busy - work.waited).max(Ns::ZERO), (work.span - work.waited).max(Ns::ZERO));
        work
    }

    /// Absent where nothing of it ran on a device.
    fn busy_with_collectives(&self) -> Option<Ns> {
        (self.named.span > Ns::ZERO).then_some(self.named.busy)
    }

    fn share(&self) -> Option<f64> {
        (self.span > Ns::ZERO).then(|| fraction(self.busy, self.span).min(1.0))
    }

    fn text(&self, facts: &Facts<'_, '_>) -> String {
        let mean = Ns(self.busy.get() / self.kernels.max(1) as i64);
        let left_out = if self.collectives > 0 {
            format!(", {} ({} alone) left out", counted(self.collectives, "collective"), time(self.waited))
        } else {
            String::new()
        };
        // In several ranges, as of two models, figures are of all of them.
        let apart = level_apart(&self.named.paths);
        let mut around: Vec<&str> = Vec::new();
        for name in self.named.paths.iter().filter_map(|path| at_level(path, apart?)) {
            if !around.contains(&name) {
                around.push(name);
            }
        }
        let around: Vec<_> = around.into_iter().map(|name| facts.clip(name)).collect();
        // The mean of two models' calls is the call of neither.
        let kernels = match self.named.kernels_of_call {
            (least, most) if least < most && self.collectives == 0 => format!("{} to {}", count(least), counted(most, "kernel")),
            _ => counted(self.kernels / self.named.calls.max(1), "kernel"),
        };
        let whose = match around.as_slice() {
            [] | [_] => String::new(),
            names if names.len() > Self::MOST_AROUND => " of several ranges".to_owned(),
            [names @ .., last] => format!(" of {} and {last}", names.join(", ")),
        };
        format!(
            "{} x{}{whose}: {} of {} on the mean each, GPU busy {} of its span{left_out}",
            facts.clip(self.named.name),
            self.named.calls,
            kernels,
            time(mean),
            self.share().map(percent_of).unwrap_or_default()
        )
    }
}

fn prefill_and_decode(facts: &Facts<'_, '_>) -> Answer {
    if facts.tables.totals.devices.is_empty() {
        return no_device(facts);
    }
    let of = |wanted: Phase| {
        let all = Named::of_phase(facts.tables.ranges, wanted);
        // A loop around steps is not a step, and of a range and one inside it that launches about the same, the inner one is the model.
        let (calls, kernels) = all.iter().map(|named| (named.calls, named.kernels)).max()?;
        let inner = all.into_iter().filter(|named| named.calls == calls && named.kernels >= kernels / 10 * 9);
        inner.max_by_key(|named| (named.depth, named.kernels)).map(|named| PhaseWork::of(facts, named))
    };
    let (prefill, decode, mixed) = (of(Phase::Prefill), of(Phase::Decode), of(Phase::Mixed));
    if prefill.is_none() && decode.is_none() {
        return match mixed {
            Some(mixed) => {
                Answer::new(UNKNOWN, format!("cannot be told: each batch here holds both prefill and decode; {}", mixed.text(facts)))
            }
            None => Answer::new(UNKNOWN, facts.trace().recorder.advice().phases_unknown),
        };
    }
    let dense = prefill.as_ref().and_then(PhaseWork::share).map(|share| share >= DENSE_SHARE.value);
    let repeated = decode.as_ref().map(|work| work.named.calls > 1);
    let (verdict, head) = match (dense, repeated) {
        (Some(true), Some(true)) => ("yes", "yes: "),
        (Some(false), Some(true)) => ("prefill_not_dense", "decode repeats, but prefill is not dense: "),
        (Some(true), _) => ("prefill_dense", "prefill is dense; decode is not seen to repeat: "),
        (Some(false), _) => ("prefill_not_dense", "prefill is not dense, and decode is not seen to repeat: "),
        (None, Some(true)) => ("decode_only", "decode repeats; there is no prefill here: "),
        (None, _) => ("decode_once", "decode is here once and prefill not at all: "),
    };
    let text: Vec<String> = [&prefill, &decode].into_iter().flatten().map(|work| work.text(facts)).collect();
    let mut answer = Answer::new(verdict, format!("{head}{}", text.join("; ")));
    for (work, keys) in [(&prefill, PREFILL_KEYS), (&decode, DECODE_KEYS)] {
        let Some(work) = work else { continue };
        let [name, calls, kernels, busy, collectives, share] = keys;
        answer = answer
            .fact(name, work.named.name)
            .fact(calls, work.named.calls)
            .fact(kernels, work.named.kernels)
            .fact(busy, work.busy_with_collectives())
            .fact(collectives, work.collectives)
            .fact(share, work.share());
    }
    answer
}

fn copies_critical(facts: &Facts<'_, '_>) -> Answer {
    let totals = facts.tables.totals;
    let (Some(exposed), Some(copied)) = (totals.exposed_copy_ns, totals.copy_busy_ns) else { return no_device(facts) };
    if totals.memcpys + totals.memsets == 0 {
        return Answer::new("no", "no: there are no copies and no fills").fact("copies", 0).fact("fills", 0);
    }
    let largest = facts.tables.kernels.iter().find(|row| matches!(row.family, Family::Memcpy | Family::Memset));
    let place = largest.map_or_else(String::new, |row| {
        let by = row.owners.first().map_or_else(String::new, |owner| format!(" by {}", facts.clip(&owner.name)));
        format!("; most is {}{by} ({})", facts.clip(&row.name), time(row.cuda_ns))
    });
    let share = fine_percent(fraction(exposed, facts.span));
    let critical = CRITICAL_COPY_SHARE.is_met(exposed, facts.span);
    let (verdict, head) = if critical { ("yes", "yes") } else { ("no", "no") };
    let text = format!(
        "{head}: {} of {} of copies and fills run with no kernel beside them, {share} of the GPU span{place}",
        time(exposed),
        time(copied)
    );
    Answer::new(verdict, text)
        .fact("copies", totals.memcpys)
        .fact("fills", totals.memsets)
        .fact("copy_busy_ns", copied)
        .fact("exposed_ns", exposed)
        .fact("exposed_of_span_fraction", fraction(exposed, facts.span))
        .fact("pageable_ns", facts.evidence.pageable_ns)
        .fact("largest", largest.map(|row| row.name.as_str()))
}
