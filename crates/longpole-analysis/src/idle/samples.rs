//! CPU samples of launching threads in the time in which a device waited for their launch.

use longpole_trace::{Ns, ThreadId};

use super::gaps::Gaps;
use super::types::{HostSamples, SampleRow};
use crate::index::TraceIndex;
use crate::index::order::Order;

/// Counts the samples inside the parts of gaps before the launch that ends them, on the launching thread. Where several devices waited for one
/// thread at once, a sample counts once.
pub(super) fn of_gaps(index: &TraceIndex<'_>, gaps: &Gaps) -> Option<HostSamples> {
    let trace = index.trace();
    let samples = &trace.cpu_samples;
    if samples.is_empty() {
        return None;
    }
    let mut of_thread: Vec<Vec<(Ns, Ns)>> = vec![Vec::new(); trace.threads.len()];
    for gap in &gaps.all {
        let (launch, _) = gap.launch(trace);
        if let Some(call) = gap.call().filter(|_| launch > gap.start) {
            of_thread[trace.api_calls.thread[call.index()].index()].push((gap.start, launch.min(gap.end)));
        }
    }
    let order = Order::by(trace.threads.len(), &samples.thread, |row| samples.start[row]);
    let mut counts = vec![0_u64; trace.strings.len()];
    for (thread, waits) in of_thread.iter_mut().enumerate().filter(|(_, waits)| !waits.is_empty()) {
        waits.sort_unstable();
        let (mut next, mut until) = (0, Ns::MIN);
        for position in order.thread(ThreadId::from_index(thread).index()) {
            let row = order.row(position) as usize;
            let at = samples.start[row];
            while let Some((_, end)) = waits.get(next).filter(|(start, _)| *start <= at) {
                until = until.max(*end);
                next += 1;
            }
            counts[samples.name[row].index()] += u64::from(at < until);
        }
    }
    let mut rows: Vec<SampleRow> = trace
        .strings
        .iter()
        .filter(|(id, _)| counts[id.index()] > 0)
        .map(|(id, name)| SampleRow { name: name.to_owned(), samples: counts[id.index()] })
        .collect();
    rows.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.name.cmp(&b.name)));
    Some(HostSamples { samples: counts.iter().sum(), rows })
}
