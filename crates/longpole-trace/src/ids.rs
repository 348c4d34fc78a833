//! Typed row and entity handles: indexes that cannot be mixed up.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in its table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of the row at `index`; tables hold fewer than 2^32 - 1 rows (the builder stops there).
            pub const fn from_index(index: usize) -> Self {
                Self(index as u32)
            }
        }
    )*};
}

ids! {
    /// An interned string.
    StrId;
    /// A row of `HostOps`.
    HostOpId;
    /// A row of `ApiCalls`.
    ApiCallId;
    /// A row of `Activities`.
    ActivityId;
    /// A row of `Aggregates`.
    AggregateId;
    /// A row of `Ranges`.
    RangeId;
    /// A process of one recording (one rank file may hold several).
    ProcessId;
    /// A host thread.
    ThreadId;
    /// A device of one recording.
    DeviceId;
    /// A stream of a context of a device.
    LaneId;
    /// An interned launch configuration or transfer.
    DetailId;
    /// An interned (graph, node) pair.
    GraphNodeId;
}
