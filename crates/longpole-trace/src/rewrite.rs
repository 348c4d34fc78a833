//! Rewriting every text of a trace at once, which is how secrets are taken out before anything is computed or printed.
//!
//! The structs are taken apart field by field, so that a field with text added later does not compile until it is rewritten
//! here as well.

use std::borrow::Cow;

use crate::builder::Trace;
use crate::entities::{Device, DeviceProperties, Process, RankInfo, Thread, Tid, Versions};
use crate::ids::StrId;

impl Trace {
    /// Replaces every text of the trace by what `rewrite` makes of it. Names that become equal become one name.
    pub fn rewrite_text(&mut self, rewrite: impl Fn(&str) -> Cow<'_, str>) {
        let Self {
            strings,
            base_unix_ns: _,
            window: _,
            unobserved: _,
            ranks,
            parts: _,
            processes,
            threads,
            devices,
            lanes: _,
            details: _,
            graph_nodes: _,
            captures: _,
            versions,
            recorded: _,
            host_ops,
            api_calls,
            activities,
            ranges,
            memory: _,
            frames,
            overheads,
            sync_events: _,
            os_calls,
            cpu_samples,
            collectives,
            aggregates,
            recorder: _,
            events_read: _,
        } = self;
        let in_place = |text: &mut String| {
            if let Cow::Owned(changed) = rewrite(text) {
                *text = changed;
            }
        };
        for RankInfo { label, rank: _, world_size: _, backend } in ranks {
            in_place(label);
            backend.iter_mut().for_each(in_place);
        }
        for Device { rank: _, ordinal: _, properties } in devices {
            let DeviceProperties {
                name,
                memory_bytes: _,
                sm_count: _,
                compute_capability: _,
                max_threads_per_sm: _,
                registers_per_sm: _,
                shared_bytes_per_sm: _,
                warp_size: _,
                peak_memory_bytes_per_s: _,
            } = properties;
            name.iter_mut().for_each(in_place);
        }
        let Versions { cuda_runtime, cuda_driver, cupti, hip_runtime, hip_driver } = versions;
        [cuda_runtime, cuda_driver, cupti, hip_runtime, hip_driver].into_iter().flatten().for_each(in_place);
        for Thread { process: _, tid, name: _ } in threads.iter_mut() {
            if let Tid::Text(text) = tid {
                in_place(text);
            }
        }
        let Some(moved) = strings.rewrite(&rewrite) else { return };
        let rename = |id: &mut StrId| *id = moved[id.index()];
        for Process { rank: _, pid: _, name } in processes {
            name.iter_mut().for_each(rename);
        }
        for Thread { name, .. } in threads {
            name.iter_mut().for_each(rename);
        }
        let columns = [
            &mut host_ops.name,
            &mut api_calls.name,
            &mut activities.name,
            &mut ranges.name,
            &mut frames.name,
            &mut overheads.name,
            &mut aggregates.name,
            &mut os_calls.name,
            &mut cpu_samples.name,
        ];
        columns.into_iter().flatten().for_each(rename);
        host_ops.rename_inputs(&moved);
        collectives.rename_texts(&moved);
    }
}

#[cfg(test)]
mod tests {
    use crate::builder::TraceBuilder;
    use crate::collectives::{Collective, CollectivePlace};
    use crate::ns::Ns;
    use crate::tables::{HostOp, Range};

    use super::*;

    fn rewrite(text: &str) -> Cow<'_, str> {
        if text.contains("secret") { Cow::Owned(text.replace(|c: char| c.is_ascii_digit(), "#")) } else { Cow::Borrowed(text) }
    }

    #[test]
    fn every_text_changes_and_equal_names_become_one() {
        let mut builder = TraceBuilder::new();
        let rank = builder.add_rank(RankInfo { label: "secret1".to_owned(), backend: Some("secret2".to_owned()), ..RankInfo::default() });
        let process = builder.process(rank, 1);
        let thread = builder.thread(process, Tid::Text("secret3".to_owned()));
        let device = builder.device(rank, 0);
        let names: Vec<_> = ["aten::mm", "secret4", "secret5", "[[8]]"].map(|name| builder.trace_mut().strings.intern(name)).into();
        builder.name_thread(rank, 1, Tid::Text("secret3".to_owned()), names[1]);
        builder.name_process(rank, 1, names[2]);
        let trace = builder.trace_mut();
        trace.devices[device.index()].properties.name = Some("secret6".to_owned());
        trace.versions.cupti = Some("secret7".to_owned());
        for (at, &name) in names.iter().enumerate() {
            let (start, dur) = (Ns(at as i64), Ns(1));
            let shapes = Some(names[(at + 2) % 4]);
            builder.push_host_op(HostOp { name, thread, start, dur, external_id: None, shapes, types: None, strides: None, values: None });
            builder.push_range(Range { name, thread, start, dur });
        }
        builder.push_collective(Collective {
            place: CollectivePlace::Host(thread),
            start: Ns(0),
            name: Some(names[0]),
            group: Some(names[1]),
            group_ranks: Some(names[2]),
            dtype: None,
            group_size: Some(2),
            in_elements: None,
            out_elements: Some(7),
            sequence: None,
            source_rank: None,
            destination_rank: None,
        });
        let mut trace = builder.finish();
        trace.rewrite_text(rewrite);
        let text = |id| trace.strings.get(id).to_owned();
        assert_eq!(trace.host_ops.name.iter().map(|&id| text(id)).collect::<Vec<_>>(), ["aten::mm", "secret#", "secret#", "[[8]]"]);
        assert_eq!(trace.host_ops.name[1], trace.host_ops.name[2], "one name, one row in every table");
        assert_eq!(trace.host_ops.name, trace.ranges.name);
        let shapes: Vec<_> = (0..4).filter_map(|row| trace.host_ops.shapes(row)).map(text).collect();
        assert_eq!(shapes, ["secret#", "[[8]]", "aten::mm", "secret#"]);
        assert_eq!(trace.host_ops.types(0), None);
        let collective = trace.collectives.get(0);
        let texts = [collective.name, collective.group, collective.group_ranks, collective.dtype].map(|id| id.map(text));
        let secret = Some("secret#".to_owned());
        assert_eq!(texts, [Some("aten::mm".to_owned()), secret.clone(), secret, None]);
        assert_eq!((collective.group_size, collective.in_elements, collective.out_elements), (Some(2), None, Some(7)));
        assert_eq!((trace.ranks[0].label.as_str(), trace.ranks[0].backend.as_deref()), ("secret#", Some("secret#")));
        assert_eq!(trace.threads[0].tid, Tid::Text("secret#".to_owned()));
        assert_eq!((trace.threads[0].name, trace.processes[0].name), (Some(trace.host_ops.name[1]), Some(trace.host_ops.name[1])));
        assert_eq!(trace.devices[0].properties.name.as_deref(), Some("secret#"));
        assert_eq!(trace.versions.cupti.as_deref(), Some("secret#"));
        assert_eq!(trace.strings.find("secret4"), None);
        assert_eq!(trace.strings.find("secret#"), Some(trace.host_ops.name[1]));
    }

    #[test]
    fn without_a_change_nothing_is_rebuilt() {
        let mut builder = TraceBuilder::new();
        let name = builder.trace_mut().strings.intern("aten::mm");
        let mut trace = builder.finish();
        trace.rewrite_text(rewrite);
        assert_eq!(trace.strings.find("aten::mm"), Some(name));
    }
}
