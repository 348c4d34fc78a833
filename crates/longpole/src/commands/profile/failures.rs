//! How ncu fails, and what helps: messages that it prints, known from its documentation and from what users run into.
//!
//! To add one, a line in `KNOWN`. What to do about it is the doctor's advice for this machine where a check of it is about the same.

use longpole_doctor::{Fix, Host, examine, open_counters};
/// Where the advice comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advice {
    /// How to open the counters on this machine.
    Counters,
    /// The fix of a check of the doctor, with words for where that check finds nothing.
    Check(&'static str, &'static str),
    /// Words.
    Words(&'static str),
}

/// A failure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Part of a line that ncu prints, in small letters.
    sign: &'static str,
    /// What it means.
    pub(super) means: &'static str,
    advice: Advice,
}

const fn known(sign: &'static str, means: &'static str, advice: Advice) -> Known {
    Known { sign, means, advice }
}

/// All of them, the most telling first: ncu often says the general one as well.
const KNOWN: [Known; 12] = [
    known("err_nvgpuctrperm", "this user may not read the GPU's counters (ERR_NVGPUCTRPERM)", Advice::Counters),
    known(
        "driver resource was unavailable",
        "something else holds the GPU's counters: another profiler, or a monitor such as DCGM",
        Advice::Check("monitors", "End the other profiler, or pause the monitor: dcgmi profile --pause, and --resume afterwards."),
    ),
    known(
        "interprocesslockfailed",
        "another user's ncu left its lock behind",
        Advice::Words("Take another folder for it: TMPDIR=$HOME/tmp longpole profile ..."),
    ),
    known(
        "nsight-compute-lock",
        "another ncu runs, or another user's left its lock behind",
        Advice::Words("Wait for it, or take another folder for the lock: TMPDIR=$HOME/tmp longpole profile ..."),
    ),
    known(
        "not supported on device",
        "this ncu does not know this GPU",
        Advice::Check("ncu", "Install a newer Nsight Compute; `longpole doctor` says which one the GPU needs."),
    ),
    known(
        "profiling is not supported",
        "this ncu cannot profile here",
        Advice::Check("ncu", "`longpole doctor` says what the GPU and the driver need."),
    ),
    known(
        "driver version is insufficient",
        "the driver is too old for the program or for ncu",
        Advice::Check("driver", "`longpole doctor` says which CUDA the driver runs."),
    ),
    known(
        "libcuda.so",
        "the program did not find the driver",
        Advice::Check("driver", "`longpole doctor` says what is wrong with the driver."),
    ),
    known(
        "out of memory",
        "there was too little memory to save what a kernel overwrites, so that it can be run again",
        Advice::Words("Run the program again instead of the kernel: longpole profile KEY ... -- --replay-mode application"),
    ),
    known(
        "no kernels were profiled",
        "no kernel ran between cuProfilerStart and cuProfilerStop",
        Advice::Words(
            "The suite's `profile` has to launch the benchmark between the two, and outside of CUDA graphs (docs/suite-protocol.md); filters behind -- may also have left none.",
        ),
    ),
    known(
        "terminated before first instrumented api call",
        "the suite ended before it used CUDA",
        Advice::Words("Its own words are above; run its `profile` without ncu to see why."),
    ),
    known("unrecognised option", "this ncu does not know an option", Advice::Words("ncu --help lists what this version takes.")),
];

/// The most telling failure that these lines speak of.
pub(super) fn find<T: AsRef<str>>(lines: &[T]) -> Option<Known> {
    KNOWN.into_iter().find(|known| lines.iter().any(|line| line.as_ref().to_ascii_lowercase().contains(known.sign)))
}

/// Whether a line may be one of those, so that it is worth keeping.
pub(super) fn is_sign(line: &str) -> bool {
    find(&[line]).is_some()
}

fn fix(advice: Advice) -> Fix {
    let words = |text: &str| Fix { text: text.to_owned(), commands: Vec::new(), verify: None };
    match advice {
        Advice::Words(text) => words(text),
        Advice::Counters => open_counters(&examine(&Host::default()).facts),
        Advice::Check(code, otherwise) => {
            let found = examine(&Host::default()).checks.into_iter().find(|check| check.code == code);
            found.and_then(|check| check.fix).unwrap_or_else(|| words(otherwise))
        }
    }
}

/// What helps, in lines.
pub(super) fn advice(known: Known) -> Vec<String> {
    lines(&fix(known.advice))
}

/// A fix in lines.
pub(super) fn lines(fix: &Fix) -> Vec<String> {
    let commands = fix.commands.iter().map(|command| format!("    {command}"));
    let verify = fix.verify.iter().map(|verify| format!("  then  {}  says: {}", verify.command, verify.expect));
    std::iter::once(format!("→ {}", fix.text)).chain(commands).chain(verify).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_found_whatever_else_is_said() {
        let said = [
            "==PROF== Connected to process 1",
            "==ERROR== Profiling is not supported on this system",
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters",
        ];
        assert!(find(&said).unwrap().means.contains("may not read"));
        assert!(find(&["==WARNING== No kernels were profiled."]).unwrap().means.contains("no kernel ran"));
        assert!(find(&["==PROF== Disconnected"]).is_none());
        assert!(is_sign("==ERROR== unrecognised option '--sett'. Use --help for further details."));
    }

    #[test]
    fn every_failure_has_advice() {
        for known in KNOWN {
            assert_eq!(known.sign, known.sign.to_ascii_lowercase());
            assert!(!fix(known.advice).text.is_empty(), "{}", known.sign);
        }
    }
}
