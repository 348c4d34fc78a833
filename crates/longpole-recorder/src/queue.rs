//! Events on their way from the program's threads to the worker.
//!
//! A thread always uses the same one of sixteen lists, so its events stay in order and threads seldom meet; an event is one copy under a lock
//! that nobody holds for longer than a copy. A list that is full drops what comes and counts it.

use std::ffi::c_char;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::sys;

const SHARDS: usize = 16;

/// Events and bytes of text that one list takes before the worker comes (8 MiB of events).
const MOST_EVENTS: usize = 1 << 17;
const MOST_TEXT_BYTES: usize = 4 << 20;

/// Events at which the worker is woken early.
const WAKE_EVENTS: usize = MOST_EVENTS / 4;
const WAKE_TEXT_BYTES: usize = MOST_TEXT_BYTES / 4;

/// The longest message; what is behind is cut off.
pub(crate) const MOST_MESSAGE_BYTES: usize = 4096;

/// One in so many events has its time taken: two more looks at the clock for each would cost as much as the event.
const SAMPLED: u64 = 64;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Push,
    Pop,
    Start,
    End,
    Mark,
    /// The text is the name of the thread in `id`.
    ThreadName,
    /// `id` is the node, `original` what it was copied from, `domain` the graph.
    GraphNode,
    /// Recording was switched; `id` is the cause.
    SwitchOn,
    SwitchOff,
}

/// Where the text of an event is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Message {
    #[default]
    None,
    /// A string that the program has registered, by its index.
    Registered(u32),
    /// Offset and length among the texts of the list.
    Here(u32, u32),
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) time: u64,
    pub(crate) what: What,
    pub(crate) tid: u32,
    /// Index of the domain, zero for the default one.
    pub(crate) domain: u32,
    pub(crate) id: u64,
    pub(crate) original: u64,
    pub(crate) message: Message,
}

impl Event {
    /// An event of this thread, now.
    pub(crate) fn now(what: What) -> Self {
        Self { time: sys::realtime_ns(), what, tid: sys::tid(), domain: 0, id: 0, original: 0, message: Message::None }
    }
}

/// A text that is still where the program has it.
#[derive(Clone, Copy)]
pub(crate) enum Text {
    None,
    Registered(u32),
    Narrow(*const c_char),
    /// Of 32-bit characters.
    Wide(*const u32),
}

/// Events and their texts.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) events: Vec<Event>,
    text: Vec<u8>,
}

impl Batch {
    /// The text of a message that is here.
    pub(crate) fn text(&self, offset: u32, length: u32) -> &[u8] {
        self.text.get(offset as usize..(offset as usize).saturating_add(length as usize)).unwrap_or_default()
    }

    fn clear(&mut self) {
        self.events.clear();
        self.text.clear();
        // One flood should not hold its memory for good.
        self.events.shrink_to(WAKE_EVENTS);
        self.text.shrink_to(WAKE_TEXT_BYTES);
    }

    /// Copies a text in.
    ///
    /// # Safety
    ///
    /// The text must be null or end in a zero.
    unsafe fn take(&mut self, text: Text) -> Message {
        let offset = self.text.len();
        match text {
            Text::None => return Message::None,
            Text::Registered(index) => return Message::Registered(index),
            // SAFETY: promised by the caller.
            Text::Narrow(address) => self.text.extend_from_slice(unsafe { sys::text(address, MOST_MESSAGE_BYTES) }),
            // SAFETY: promised by the caller.
            Text::Wide(address) => unsafe { widen(address, &mut self.text) },
        }
        Message::Here(offset as u32, (self.text.len() - offset) as u32)
    }
}

/// Appends a text of 32-bit characters as UTF-8.
///
/// # Safety
///
/// The address must be null or of characters that end in a zero.
pub(crate) unsafe fn widen(address: *const u32, into: &mut Vec<u8>) {
    if address.is_null() {
        return;
    }
    for at in 0..MOST_MESSAGE_BYTES / 4 {
        // SAFETY: no zero has come yet, so this character is part of the text.
        let code = unsafe { address.add(at).read_unaligned() };
        if code == 0 {
            return;
        }
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// One list, on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Shard {
    batch: Mutex<Batch>,
}

/// All lists.
#[derive(Default)]
pub(crate) struct Queue {
    shards: [Shard; SHARDS],
    dropped: AtomicU64,
    /// Events taken, and nanoseconds they cost the program: counted by the worker, with what the threads sampled.
    taken: AtomicU64,
    sampled: AtomicU64,
    sampled_ns: AtomicU64,
}

impl Queue {
    /// Takes an event; whether the worker should come soon.
    ///
    /// # Safety
    ///
    /// The text must be null or end in a zero.
    pub(crate) unsafe fn push(&self, mut event: Event, text: Text) -> bool {
        let Some(shard) = self.shards.get(event.tid as usize % SHARDS) else { return false };
        let mut batch = shard.batch.lock().unwrap_or_else(PoisonError::into_inner);
        if batch.events.len() >= MOST_EVENTS || batch.text.len() >= MOST_TEXT_BYTES {
            drop(batch);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        // SAFETY: promised by the caller.
        event.message = unsafe { batch.take(text) };
        batch.events.push(event);
        let count = batch.events.len();
        let wake = count == WAKE_EVENTS || batch.text.len() >= WAKE_TEXT_BYTES && (count as u64).is_multiple_of(SAMPLED);
        drop(batch);
        // Not the first of a batch, which may have to find memory for the others.
        if count as u64 % SAMPLED == 3 {
            // Stepping back is what a wall clock may do; then the sample is lost.
            self.sampled_ns.fetch_add(sys::realtime_ns().saturating_sub(event.time), Ordering::Relaxed);
            self.sampled.fetch_add(1, Ordering::Relaxed);
        }
        wake
    }

    /// Gives every list's events to `read`, one list after the other.
    pub(crate) fn drain(&self, spare: &mut Batch, mut read: impl FnMut(&Batch)) {
        for shard in &self.shards {
            spare.clear();
            std::mem::swap(&mut *shard.batch.lock().unwrap_or_else(PoisonError::into_inner), spare);
            if !spare.events.is_empty() {
                self.taken.fetch_add(spare.events.len() as u64, Ordering::Relaxed);
                read(spare);
            }
        }
    }

    /// Events that found their list full since this was last asked.
    pub(crate) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    /// Events taken so far, and what they cost the program's threads by the ones whose time was taken, ns.
    pub(crate) fn cost(&self) -> (u64, u64) {
        let taken = self.taken.load(Ordering::Relaxed);
        let sampled = self.sampled.load(Ordering::Relaxed).max(1);
        let sampled_ns = self.sampled_ns.load(Ordering::Relaxed);
        (taken, (u128::from(sampled_ns) * u128::from(taken) / u128::from(sampled)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &Queue, text: Text) -> bool {
        // SAFETY: texts of these tests end in a zero.
        unsafe { queue.push(Event::now(What::Mark), text) }
    }

    fn texts(queue: &Queue) -> Vec<String> {
        let mut all = Vec::new();
        queue.drain(&mut Batch::default(), |batch| {
            for event in &batch.events {
                all.push(match event.message {
                    Message::Here(offset, length) => String::from_utf8_lossy(batch.text(offset, length)).into_owned(),
                    other => format!("{other:?}"),
                });
            }
        });
        all
    }

    #[test]
    fn texts_are_copied_in_order() {
        let queue = Queue::default();
        push(&queue, Text::Narrow(c"first".as_ptr()));
        push(&queue, Text::Wide([0xe9, 0x1f600, 0xd800, 0].as_ptr()));
        push(&queue, Text::Registered(7));
        push(&queue, Text::Narrow(std::ptr::null()));
        push(&queue, Text::Wide(std::ptr::null()));
        assert_eq!(texts(&queue), ["first", "é😀\u{fffd}", "Registered(7)", "", ""]);
        assert!(texts(&queue).is_empty());
        assert_eq!(queue.cost().0, 5);
    }

    #[test]
    fn long_texts_are_cut() {
        let queue = Queue::default();
        let long = vec![b'x'.cast_signed(); 10_000];
        push(&queue, Text::Narrow(long.as_ptr().cast()));
        assert_eq!(texts(&queue)[0].len(), MOST_MESSAGE_BYTES);
    }

    #[test]
    fn a_full_list_drops_and_counts() {
        let queue = Queue::default();
        let mut woken = false;
        for _ in 0..MOST_EVENTS + 10 {
            woken |= push(&queue, Text::None);
        }
        assert!(woken);
        assert_eq!(queue.take_dropped(), 10);
        assert_eq!(texts(&queue).len(), MOST_EVENTS);
        push(&queue, Text::None);
        assert_eq!((queue.take_dropped(), texts(&queue).len()), (0, 1));
    }
}
