//! Events of the program's threads, as records.

use longpole_recording::{GraphNode, Nvtx, RangeState, StringId, Thread};

use crate::nvtx::names::{DOMAINS, STRINGS};
use crate::queue::{Batch, Event, Message, What};
use crate::worker::Worker;

/// Writes an event.
pub(crate) fn write(worker: &mut Worker, batch: &Batch, event: &Event) {
    let text = match event.message {
        Message::None => None,
        Message::Registered(index) => STRINGS.get(index),
        Message::Here(offset, length) => Some(batch.text(offset, length)),
    };
    let Some(writer) = &mut worker.writer else { return };
    let time = event.time.saturating_add_signed(worker.clock_offset_ns);
    let kind = match event.what {
        What::Push => Nvtx::PUSH,
        What::Pop => Nvtx::POP,
        What::Start => Nvtx::START,
        What::End => Nvtx::END,
        What::Mark => Nvtx::MARK,
        What::ThreadName => {
            let name = writer.string(text.unwrap_or_default());
            writer.thread(&Thread { tid: event.id as u32, name });
            return;
        }
        What::GraphNode => {
            let some = |id: u64| (id != 0).then_some(id);
            writer.graph_node(&GraphNode {
                node: event.id,
                time,
                tid: event.tid,
                original: some(event.original),
                graph: (event.domain != 0).then_some(event.domain),
                correlation: None,
            });
            return;
        }
        What::SwitchOn | What::SwitchOff => {
            let name =
                if event.id as u8 == RangeState::NVTX { writer.string(worker.recorder.settings.range_name()) } else { StringId::NONE };
            let on = u8::from(event.what == What::SwitchOn);
            writer.range_state(&RangeState { on, cause: event.id as u8, time, tid: event.tid, name });
            return;
        }
    };
    let mut some = |text: Option<&[u8]>| text.map_or(StringId::NONE, |text| writer.string(text));
    let record = Nvtx {
        time,
        kind,
        tid: event.tid,
        domain: some(DOMAINS.get(event.domain)),
        name: some(text),
        range: matches!(event.what, What::Start | What::End).then_some(event.id),
        // Payloads, colours and categories say nothing that any answer is made of.
        ..Nvtx::default()
    };
    writer.nvtx(&record);
}
