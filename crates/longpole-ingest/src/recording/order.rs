//! Jobs done on several threads, taken in their order.

use std::collections::BTreeMap;

/// Runs `jobs` on `threads` threads and gives each result to `take` in the order of the jobs. A few jobs run ahead of the one that is taken.
pub(super) fn in_order<J, R>(threads: usize, jobs: impl Iterator<Item = J>, make: impl Fn(J) -> R + Sync, mut take: impl FnMut(R))
where
    J: Send,
    R: Send,
{
    if threads < 2 {
        jobs.for_each(|job| take(make(job)));
        return;
    }
    let (jobs_in, jobs_out) = crossbeam_channel::unbounded::<(usize, J)>();
    let (done_in, done_out) = crossbeam_channel::unbounded::<(usize, R)>();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (jobs, done, make) = (jobs_out.clone(), done_in.clone(), &make);
            scope.spawn(move || {
                for (number, job) in jobs {
                    if done.send((number, make(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop((jobs_out, done_in));
        let mut jobs = jobs.enumerate();
        let (mut ahead, mut wanted, mut waiting) = (0, 0, BTreeMap::new());
        loop {
            while ahead < threads * 2 + 2
                && let Some(job) = jobs.next()
            {
                ahead += 1;
                // Fails only when every thread is gone, which ends the loop below.
                let _ = jobs_in.send(job);
            }
            if ahead == 0 {
                break;
            }
            let Ok((number, result)) = done_out.recv() else { break };
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(&wanted) {
                wanted += 1;
                ahead -= 1;
                take(result);
            }
        }
        drop(jobs_in);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_their_jobs() {
        for threads in [1, 2, 5] {
            for count in [0, 1, 7, 300_u64] {
                let mut taken = Vec::new();
                // Later jobs are shorter.
                let make = |job: u64| (0..(count - job) * 50).fold(job, |sum, _| std::hint::black_box(sum));
                in_order(threads, 0..count, make, |result| taken.push(result));
                assert_eq!(taken, (0..count).collect::<Vec<_>>());
            }
        }
    }
}
