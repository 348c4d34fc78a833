//! Tracks for slices that overlap: a Perfetto track holds slices that nest, so others go to a track of their own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use longpole_trace::Ns;

use super::packets::{Category, Name, Notes, Packets, Track, TrackKind};

/// Tracks that are tried for a slice before it gets a new one: a damaged trace may hold any number that cross each other.
const TRIED: usize = 16;

/// A slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) start: Ns,
    pub(super) end: Ns,
    pub(super) category: Category,
    pub(super) name: Name,
}

/// Slices that nest where they can (host events). They come in order of start, of those the longest first.
pub(super) struct Nested {
    parent: Track,
    label: &'static str,
    /// For each track, the ends of what is open on it.
    open: Vec<(Track, Vec<Ns>)>,
}

impl Nested {
    /// Slices of `track` itself, as long as they nest.
    pub(super) fn on(track: Track, label: &'static str) -> Self {
        Self { parent: track, label, open: vec![(track, Vec::new())] }
    }

    pub(super) fn slice(&mut self, packets: &mut Packets<'_, '_>, slice: Slice, say: impl FnOnce(&mut Notes)) -> io::Result<()> {
        let mut chosen = None;
        for (at, (track, open)) in self.open.iter_mut().enumerate().take(TRIED) {
            while let Some(end) = open.pop_if(|end| *end <= slice.start) {
                packets.end(*track, end)?;
            }
            if open.last().is_none_or(|end| slice.end <= *end) {
                chosen = Some(at);
                break;
            }
        }
        let at = chosen.unwrap_or_else(|| {
            let number = self.open.len();
            let track = packets.track(Some(self.parent), &format!("{} {}", self.label, number + 1), TrackKind::Plain, number as i64);
            self.open.push((track, Vec::new()));
            number
        });
        let (track, open) = &mut self.open[at];
        packets.begin(*track, slice.start, (slice.category, slice.name), say)?;
        open.push(slice.end);
        Ok(())
    }

    /// Ends what is open.
    pub(super) fn finish(self, packets: &mut Packets<'_, '_>) -> io::Result<()> {
        for (track, mut open) in self.open {
            while let Some(end) = open.pop() {
                packets.end(track, end)?;
            }
        }
        Ok(())
    }
}

/// Slices of which none is inside another (device work): what overlaps is beside each other, on the first track that is free. They come in
/// order of start.
pub(super) struct Beside {
    parent: Track,
    label: &'static str,
    tracks: Vec<Track>,
    free: BinaryHeap<Reverse<usize>>,
    busy: BinaryHeap<Reverse<(Ns, usize)>>,
}

impl Beside {
    pub(super) fn on(track: Track, label: &'static str) -> Self {
        Self { parent: track, label, tracks: vec![track], free: BinaryHeap::from([Reverse(0)]), busy: BinaryHeap::new() }
    }

    pub(super) fn slice(&mut self, packets: &mut Packets<'_, '_>, slice: Slice, say: impl FnOnce(&mut Notes)) -> io::Result<()> {
        while let Some(&Reverse((end, at))) = self.busy.peek()
            && end <= slice.start
        {
            self.busy.pop();
            self.free.push(Reverse(at));
        }
        let at = self.free.pop().map_or_else(
            || {
                let number = self.tracks.len();
                let name = format!("{} {}", self.label, number + 1);
                self.tracks.push(packets.track(Some(self.parent), &name, TrackKind::Plain, number as i64));
                number
            },
            |Reverse(at)| at,
        );
        let track = self.tracks[at];
        packets.begin(track, slice.start, (slice.category, slice.name), say)?;
        packets.end(track, slice.end)?;
        self.busy.push(Reverse((slice.end, at)));
        Ok(())
    }
}
