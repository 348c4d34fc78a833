//! One event: its members picked out of the JSON, in any order.

use super::arguments::{Args, end, guessed, read_arg};
use super::category::Category;
use super::dialect::{Dialect, Extras};
use super::local::Locals;
use crate::json::{Damage, Decimal, END, Repeated, Tokens, strict};

/// The members of an event that anything uses. Spans point into the segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event<'a> {
    /// First byte of `ph`; 0 when absent.
    pub(super) phase: u8,
    /// Category, when there is one.
    pub(super) category: Option<Category>,
    /// Raw category, for reports about unknown ones.
    pub(super) cat: &'a [u8],
    /// Raw name.
    pub(super) name: &'a [u8],
    /// The worker's number of it, if it was guessed.
    pub(super) known_name: Option<u32>,
    /// Process, if it is a number.
    pub(super) pid: Option<i64>,
    /// Process, if it is text.
    pub(super) pid_text: Option<&'a [u8]>,
    /// Thread.
    pub(super) tid: Option<Id<'a>>,
    /// Time stamp.
    pub(super) ts: Option<Decimal>,
    /// Duration.
    pub(super) dur: Option<Decimal>,
    /// Arguments.
    pub(super) args: Args<'a>,
    /// What only other writers than PyTorch write.
    pub(super) extras: Extras<'a>,
    /// How often each of the seven members that every event has was met, two bits each: one addition a member.
    met: u32,
    has_name: bool,
    /// Some argument may be set.
    has_args: bool,
    /// Some of `extras` may be set.
    has_extras: bool,
    /// Process and thread of the events before.
    last_pid: Repeated,
    last_tid: Repeated,
    categories: Categories<'a>,
}

/// Categories met, by their first bytes: there are a handful.
#[derive(Clone, Copy, Debug)]
struct Categories<'a>([(&'a [u8], Category); 8]);

impl Default for Categories<'_> {
    fn default() -> Self {
        Self([(b"", Category::of(b"")); 8])
    }
}

impl<'a> Categories<'a> {
    /// The place of the category that begins with these bytes.
    #[inline]
    fn slot(&mut self, first: u64) -> &mut (&'a [u8], Category) {
        &mut self.0[(first.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize]
    }
}

/// What reading an event depends on beside its bytes.
#[derive(Debug)]
pub(super) struct Context<'l> {
    /// What the worker knows already.
    pub(super) locals: &'l Locals,
    /// Strides and values of operators' arguments are wanted.
    pub(super) arguments: bool,
    /// Who wrote the events.
    pub(super) dialect: Dialect,
}

/// A thread id as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id<'a> {
    /// A number, quoted or not.
    Number(i64),
    /// Anything else, raw.
    Text(&'a [u8]),
}

impl Event<'_> {
    /// A member of the event itself stands twice: the last one counts, and perhaps two events have run together. (Arguments are another
    /// matter: some writers repeat them.)
    #[inline]
    pub(super) fn repeats(&self) -> bool {
        self.met & 0xAAAA != 0
    }

    /// Counts the member at `index`.
    #[inline]
    fn count(&mut self, index: u32) {
        self.met = self.met.wrapping_add(1 << (2 * index));
    }

    #[inline]
    fn lacks_member(&self, dialect: Dialect) -> bool {
        match self.phase {
            // Other writers leave out categories, and names of ends.
            b'X' if dialect != Dialect::Kineto => !self.has_name || self.ts.is_none() || self.dur.is_none(),
            b's' | b't' | b'f' | b'E' => false,
            b'X' if self.tid.is_none() || (self.pid.is_none() && self.pid_text.is_none()) => true,
            b'X' => {
                let unread = |time| matches!(time, None | Some(Decimal::Invalid));
                !self.has_name || self.category.is_none() || unread(self.ts) || unread(self.dur)
            }
            phase => phase == 0 || !self.has_name,
        }
    }

    /// Forgets the last event. The arguments are many, and most events set few or none: they are reset only when used.
    #[inline]
    fn reset(&mut self) {
        self.phase = 0;
        self.category = None;
        self.cat = b"";
        self.name = b"";
        self.known_name = None;
        self.has_name = false;
        self.met = 0;
        self.pid = None;
        self.pid_text = None;
        self.tid = None;
        self.ts = None;
        self.dur = None;
        if self.has_args {
            self.args = Args::default();
            self.has_args = false;
        }
        if self.has_extras {
            self.extras = Extras::default();
            self.has_extras = false;
        }
    }
}

impl<'a> Event<'a> {
    #[inline]
    fn take_category(&mut self, tokens: &Tokens<'a>, colon: usize) {
        let known = self.categories.slot(tokens.first_word_of_string(colon));
        self.cat = tokens.is_string(colon, known.0).unwrap_or_else(|| {
            let cat = tokens.string(colon).unwrap_or_default();
            *known = (cat, Category::of(cat));
            cat
        });
        self.category = Some(known.1);
    }

    #[inline]
    fn take_name(&mut self, tokens: &Tokens<'a>, colon: usize, context: &Context<'_>) {
        // Only complete events have names that are kept; instants are mostly the allocator's.
        let (guess, usual) = if self.phase == b'X' { (context.locals.guess_name(), None) } else { (None, Some(b"[memory]")) };
        let (name, known) = guessed(guess, |body| tokens.is_string(colon, body));
        let name = name.or_else(|| tokens.is_string(colon, usual?)).or_else(|| tokens.string(colon));
        self.known_name = known;
        self.has_name = name.is_some();
        self.name = name.unwrap_or_default();
    }

    #[inline]
    fn take_process(&mut self, tokens: &Tokens<'a>, colon: usize) {
        self.pid = tokens.repeated_i64(colon, &mut self.last_pid);
        if self.pid.is_none() {
            self.pid_text = tokens.string(colon);
        }
    }

    #[inline]
    fn take_thread(&mut self, tokens: &Tokens<'a>, colon: usize) {
        self.tid = match tokens.repeated_i64(colon, &mut self.last_tid) {
            Some(number) => Some(Id::Number(number)),
            None => tokens.string(colon).map(Id::Text),
        };
    }

    /// Takes the members of a complete event up to its arguments, if they are the usual ones in their usual order, as in most events:
    /// there is less to ask of each then. Otherwise nothing is taken.
    #[inline]
    fn take_usual(&mut self, tokens: &mut Tokens<'a>, context: &Context<'_>) -> bool {
        let Some([ph, cat, name, pid, tid, ts, dur, args]) = tokens.upcoming() else { return false };
        let is_usual = tokens.is_key_and_colon(ph, b"\"ph\":")
            && tokens.is_key_and_colon(cat, b"\"cat\":")
            && tokens.is_key_and_colon(name, b"\"name\":")
            && tokens.is_key_and_colon(pid, b"\"pid\":")
            && tokens.is_key_and_colon(tid, b"\"tid\":")
            && tokens.is_key_and_colon(ts, b"\"ts\":")
            && tokens.is_key_and_colon(dur, b"\"dur\":")
            && tokens.is_key_and_colon(args, b"\"args\":");
        if !is_usual || tokens.first_of_string(ph) != b'X' {
            return false;
        }
        tokens.take(8);
        // Each of the seven before the arguments once.
        self.met = 0b01_01_01_01_01_01_01;
        self.phase = b'X';
        self.take_category(tokens, cat);
        self.take_name(tokens, name, context);
        self.take_process(tokens, pid);
        self.take_thread(tokens, tid);
        self.ts = Some(tokens.nanoseconds(ts));
        self.dur = Some(tokens.nanoseconds(dur));
        true
    }
}

/// Reads the event whose opening brace, the next token, is at `start`; returns the offset behind its closing brace.
#[inline]
pub(super) fn read<'a>(tokens: &mut Tokens<'a>, start: usize, event: &mut Event<'a>, context: &Context<'_>) -> Result<usize, Damage> {
    event.reset();
    tokens.next();
    match read_members(tokens, start, event, context) {
        Ok(end) if tokens.first_odd() >= end && !event.repeats() && !event.lacks_member(context.dialect) => Ok(end),
        Err(Damage::Malformed(at)) => Err(Damage::Malformed(at.min(tokens.first_odd()))),
        end => settle(tokens, start, event, end.ok(), context.dialect),
    }
}

/// Has an event checked strictly: a byte in it is odd, or a member that every event has is missing or stands twice (perhaps a colon or a
/// quote is missing, or a piece from one event into another), or it does not end, as if a brace were missing.
#[cold]
#[inline(never)]
fn settle(tokens: &Tokens<'_>, start: usize, event: &Event<'_>, end: Option<usize>, dialect: Dialect) -> Result<usize, Damage> {
    let strict_end = strict::value_end(tokens.bytes(), start)?;
    // XLA ends its list with an empty object, so that every event before it can end with a comma.
    let is_filler = dialect != Dialect::Kineto && tokens.bytes()[start + 1..strict_end - 1].trim_ascii().is_empty();
    let is_no_event = !is_filler && event.phase == 0 || (event.phase == b'X' && !event.has_name);
    match end {
        Some(end) if end == strict_end && !is_no_event => Ok(end),
        Some(_) => Err(Damage::Malformed(start)),
        None => Err(Damage::Incomplete),
    }
}

#[inline]
fn read_members<'a>(tokens: &mut Tokens<'a>, start: usize, event: &mut Event<'a>, context: &Context<'_>) -> Result<usize, Damage> {
    let mut in_args = event.take_usual(tokens, context);
    let mut checked = false;
    loop {
        let at = tokens.next();
        if at == END {
            return Err(Damage::Incomplete);
        }
        match tokens.bytes()[at] {
            b':' => {
                let key = tokens.key(at).ok_or(Damage::Malformed(at))?;
                match read_member(tokens, at, key.1, event, context) {
                    Member::Other => in_args = false,
                    Member::Arguments => in_args = true,
                    // Flow arrows repeat what correlation says.
                    Member::FlowPhase => return skip_checked(tokens, start, &mut checked),
                    Member::AsyncId => {
                        in_args = false;
                        event.extras.id = tokens.value(at).unwrap_or_default();
                        event.has_extras = true;
                    }
                    Member::AsyncScope => {
                        in_args = false;
                        event.extras.scope = tokens.string(at).unwrap_or_default();
                        event.has_extras = true;
                    }
                }
            }
            b'{' => {
                check_brace(tokens, at, start, &mut checked)?;
                let end = if in_args && (context.dialect.has_own_arguments() || !event.category.is_some_and(Category::ignores_args)) {
                    event.has_args = true;
                    if context.dialect.has_own_arguments() {
                        event.has_extras = true;
                        read_other_args(tokens, start, event, &mut checked, context.dialect)
                    } else {
                        read_args(tokens, start, event, &mut checked, context)
                    }
                } else {
                    skip_checked(tokens, start, &mut checked).map(|_| ())
                };
                end?;
            }
            _ => return Ok(at + 1),
        }
    }
}

/// An object is a member's value or the first of a list. After a comma it may be one of a list, or the next event, which a
/// missing brace would swallow: then the whole event is checked, once.
#[inline]
fn check_brace(tokens: &Tokens<'_>, brace: usize, start: usize, checked: &mut bool) -> Result<(), Damage> {
    if !*checked && !matches!(tokens.black_before(brace), b':' | b'[') {
        strict::value_end(tokens.bytes(), start)?;
        *checked = true;
    }
    Ok(())
}

/// Passes over the rest of the object that the last token taken lies in; the offset behind its closing brace.
fn skip_checked(tokens: &mut Tokens<'_>, start: usize, checked: &mut bool) -> Result<usize, Damage> {
    let mut depth = 1_u32;
    loop {
        let at = tokens.next();
        match tokens.bytes().get(at) {
            None => return Err(Damage::Incomplete),
            Some(b'{') => {
                check_brace(tokens, at, start, checked)?;
                depth += 1;
            }
            Some(b'}') => {
                depth -= 1;
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            Some(_) => {}
        }
    }
}

/// A whole key of up to eight bytes, quotes included, where [`Tokens::tail`] has it.
const fn whole<const N: usize>(text: &[u8; N]) -> u64 {
    let (mut tail, mut at) = (0, 0);
    while at < N {
        tail = (tail >> 8) | ((text[at] as u64) << 56);
        at += 1;
    }
    tail >> (64 - 8 * N)
}

/// What a member of an event was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    /// `args`.
    Arguments,
    /// The `ph` of a flow arrow.
    FlowPhase,
    /// `id` or `id2`, which joins the ends of an asynchronous range.
    AsyncId,
    /// `scope`, which tells equal ids apart.
    AsyncScope,
    /// Anything else.
    Other,
}

/// Takes a member of the event itself; `tail` is the end of its key.
#[inline]
fn read_member<'a>(tokens: &mut Tokens<'a>, colon: usize, tail: u64, event: &mut Event<'a>, context: &Context<'_>) -> Member {
    const PH: u32 = end(*b"\"ph\"");
    const TS: u32 = end(*b"\"ts\"");
    const CAT: u32 = end(*b"cat\"");
    const NAME: u32 = end(*b"ame\"");
    const PID: u32 = end(*b"pid\"");
    const TID: u32 = end(*b"tid\"");
    const DUR: u32 = end(*b"dur\"");
    const ARGS: u32 = end(*b"rgs\"");
    const ID: u32 = end(*b"\"id\"");
    const ID2: u32 = end(*b"id2\"");
    const SCOPE: u32 = end(*b"ope\"");
    let (five, six) = (tail >> 24, tail >> 16);
    match (tail >> 32) as u32 {
        // A key may end like another behind an escaped quote.
        _ if (tail >> 24) as u8 == b'\\' => {}
        PH => {
            event.count(0);
            event.phase = tokens.first_of_string(colon);
            if matches!(event.phase, b's' | b't' | b'f') {
                return Member::FlowPhase;
            }
        }
        TS => {
            event.count(1);
            event.ts = Some(tokens.nanoseconds(colon));
        }
        CAT if five == whole(b"\"cat\"") => {
            event.count(2);
            event.take_category(tokens, colon);
        }
        NAME if six == whole(b"\"name\"") => {
            event.count(3);
            event.take_name(tokens, colon, context);
        }
        PID if five == whole(b"\"pid\"") => {
            event.count(4);
            event.take_process(tokens, colon);
        }
        TID if five == whole(b"\"tid\"") => {
            event.count(5);
            event.take_thread(tokens, colon);
        }
        DUR if five == whole(b"\"dur\"") => {
            event.count(6);
            event.dur = Some(tokens.nanoseconds(colon));
        }
        ARGS if six == whole(b"\"args\"") => return Member::Arguments,
        ID => return Member::AsyncId,
        ID2 if five == whole(b"\"id2\"") => return Member::AsyncId,
        SCOPE if tail >> 8 == whole(b"\"scope\"") => return Member::AsyncScope,
        _ => {}
    }
    Member::Other
}

/// Takes the members of `args`, whose opening brace was taken.
#[inline]
fn read_args<'a>(
    tokens: &mut Tokens<'a>,
    start: usize,
    event: &mut Event<'a>,
    checked: &mut bool,
    context: &Context<'_>,
) -> Result<(), Damage> {
    loop {
        let at = tokens.next();
        match tokens.bytes().get(at) {
            Some(b':') => {
                let key = tokens.key(at).ok_or(Damage::Malformed(at))?;
                read_arg(tokens, at, key, event.known_name, &mut event.args, context);
            }
            Some(b'{') => {
                check_brace(tokens, at, start, checked)?;
                skip_checked(tokens, start, checked)?;
            }
            Some(_) => return Ok(()),
            None => return Err(Damage::Incomplete),
        }
    }
}

/// Takes the members of `args`, whose opening brace was taken, as a writer other than PyTorch names them.
#[cold]
fn read_other_args<'a>(
    tokens: &mut Tokens<'a>,
    start: usize,
    event: &mut Event<'a>,
    checked: &mut bool,
    dialect: Dialect,
) -> Result<(), Damage> {
    loop {
        let at = tokens.next();
        match tokens.bytes().get(at) {
            Some(b':') => {
                let (key_end, _) = tokens.key(at).ok_or(Damage::Malformed(at))?;
                dialect.read_arg(tokens, at, key_end, &mut event.args, &mut event.extras);
            }
            Some(b'{') => {
                check_brace(tokens, at, start, checked)?;
                skip_checked(tokens, start, checked)?;
            }
            Some(_) => return Ok(()),
            None => return Err(Damage::Incomplete),
        }
    }
}

/// The number at the end of a 2021 stream name (`stream 7`), or the number itself.
pub(super) fn stream_number(tid: Option<Id<'_>>) -> Option<i64> {
    match tid? {
        Id::Number(number) => Some(number),
        Id::Text(text) => crate::json::parse_i64(text.trim_ascii().rsplit(|b| *b == b' ').next()?),
    }
}
