//! Trouble found in the input: a closed set of kinds, each counted, with a first example and a hint.
//!
//! Importing never logs and never stops for a single bad event; it returns its value plus [`Problems`]. To add a kind,
//! add a variant and its line in [`ProblemCode::describe`].

use crate::ns::Ns;

/// How much a problem matters to the reader of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A fact about the recording; no number is affected.
    Info,
    /// Something was counted or adjusted; no data is missing.
    Notice,
    /// Some data is missing: totals are lower bounds.
    DataLoss,
    /// The input could not be used.
    Error,
}

impl Severity {
    /// The word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Notice => "notice",
            Self::DataLoss => "data_loss",
            Self::Error => "error",
        }
    }
}

macro_rules! problem_codes {
    ($($(#[$doc:meta])* $variant:ident, $code:literal, $severity:ident, $message:literal, $hint:literal;)*) => {
        /// Every kind of trouble an importer can report.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ProblemCode {
            $($(#[$doc])* $variant,)*
        }

        impl ProblemCode {
            /// All kinds, in the order they are reported.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable code, the severity, what happened, and what the user can do.
            pub const fn describe(self) -> (&'static str, Severity, &'static str, &'static str) {
                match self {
                    $(Self::$variant => ($code, Severity::$severity, $message, $hint),)*
                }
            }
        }
    };
}

problem_codes! {
    /// The input ends inside an event or before its closing brackets.
    Truncated, "truncated", DataLoss, "the file ends early; everything before the cut was read",
        "record again, or read the totals as lower bounds, and self CPU as an upper bound: calls inside an operator may lie behind the cut";
    /// A compressed stream is damaged or cut.
    DamagedCompression, "damaged_compression", DataLoss, "the compressed stream is damaged; everything before the damage was read",
        "copy the file again or export it uncompressed; until then totals are lower bounds, and self CPU is an upper bound";
    /// An event could not be parsed and was skipped.
    MalformedEvent, "malformed_event", DataLoss, "events that are not valid JSON were skipped",
        "an unescaped quote or control character in a name is the usual cause; newer torch versions write it correctly";
    /// An event has no usable time stamp.
    MissingTime, "missing_time", DataLoss, "events without a readable time were skipped", "the exporter wrote no `ts` or `dur` for them";
    /// An event whose time stamp was never set.
    UnsetTime, "unset_time", DataLoss, "events at or before time zero, far from all others, were set aside",
        "the profiler never filled in their times; their work is missing from the totals";
    /// An event more than a day from all others.
    StrayTime, "stray_time", DataLoss, "events more than a day before or after all others were set aside",
        "their time stamps cannot be right; their work is missing from the totals";
    /// A member of an event stands twice.
    RepeatedMember, "repeated_member", DataLoss, "events in which a member stands twice were read by its last value",
        "damage that ran two events together is the usual cause: copy the file again";
    /// An allocator event without a size.
    UnreadableSize, "unreadable_size", DataLoss, "allocator events without a readable size were skipped", "the exporter wrote no `Bytes` for them";
    /// An event longer than a day.
    ImplausibleDuration, "implausible_duration", DataLoss, "events longer than a day were set aside", "the exporter wrote a wrong duration";
    /// Bytes that are part of no document.
    UnreadBytes, "unread_bytes", DataLoss, "bytes between or after the traces of a file could not be read", "the file may be damaged: copy it again";
    /// Bytes behind the end of a compressed stream.
    TrailingBytes, "trailing_bytes", Notice, "bytes behind the end of the compressed stream were not read", "nothing to do if they are padding";
    /// Recordings of a set that are hardly of one run.
    SeparateRuns, "separate_runs", Notice, "recordings share a rank or do not overlap in time: they may be different runs",
        "give one run's files at a time, or use --rank";
    /// The writer's limit of events was met.
    EventLimit, "event_limit", DataLoss, "the file holds exactly as many events as its writer writes at most: later ones are missing, and totals are lower bounds",
        "record less";
    /// Ends of ranges without a begin.
    StrayEnd, "stray_end", Notice, "ends of ranges whose begin is not in the trace were not used", "start recording before the ranges, or ignore what is cut by its edge";
    /// Device work of a category this version does not know.
    UnknownDeviceCategory, "unknown_device_category", Notice, "events of unknown categories with a stream were taken as device work",
        "tell us the category";
    /// Several documents in one file.
    ConcatenatedDocuments, "concatenated_documents", Notice, "several traces in one file were read as separate recordings",
        "use --rank to look at one of them";
    /// A duration below zero was read as zero.
    NegativeDuration, "negative_duration", Notice, "negative durations were read as zero", "rounding in the exporter is the usual cause";
    /// An event that ends before it starts, by more than rounding explains, has lost its length.
    EndBeforeStart, "end_before_start", DataLoss, "events end before they start, by more than rounding explains: how long they took is lost",
        "record again, or read the totals as lower bounds";
    /// Two events of one thread overlap without nesting.
    PartialOverlap, "partial_overlap", Notice, "host events overlap without nesting; they were kept as siblings",
        "time stamps rounded to whole microseconds are the usual cause";
    /// Device events whose launch was not recorded.
    OrphanActivity, "orphan_activity", Notice, "device events have no launch in the trace: their time is counted, their owner is unknown",
        "record CPU activity too; check that CUPTI did not drop records";
    /// Device events that were launched before the recording began.
    LaunchedBeforeWindow, "launched_before_window", Notice, "device events were launched before the window: their time is counted, their owner is unknown",
        "start the profiler before the work, or add a warm-up step to the schedule";
    /// Launch calls that ran and have no device event.
    LaunchWithoutActivity, "launch_without_activity", DataLoss, "launches have no device event: device totals are a lower bound",
        "synchronise before stopping the profiler; check that CUPTI did not drop records";
    /// Launch calls that a graph capture took in instead of running them.
    CapturedLaunch, "captured_launch", Notice, "launches were captured into a device graph, not run: they have no device event",
        "what the graph costs is seen in its replays: record some";
    /// Correlation numbers that several processes share.
    SharedCorrelation, "shared_correlation", Notice,
        "device events have a correlation number that calls of several processes share: only the order of time told whose they are",
        "give the ranks' own files (a directory of them) instead of a merged one";
    /// A device event that starts before the call that launched it.
    StartBeforeLaunch, "start_before_launch", Notice, "device events start before their launch: the clocks are skewed",
        "launch latencies of these events are left out";
    /// Device events of one stream that overlap.
    StreamOverlap, "stream_overlap", Info, "device events overlap another of their stream: busy time is their union, sums of durations exceed it",
        "dependent launches and graph branches overlap by design; elsewhere suspect the clocks";
    /// A device event that runs on over whole successors of its stream.
    ImpossibleDuration, "impossible_duration", Notice, "device events last far beyond their successors on the same stream: their end cannot be right",
        "totals and busy time include it; leave it out with --time or record again";
    /// Events of a category this version does not know.
    UnknownCategory, "unknown_category", Notice, "events of unknown categories were not used", "tell us the category; the rest of the trace is complete";
    /// Kinds of event this version reads past.
    UnusedEventKind, "unused_event_kind", Info, "events of kinds that carry no profile data were read past", "nothing to do";
    /// `External id` repeats the correlation number.
    ExternalIdIsCorrelation, "external_id_is_correlation", Info,
        "`External id` is the correlation number in this trace; operators were matched by time containment", "nothing to do";
    /// A number was not a finite number.
    NotANumber, "not_a_number", Notice, "values that are NaN or infinite were treated as missing", "nothing to do";
    /// A number does not fit.
    NumberTooLarge, "number_too_large", Notice, "times past 64 bits of nanoseconds were treated as missing", "nothing to do";
    /// A rank file of a directory or archive that could not be used.
    UnusableFile, "unusable_file", DataLoss, "a file of the set could not be read", "see its own message; the other files were analysed";
    /// Bytes that are not UTF-8 inside a string.
    BadUtf8, "bad_utf8", Notice, "names that are not UTF-8 were decoded with replacement characters", "nothing to do";
    /// Pages of a database that could not be read.
    DamagedPages, "damaged_pages", DataLoss, "parts of the database are damaged and were skipped; everything else was read",
        "copy the file again, or export it again; until then totals are lower bounds";
    /// A table that is no table.
    NotATable, "not_a_table", DataLoss, "tables of the export are views or virtual tables, which are not run: they were not read",
        "export the report again with `nsys export --type sqlite`";
    /// A value of another type than its column.
    UnexpectedValue, "unexpected_value", Notice, "values of another type than their column's, or longer than a mebibyte, were treated as missing",
        "export the report again with `nsys export --type sqlite`";
    /// Names whose text is not in the file.
    MissingName, "missing_name", Notice, "names refer to texts that the file does not have", "export the report again with `nsys export --type sqlite`";
    /// Device graphs recorded as a whole.
    GraphLevelTrace, "graph_level_trace", DataLoss,
        "CUDA graphs were recorded as one event a launch: the kernels inside them are not in the file, and each launch counts as one piece of work",
        "record again with `nsys profile --cuda-graph-trace=node`";
    /// Ranges that were never closed.
    UnclosedRange, "unclosed_range", Notice, "ranges were never closed: they end with the trace", "close every range, or stop recording outside of them";
    /// Ranges that were open when recording began.
    RangeOpenedBefore, "range_opened_before", Info, "ranges were open when recording began and are missing", "nothing to do";
    /// Operators that are ranges.
    OperatorsFromRanges, "operators_from_ranges", Info,
        "operators are the NVTX ranges that PyTorch's `emit_nvtx` wrote: what it did not announce is missing", "nothing to do";
    /// Records that the recorder or CUPTI lost.
    DroppedRecords, "dropped_records", DataLoss, "records were lost while recording: totals are lower bounds",
        "record a shorter part (`longpole record --range` or `--duration`), on a disk with room";
    /// A recording without its end.
    RecordingCut, "recording_cut", DataLoss, "a recording ends early: what its process did last is missing",
        "let the program end by itself, or read the totals as lower bounds";
    /// A process that could not be recorded.
    CaptureRefused, "capture_refused", DataLoss, "a process could not be recorded", "see what `longpole doctor` says of this machine";
    /// Parts of a recording that this version does not know.
    NewerRecording, "newer_recording", DataLoss, "parts of the recording are of a newer version and were not read", "read it with a newer longpole";
    /// The device's clock and the wall clock ran apart.
    ClockDrift, "clock_drift", Notice, "the clock of the recording and the wall clock ran apart while it was made",
        "durations are not affected; compare times of day with other logs with care";
    /// What recording itself cost.
    RecorderCost, "recorder_cost", Info, "recording took host time of the program", "host times include it; --range makes it less, and --api all more";
    /// The recorder was switched off between the first event and the last.
    RecordedInWindows, "recorded_in_windows", Info, "recorded window by window", "wall and idle time are of the windows alone";
    /// A tree of sums that is not valid JSON from some place on.
    DamagedTree, "damaged_tree", DataLoss, "the profile is not valid JSON from some place on; everything before it was read",
        "write the profile again, or copy it again; until then totals are lower bounds";
    /// A value of a tree of sums that is no such number.
    UnreadableMetric, "unreadable_metric", DataLoss, "values that are not what their name says (no number, negative, too large) were treated as missing",
        "write the profile again; negative bytes or operations are an overflow in the program that counted them";
    /// Sums beside a timeline.
    TotalsBesideTimeline, "totals_beside_timeline", Notice, "files that hold totals only were left out, since others of the set have a timeline",
        "give them alone";
    /// The source has sums alone.
    TotalsOnly, "totals_only", Info, "the source holds totals only, not when anything ran: wall, busy and idle time, steps and the four questions are unknown",
        "record a timeline for these (`longpole formats` lists what has one)";
    /// Clock cycles instead of time.
    CyclesOnly, "cycles_only", Info, "the profile counts clock cycles inside kernels, and has no times", "profile without the instrumentation backend for times";
    /// Data of a recording that no analysis uses.
    UnusedTables, "unused_tables", Info, "the recording holds data that no analysis uses", "nothing to do";
    /// The profiler's own bookkeeping took host time inside the window.
    ProfilerOverhead, "profiler_overhead", Info, "the profiler's own bookkeeping appears inside the window",
        "host times near it include it";
    /// Devices wait for the host, which the profiler slows down.
    CpuBound, "cpu_bound", Info,
        "the window is CPU-bound, and profiling inflates host time, typically 1.2 to 3 times: the GPU idles less in a plain run",
        "time the same work without a profiler before acting on host times";
    /// No operators were recorded.
    NoOperators, "no_operators", Info, "no operators were recorded: device work cannot be attributed to them",
        "add ProfilerActivity.CPU to the profiler's activities";
    /// No device activity was recorded.
    NoDeviceActivity, "no_device_activity", Info, "no device activity was recorded: whether the device was busy cannot be known",
        "add ProfilerActivity.CUDA to the profiler's activities";
}

impl ProblemCode {
    /// Whether a part of a trace that is written as a file of its own lacks the data as well, though nothing in it shows that. Launches
    /// without a device event are in the part, and are counted there.
    pub fn is_kept_by_parts(self) -> bool {
        self.describe().1 == Severity::DataLoss && self != Self::LaunchWithoutActivity
    }
}

/// One kind of trouble, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which kind.
    pub code: ProblemCode,
    /// How often it was seen.
    pub count: u64,
    /// The first example, in a few words, if there is one to show.
    pub example: Option<String>,
    /// Offset of the first example in the (decompressed) input, in bytes.
    pub first_offset: Option<u64>,
    /// A time that goes with it: the time read before a truncated file's cut, the largest skew, the summed overhead.
    pub time: Option<Ns>,
    /// What the count is a part of, where the share matters more than the number.
    pub out_of: Option<u64>,
    /// What the time is a part of.
    pub time_out_of: Option<Ns>,
    /// What the user can do, where that is more than is said of the kind.
    pub hint: Option<&'static str>,
}

/// All trouble of one import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    /// Counts one occurrence; the example is asked for only the first time.
    pub fn add(&mut self, code: ProblemCode, offset: Option<u64>, example: impl FnOnce() -> Option<String>) {
        self.add_many(code, 1, offset, example);
    }

    /// Counts `count` occurrences at once.
    pub fn add_many(&mut self, code: ProblemCode, count: u64, offset: Option<u64>, example: impl FnOnce() -> Option<String>) {
        if count == 0 {
            return;
        }
        if let Some(problem) = self.list.iter_mut().find(|p| p.code == code) {
            problem.count += count;
        } else {
            self.list.push(Problem {
                code,
                count,
                example: example(),
                first_offset: offset,
                time: None,
                out_of: None,
                time_out_of: None,
                hint: None,
            });
            self.list.sort_by_key(|p| p.code);
        }
    }

    /// Notes a time beside a problem already counted; the largest is kept.
    pub fn note_time(&mut self, code: ProblemCode, time: Ns) {
        if let Some(problem) = self.list.iter_mut().find(|p| p.code == code) {
            problem.time = Some(problem.time.map_or(time, |t| t.max(time)));
        }
    }

    /// Notes beside a problem already counted what its count is a part of.
    pub fn note_out_of(&mut self, code: ProblemCode, whole: u64) {
        if let Some(problem) = self.list.iter_mut().find(|p| p.code == code) {
            problem.out_of = Some(problem.out_of.unwrap_or(0) + whole);
        }
    }

    /// Notes beside a problem already counted what its time is a part of.
    pub fn note_time_out_of(&mut self, code: ProblemCode, whole: Ns) {
        if let Some(problem) = self.list.iter_mut().find(|p| p.code == code) {
            problem.time_out_of = Some(problem.time_out_of.unwrap_or(Ns::ZERO) + whole);
        }
    }

    /// Says beside a problem already counted what the user can do, instead of what is said of its kind.
    pub fn note_hint(&mut self, code: ProblemCode, hint: &'static str) {
        if let Some(problem) = self.list.iter_mut().find(|p| p.code == code) {
            problem.hint = Some(hint);
        }
    }

    /// Rewrites the examples, which quote the input.
    pub fn rewrite_examples(&mut self, rewrite: impl Fn(&mut String)) {
        self.list.iter_mut().filter_map(|problem| problem.example.as_mut()).for_each(rewrite);
    }

    /// Adds all of `other`, as if its input followed this one's.
    pub fn extend(&mut self, other: Self) {
        for problem in other.list {
            let (code, time) = (problem.code, problem.time);
            let (out_of, time_out_of, hint) = (problem.out_of, problem.time_out_of, problem.hint);
            self.add_many(code, problem.count, problem.first_offset, || problem.example);
            if let Some(time) = time {
                self.note_time(code, time);
            }
            if let Some(whole) = out_of {
                self.note_out_of(code, whole);
            }
            if let Some(whole) = time_out_of {
                self.note_time_out_of(code, whole);
            }
            if let Some(hint) = hint {
                self.note_hint(code, hint);
            }
        }
    }

    /// The problem of one kind, if it was seen.
    pub fn get(&self, code: ProblemCode) -> Option<&Problem> {
        self.list.iter().find(|p| p.code == code)
    }

    /// All problems, in the order of [`ProblemCode::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }

    /// The worst severity seen.
    pub fn worst(&self) -> Option<Severity> {
        self.list.iter().map(|p| p.code.describe().1).max()
    }

    /// True when nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
