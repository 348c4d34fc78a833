//! What is recorded: one struct a family, every field a column.
//!
//! To add a field, append it to its family here, and nowhere else than at the end: the position of a field is its column. A field that not
//! every process or driver gives is an `Option`.

use std::fmt;

/// A text of a recording, by number: given by [`crate::Writer::string`], looked up with [`crate::Strings::get`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StringId(pub u32);

impl StringId {
    /// No text.
    pub const NONE: Self = Self(0);

    /// Whether there is a text.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
}

/// A field that can be stored in a column.
pub(crate) trait Field: Copy {
    fn to_word(self) -> u64;
    fn from_word(word: u64) -> Self;
}

macro_rules! integer_fields {
    ($($type:ty),*) => {
        $(impl Field for $type {
            fn to_word(self) -> u64 {
                u64::from(self)
            }
            // A number that does not fit, which only a damaged or hostile file has, is cut off at the type's end.
            fn from_word(word: u64) -> Self {
                Self::try_from(word).unwrap_or(Self::MAX)
            }
        })*
    };
}
integer_fields!(u8, u16, u32);

impl Field for u64 {
    fn to_word(self) -> u64 {
        self
    }
    fn from_word(word: u64) -> Self {
        word
    }
}

impl Field for i32 {
    fn to_word(self) -> u64 {
        u64::from(self.cast_unsigned())
    }
    fn from_word(word: u64) -> Self {
        (word as u32).cast_signed()
    }
}

impl Field for StringId {
    fn to_word(self) -> u64 {
        u64::from(self.0)
    }
    fn from_word(word: u64) -> Self {
        Self(u32::from_word(word))
    }
}

impl<T: Field> Field for Option<T> {
    // The largest 64-bit number has no successor; it is no time, handle or count that a driver gives, and reads back as absent.
    fn to_word(self) -> u64 {
        self.map_or(0, |value| value.to_word().wrapping_add(1))
    }
    fn from_word(word: u64) -> Self {
        word.checked_sub(1).map(T::from_word)
    }
}

/// A record of a family.
pub trait Record: Copy + fmt::Debug + PartialEq {
    /// Its family.
    const FAMILY: Family;
    /// Its columns.
    const COLUMNS: usize;
    /// Appends its fields, one number each.
    fn push_words(&self, words: &mut Vec<u64>);
    /// Builds it from the numbers of its fields; what is missing is zero or absent.
    fn from_words(words: &[u64]) -> Self;
}

macro_rules! families {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $method:ident, $plural:literal {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })*) => {
        /// The families of records, with the numbers they have as kinds of frames.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Family {
            $($(#[$doc])* $name = $number,)*
        }

        impl Family {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The family with a number.
            pub const fn from_number(number: u16) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Its number.
            pub const fn number(self) -> u16 {
                self as u16
            }

            /// What its records are called, in the plural.
            pub const fn plural(self) -> &'static str {
                match self {
                    $(Self::$name => $plural,)*
                }
            }

            /// Its columns.
            pub(crate) const fn columns(self) -> usize {
                match self {
                    $(Self::$name => $name::COLUMNS,)*
                }
            }
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl Record for $name {
                const FAMILY: Family = Family::$name;
                const COLUMNS: usize = [$(stringify!($field)),*].len();

                fn push_words(&self, words: &mut Vec<u64>) {
                    words.extend([$(self.$field.to_word()),*]);
                }

                fn from_words(words: &[u64]) -> Self {
                    let mut words = words.iter().copied();
                    Self { $($field: Field::from_word(words.next().unwrap_or(0)),)* }
                }
            }
        )*

        impl<W: crate::Sink> crate::Writer<W> {
            $(
                $(#[$doc])*
                pub fn $method(&mut self, record: &$name) {
                    self.record(record);
                }
            )*
        }
    };
}

families! {
    /// A kernel that ran.
    Kernel = 16, kernel, "kernels" {
        /// Start on the device, ns.
        start: u64,
        /// End on the device, ns.
        end: u64,
        /// When it was put into the command buffer, ns.
        queued: Option<u64>,
        /// When it was submitted to the device, ns.
        submitted: Option<u64>,
        /// Device ordinal.
        device: u32,
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Number it shares with the call that launched it.
        correlation: u32,
        /// Its name, mangled or not as the driver gives it.
        name: StringId,
        /// Blocks in x.
        grid_x: u32,
        /// Blocks in y.
        grid_y: u32,
        /// Blocks in z.
        grid_z: u32,
        /// Threads of a block in x.
        block_x: u32,
        /// Threads of a block in y.
        block_y: u32,
        /// Threads of a block in z.
        block_z: u32,
        /// Blocks of a cluster in x; zero without clusters.
        cluster_x: u32,
        /// Blocks of a cluster in y.
        cluster_y: u32,
        /// Blocks of a cluster in z.
        cluster_z: u32,
        /// Registers a thread.
        registers: u32,
        /// Static shared memory of a block, bytes.
        static_shared: u32,
        /// Dynamic shared memory of a block, bytes.
        dynamic_shared: u32,
        /// Local memory a thread, bytes.
        local: u32,
        /// Node of the graph it was launched from.
        graph_node: Option<u64>,
        /// Graph (executable) it was launched from.
        graph: Option<u32>,
        /// Hardware channel it ran on.
        channel: Option<u32>,
    }

    /// A copy between memories, of one device or with the host.
    Memcpy = 17, memcpy, "copies" {
        /// Start on the device, ns.
        start: u64,
        /// End on the device, ns.
        end: u64,
        /// Bytes copied.
        bytes: u64,
        /// CUPTI's copy kind: 1 host to device, 2 device to host, 3 host to array, 4 array to host, 5 array to array, 6 array to device,
        /// 7 device to array, 8 device to device, 9 host to host, 10 peer to peer.
        kind: u8,
        /// CUPTI's memory kind of the source: 1 pageable, 2 pinned, 3 device, 4 array, 5 managed, 6 device static, 7 managed static.
        source: u8,
        /// CUPTI's memory kind of the destination.
        destination: u8,
        /// Device ordinal.
        device: u32,
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Number it shares with the call that launched it.
        correlation: u32,
        /// Node of the graph it was launched from.
        graph_node: Option<u64>,
        /// Graph it was launched from.
        graph: Option<u32>,
        /// Hardware channel it ran on.
        channel: Option<u32>,
    }

    /// Memory that was set.
    Memset = 18, memset, "sets" {
        /// Start on the device, ns.
        start: u64,
        /// End on the device, ns.
        end: u64,
        /// Bytes set.
        bytes: u64,
        /// The value they were set to.
        value: u32,
        /// CUPTI's memory kind.
        memory: u8,
        /// Device ordinal.
        device: u32,
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Number it shares with the call that launched it.
        correlation: u32,
        /// Node of the graph it was launched from.
        graph_node: Option<u64>,
        /// Graph it was launched from.
        graph: Option<u32>,
        /// Hardware channel it ran on.
        channel: Option<u32>,
    }

    /// A copy between two devices.
    PeerCopy = 19, peer_copy, "copies between devices" {
        /// Start on the device, ns.
        start: u64,
        /// End on the device, ns.
        end: u64,
        /// Bytes copied.
        bytes: u64,
        /// Device whose stream ran it.
        device: u32,
        /// Context of the stream.
        context: u32,
        /// Stream.
        stream: u32,
        /// Device copied from.
        source_device: u32,
        /// Device copied to.
        destination_device: u32,
        /// Number it shares with the call that launched it.
        correlation: u32,
        /// Node of the graph it was launched from.
        graph_node: Option<u64>,
        /// Graph it was launched from.
        graph: Option<u32>,
        /// Hardware channel it ran on.
        channel: Option<u32>,
    }

    /// A call of the CUDA runtime or driver.
    Api = 20, api, "API calls" {
        /// Entry, ns.
        start: u64,
        /// Return, ns.
        end: u64,
        /// 1 runtime, 2 driver.
        domain: u8,
        /// CUPTI's number of the function.
        cbid: u32,
        /// Name of the function, with its version suffix as CUPTI gives it.
        name: StringId,
        /// Thread that called, as the operating system numbers it.
        tid: u32,
        /// Number it shares with the work that it launched.
        correlation: u32,
        /// What it returned.
        result: i32,
    }

    /// A host thread or a stream that waited.
    Sync = 21, sync, "waits" {
        /// Start, ns.
        start: u64,
        /// End, ns.
        end: u64,
        /// CUPTI's type: 1 event synchronize, 2 stream wait event, 3 stream synchronize, 4 context synchronize.
        kind: u8,
        /// Number it shares with the call that waited.
        correlation: u32,
        /// Context.
        context: u32,
        /// Stream that was waited for, or (stream wait event) that waits.
        stream: Option<u32>,
        /// Event that was waited for.
        event: Option<u32>,
        /// Which record of the event was waited for, on drivers that tell them apart.
        event_sync: Option<u64>,
    }

    /// Time that the driver or the profiler itself took.
    Overhead = 22, overhead, "overheads" {
        /// Start, ns.
        start: u64,
        /// End, ns.
        end: u64,
        /// CUPTI's kind: 1 driver compiler; shifted left by 16: 1 buffer flush, 2 instrumentation, 3 resource, 4 module loading, 5 lazy
        /// function loading, 6 command buffer full, 7 activity buffer request, 8 unified memory activity init.
        kind: u32,
        /// Thread it happened on, where it is of a thread.
        tid: Option<u32>,
        /// Number it shares with a call.
        correlation: Option<u32>,
    }

    /// A node of a graph that was created (by capture or by hand) or copied into another graph (made executable, cloned).
    GraphNode = 23, graph_node, "graph nodes" {
        /// The node.
        node: u64,
        /// When, ns.
        time: u64,
        /// Thread that did it.
        tid: u32,
        /// Node it is a copy of; absent when it was created.
        original: Option<u64>,
        /// Graph it is part of.
        graph: Option<u32>,
        /// The call inside which it was created.
        correlation: Option<u32>,
    }

    /// An NVTX call.
    Nvtx = 24, nvtx, "NVTX events" {
        /// When, ns.
        time: u64,
        /// 1 push, 2 pop, 3 start, 4 end, 5 mark; see the constants of [`Nvtx`].
        kind: u8,
        /// Thread that called.
        tid: u32,
        /// Name of its domain; none for the default domain.
        domain: StringId,
        /// Its message; none for pops and ends.
        name: StringId,
        /// Number that ties an end to its start.
        range: Option<u64>,
        /// Its payload as text; the recorder leaves it out, and what follows.
        payload: StringId,
        /// Its colour as ARGB.
        color: Option<u32>,
        /// Number of its category.
        category: Option<u32>,
        /// Name of its category.
        category_name: StringId,
    }

    /// An event that was recorded on a stream.
    EventRecord = 25, event_record, "recorded events" {
        /// The event.
        event: u32,
        /// Context.
        context: u32,
        /// Stream it was recorded on.
        stream: u32,
        /// Number of the call that recorded it.
        correlation: u32,
        /// Which record of the event this is, on drivers that tell them apart.
        event_sync: Option<u64>,
    }

    /// The same moment on all clocks. Written at both ends and every minute.
    Clock = 32, clock, "clock readings" {
        /// CUPTI's clock, ns.
        cupti: u64,
        /// `CLOCK_REALTIME`, ns.
        realtime: u64,
        /// `CLOCK_MONOTONIC`, ns.
        monotonic: u64,
        /// How far apart the readings may be: the time between the first and the last of them, ns.
        uncertainty: u64,
    }

    /// A device of the process.
    Device = 33, device, "devices" {
        /// Ordinal, as activities name it.
        device: u32,
        /// Product name.
        name: StringId,
        /// First half of its UUID, big-endian as printed.
        uuid_high: Option<u64>,
        /// Second half.
        uuid_low: Option<u64>,
        /// Multiprocessors.
        sm_count: Option<u32>,
        /// Memory, bytes.
        memory_bytes: Option<u64>,
        /// Compute capability, major.
        compute_major: Option<u32>,
        /// Compute capability, minor.
        compute_minor: Option<u32>,
        /// Clock of the multiprocessors, kHz.
        core_clock_khz: Option<u32>,
        /// Clock of the memory, kHz.
        memory_clock_khz: Option<u32>,
        /// Width of the memory's bus, bits.
        memory_bus_bits: Option<u32>,
        /// Second-level cache, bytes.
        l2_bytes: Option<u64>,
        /// Threads that fit on one multiprocessor.
        max_threads_per_sm: Option<u32>,
        /// Registers of one multiprocessor.
        registers_per_sm: Option<u32>,
        /// Shared memory of one multiprocessor, bytes.
        shared_bytes_per_sm: Option<u64>,
        /// Threads of a warp.
        warp_size: Option<u32>,
    }

    /// The process.
    Process = 34, process, "processes" {
        /// Its id.
        pid: u32,
        /// Its parent's id.
        parent: u32,
        /// Base name of its executable.
        executable: StringId,
        /// Its command line, arguments parted by spaces; only on request, since it may hold secrets.
        command_line: StringId,
        /// Version of the recorder.
        recorder: StringId,
        /// CUDA version that the driver supports, as `cuDriverGetVersion` packs it (13000 is 13.0).
        cuda_driver: Option<u32>,
        /// CUDA runtime version, packed alike.
        cuda_runtime: Option<u32>,
        /// CUPTI's version, as `cuptiGetVersion` gives it.
        cupti: Option<u32>,
        /// Which API calls are recorded: 1 those that launch, copy, wait or allocate, 2 all.
        api: u8,
        /// Which part is recorded: none for all, else `profiler` or `nvtx:NAME`.
        range: StringId,
        /// Delay before recording, ms.
        delay_ms: Option<u64>,
        /// Longest time recorded, ms.
        duration_ms: Option<u64>,
        /// Its rank in a distributed run, as its launcher told it.
        rank: Option<u32>,
        /// Ranks of that run.
        world_size: Option<u32>,
    }

    /// A thread's name.
    Thread = 35, thread, "threads" {
        /// Thread, as the operating system numbers it.
        tid: u32,
        /// Its name.
        name: StringId,
    }

    /// A context's device.
    Context = 36, context, "contexts" {
        /// The context.
        context: u32,
        /// Its device.
        device: u32,
        /// Its default stream.
        null_stream: Option<u32>,
    }

    /// Records that were lost. Each counts losses since the one before.
    Dropped = 37, dropped, "losses" {
        /// Number of their family; zero when not known.
        family: u16,
        /// How many.
        count: u64,
        /// Why; see the constants of [`Dropped`].
        reason: u8,
        /// When it was noticed, ns.
        time: u64,
    }

    /// What recording has cost so far; the last one of a recording counts.
    Cost = 38, cost, "costs" {
        /// Calls of the recorder by CUPTI and NVTX on the program's threads.
        callbacks: u64,
        /// Time spent in them, ns.
        callback_ns: u64,
        /// Pages of records that were written.
        pages: u64,
        /// Time spent decoding, packing and writing them, ns, on the recorder's own thread.
        page_ns: u64,
        /// Bytes written.
        bytes: u64,
        /// Time until recording was set up, ns, on the program's thread.
        setup_ns: u64,
        /// Time spent flushing when the program ended, ns.
        exit_ns: u64,
        /// Most memory that buffers took at a time, bytes.
        buffer_bytes: u64,
    }

    /// Nothing is recorded, and why.
    Refused = 39, refused, "refusals" {
        /// Why; see the constants of [`Refused`].
        reason: u8,
        /// The result code of the call that failed.
        code: i32,
        /// More of it, such as who holds the subscription, or which files were tried.
        detail: StringId,
        /// When, ns.
        time: u64,
    }

    /// Recording was switched on or off within the process.
    RangeState = 40, range_state, "switches" {
        /// 1 on, 0 off.
        on: u8,
        /// Why; see the constants of [`RangeState`].
        cause: u8,
        /// When, ns.
        time: u64,
        /// Thread that did it.
        tid: u32,
        /// Name of the range.
        name: StringId,
    }

    /// The last record of a process that ended in order.
    End = 41, end, "ends" {
        /// When, ns.
        time: u64,
        /// Its exit status, when known.
        status: Option<i32>,
    }
}

impl Nvtx {
    /// A range of the thread begins.
    pub const PUSH: u8 = 1;
    /// The innermost range of the thread (and domain) ends.
    pub const POP: u8 = 2;
    /// A range of the process begins.
    pub const START: u8 = 3;
    /// A range of the process ends, on whichever thread.
    pub const END: u8 = 4;
    /// A moment.
    pub const MARK: u8 = 5;
}

impl Api {
    /// A call of the runtime.
    pub const RUNTIME: u8 = 1;
    /// A call of the driver.
    pub const DRIVER: u8 = 2;
}

impl Process {
    /// Calls that launch, copy, wait or allocate were recorded.
    pub const API_LAUNCH: u8 = 1;
    /// All calls were recorded.
    pub const API_ALL: u8 = 2;
}

impl Sync {
    /// The host waited for an event.
    pub const EVENT: u8 = 1;
    /// A stream was told to wait for an event.
    pub const STREAM_WAIT_EVENT: u8 = 2;
    /// The host waited for a stream.
    pub const STREAM: u8 = 3;
    /// The host waited for a context.
    pub const CONTEXT: u8 = 4;
}

impl Dropped {
    /// CUPTI had no buffer for them.
    pub const CUPTI: u8 = 1;
    /// The recorder's queue was full.
    pub const QUEUE: u8 = 2;
    /// They could not be written (disk full).
    pub const WRITE: u8 = 3;
    /// They are of a kind that the recorder does not know.
    pub const UNKNOWN_KIND: u8 = 4;
    /// They were damaged, such as a buffer cut inside a record.
    pub const DAMAGED: u8 = 5;
}

impl Refused {
    /// No CUPTI library was found.
    pub const NO_CUPTI: u8 = 1;
    /// Another profiler holds the only subscription.
    pub const SUBSCRIBER_TAKEN: u8 = 2;
    /// No CUDA driver, or no device.
    pub const NO_DRIVER: u8 = 3;
    /// CUPTI does not fit the driver.
    pub const VERSION: u8 = 4;
    /// The driver lets only administrators profile.
    pub const NOT_PERMITTED: u8 = 5;
    /// A call of CUPTI failed for another reason.
    pub const FAILED: u8 = 6;
}

impl RangeState {
    /// The program called `cudaProfilerStart` or `cudaProfilerStop`.
    pub const PROFILER: u8 = 1;
    /// The NVTX range that was asked for opened or closed.
    pub const NVTX: u8 = 2;
    /// The delay or the duration that was asked for was over.
    pub const TIMER: u8 = 3;
}
