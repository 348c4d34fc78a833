//! Small exports of every schema: tables appear with their first row, and have the columns of their version.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

/// A schema's number.
pub(crate) type Version = (u32, u32, u32);

/// All that are known; the first stands for exports of 2021, which say nothing of themselves.
pub(crate) const VERSIONS: [Version; 14] = [
    (1, 0, 0),
    (2, 9, 1),
    (3, 0, 0),
    (3, 1, 2),
    (3, 1, 7),
    (3, 4, 0),
    (3, 6, 0),
    (3, 7, 2),
    (3, 13, 2),
    (3, 16, 1),
    (3, 17, 2),
    (3, 23, 3),
    (3, 24, 14),
    (3, 25, 0),
];

/// A column, and the version that brought it.
type Column = (&'static str, Version);
const ALWAYS: Version = (0, 0, 0);

const fn old(name: &'static str) -> Column {
    (name, ALWAYS)
}

/// Tables and columns, in an order of their own: they are found by name.
const TABLES: &[(&str, &[Column])] = &[
    ("StringIds", &[old("id"), old("value")]),
    ("PROCESSES", &[old("globalPid"), old("pid"), old("name")]),
    ("ThreadNames", &[old("nameId"), old("priority"), old("globalTid")]),
    (
        "TARGET_INFO_GPU",
        &[old("id"), old("name"), old("totalMemory"), old("smCount"), ("cuDevice", (3, 0, 0)), old("computeMajor"), old("computeMinor")],
    ),
    ("TARGET_INFO_CUDA_DEVICE", &[old("gpuId"), old("cudaId"), old("pid")]),
    ("TARGET_INFO_CUDA_CONTEXT_INFO", &[old("nullStreamId"), old("processId"), old("deviceId"), old("contextId")]),
    ("TARGET_INFO_SESSION_START_TIME", &[old("utcEpochNs"), ("systemClockNs", (3, 24, 0))]),
    ("TARGET_INFO_SYSTEM_ENV", &[old("name"), old("nameEnum"), old("value")]),
    (
        "CUPTI_ACTIVITY_KIND_KERNEL",
        &[
            old("start"),
            old("end"),
            old("deviceId"),
            old("contextId"),
            ("greenContextId", (3, 7, 0)),
            old("streamId"),
            old("correlationId"),
            old("globalPid"),
            old("demangledName"),
            old("shortName"),
            ("mangledName", (2, 0, 0)),
            old("registersPerThread"),
            old("gridX"),
            old("gridY"),
            old("gridZ"),
            old("blockX"),
            old("blockY"),
            old("blockZ"),
            old("staticSharedMemory"),
            old("dynamicSharedMemory"),
            ("graphNodeId", (2, 0, 0)),
            ("graphId", (3, 24, 0)),
            ("clusterX", (3, 24, 0)),
            ("tensorSizeMinusOneElements", (3, 25, 0)),
        ],
    ),
    (
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        &[
            old("start"),
            old("end"),
            old("deviceId"),
            old("contextId"),
            old("streamId"),
            old("correlationId"),
            old("globalPid"),
            old("bytes"),
            old("copyKind"),
            old("srcKind"),
            old("dstKind"),
            ("graphNodeId", (2, 0, 0)),
            ("copyCount", (3, 24, 0)),
        ],
    ),
    (
        "CUPTI_ACTIVITY_KIND_MEMSET",
        &[
            old("start"),
            old("end"),
            old("deviceId"),
            old("contextId"),
            old("streamId"),
            old("correlationId"),
            old("globalPid"),
            old("value"),
            old("bytes"),
            old("memKind"),
        ],
    ),
    (
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        &[
            old("start"),
            old("end"),
            old("deviceId"),
            old("contextId"),
            old("streamId"),
            old("correlationId"),
            old("globalPid"),
            old("graphId"),
            old("graphExecId"),
        ],
    ),
    (
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        &[
            old("start"),
            old("end"),
            old("eventClass"),
            old("globalTid"),
            old("correlationId"),
            old("nameId"),
            old("returnValue"),
            ("callchainId", (2, 0, 0)),
        ],
    ),
    (
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        &[
            old("start"),
            old("end"),
            old("deviceId"),
            old("contextId"),
            old("streamId"),
            old("correlationId"),
            old("globalPid"),
            old("syncType"),
            old("eventId"),
            ("eventSyncId", (3, 16, 0)),
        ],
    ),
    (
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
        &[old("streamId"), old("correlationId"), old("globalPid"), old("eventId"), ("eventSyncId", (3, 16, 0))],
    ),
    (
        "NVTX_EVENTS",
        &[
            old("start"),
            old("end"),
            old("eventType"),
            old("rangeId"),
            old("text"),
            old("globalTid"),
            old("endGlobalTid"),
            old("textId"),
            old("domainId"),
            old("uint64Value"),
            ("binaryData", (3, 6, 0)),
        ],
    ),
    ("PROFILER_OVERHEAD", &[old("start"), old("end"), old("globalTid"), old("nameId")]),
    ("OSRT_API", &[old("start"), old("end"), old("eventClass"), old("globalTid"), old("correlationId"), old("nameId"), old("returnValue")]),
    ("COMPOSITE_EVENTS", &[old("id"), old("start"), old("cpu"), old("threadState"), old("globalTid"), old("cpuCycles")]),
    (
        "SAMPLING_CALLCHAINS",
        &[old("id"), old("symbol"), old("module"), old("kernelMode"), old("thumbCode"), old("unresolved"), old("stackDepth")],
    ),
    ("SCHED_EVENTS", &[old("start"), old("cpu"), old("isSchedIn"), old("globalTid")]),
];

/// Values of some columns.
pub(crate) type Row<'r> = &'r [(&'r str, Value)];

/// A number as a value.
pub(crate) fn int(value: i64) -> Value {
    Value::Integer(value)
}

/// An export that is being made.
pub(crate) struct Export {
    pub(crate) connection: Connection,
    version: Version,
}

impl Export {
    pub(crate) fn new(path: &Path, version: Version) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "journal_mode", "OFF").unwrap();
        connection.pragma_update(None, "synchronous", "OFF").unwrap();
        let about = if version >= (3, 4, 0) { Some("META_DATA_EXPORT") } else { Some("EXPORT_META_DATA").filter(|_| version >= (2, 0, 0)) };
        if let Some(about) = about {
            let (major, minor, micro) = version;
            connection.execute_batch(&format!("CREATE TABLE {about} (name TEXT, value TEXT); INSERT INTO {about} VALUES ('EXPORT_SCHEMA_VERSION', '{major}.{minor}.{micro}')")).unwrap();
        }
        Self { connection, version }
    }

    /// Makes a table without rows, as exports that are not lazy have them.
    pub(crate) fn table(&self, name: &str) -> Vec<&'static str> {
        let (_, columns) = TABLES.iter().find(|(table, _)| *table == name).unwrap();
        let columns: Vec<&str> = columns.iter().filter(|(_, since)| *since <= self.version).map(|(column, _)| *column).collect();
        let typed: Vec<String> = columns
            .iter()
            .map(|column| match *column {
                "id" if name == "StringIds" && self.version >= (2, 0, 0) => "id INTEGER NOT NULL PRIMARY KEY".to_owned(),
                "text" | "value" | "name" => format!("\"{column}\" TEXT"),
                _ => format!("\"{column}\" INTEGER"),
            })
            .collect();
        self.connection.execute_batch(&format!("CREATE TABLE IF NOT EXISTS {name} ({})", typed.join(", "))).unwrap();
        columns
    }

    /// All tables that are known, without rows.
    pub(crate) fn all_tables(&self) {
        for (name, _) in TABLES {
            self.table(name);
        }
    }

    /// Adds a row; values of columns that this version lacks are dropped.
    pub(crate) fn add(&self, table: &str, row: Row<'_>) {
        let columns = self.table(table);
        let row: Vec<_> = row.iter().filter(|(column, _)| columns.contains(column)).collect();
        let names: Vec<String> = row.iter().map(|(column, _)| format!("\"{column}\"")).collect();
        let sql = format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), vec!["?"; row.len()].join(", "));
        self.connection.execute(&sql, params_from_iter(row.iter().map(|(_, value)| value))).unwrap();
    }

    /// The number of a text.
    pub(crate) fn text(&self, text: &str) -> i64 {
        self.table("StringIds");
        let found = self.connection.query_row("SELECT id FROM StringIds WHERE value = ?", [text], |row| row.get(0));
        found.unwrap_or_else(|_| {
            let next: i64 = self.connection.query_row("SELECT 100 + 7 * count(*) FROM StringIds", [], |row| row.get(0)).unwrap();
            self.add("StringIds", &[("id", int(next)), ("value", Value::Text(text.to_owned()))]);
            next
        })
    }

    pub(crate) fn call(&self, thread: i64, name: &str, correlation: i64, [start, end]: [i64; 2]) {
        let name = int(self.text(name));
        let row = [
            ("start", int(start)),
            ("end", int(end)),
            ("globalTid", int(thread)),
            ("correlationId", int(correlation)),
            ("nameId", name),
            ("eventClass", int(0)),
        ];
        self.add("CUPTI_ACTIVITY_KIND_RUNTIME", &row);
    }

    pub(crate) fn kernel(&self, process: i64, device: i64, name: &str, correlation: i64, [start, end]: [i64; 2]) {
        let short = int(self.text(name.split('<').next().unwrap_or(name)));
        let name = int(self.text(name));
        let mut row = Self::place(process, device, correlation, [start, end]).to_vec();
        row.extend([("demangledName", name), ("shortName", short), ("gridX", int(64)), ("gridY", int(2)), ("gridZ", int(1))]);
        row.extend([("blockX", int(128)), ("blockY", int(1)), ("blockZ", int(1)), ("registersPerThread", int(40))]);
        row.extend([("staticSharedMemory", int(1024)), ("dynamicSharedMemory", int(512)), ("graphId", int(0))]);
        self.add("CUPTI_ACTIVITY_KIND_KERNEL", &row);
    }

    /// Columns that all device work has.
    pub(crate) fn place(process: i64, device: i64, correlation: i64, [start, end]: [i64; 2]) -> [(&'static str, Value); 7] {
        let process = int(process & !0xFF_FFFF);
        let (device, stream) = (int(device), int(7));
        [
            ("start", int(start)),
            ("end", int(end)),
            ("deviceId", device),
            ("contextId", int(1)),
            ("streamId", stream),
            ("correlationId", int(correlation)),
            ("globalPid", process),
        ]
    }

    /// A range with its text in place.
    pub(crate) fn range(&self, thread: i64, text: &str, start: i64, end: Option<i64>) {
        let end = end.map_or(Value::Null, int);
        let row = [
            ("start", int(start)),
            ("end", end),
            ("eventType", int(59)),
            ("text", Value::Text(text.to_owned())),
            ("globalTid", int(thread)),
            ("domainId", int(0)),
        ];
        self.add("NVTX_EVENTS", &row);
    }

    /// A range whose text is registered.
    pub(crate) fn registered_range(&self, thread: i64, text: &str, domain: i64, [start, end]: [i64; 2]) {
        let text = int(self.text(text));
        let row = [
            ("start", int(start)),
            ("end", int(end)),
            ("eventType", int(59)),
            ("textId", text),
            ("globalTid", int(thread)),
            ("domainId", int(domain)),
        ];
        self.add("NVTX_EVENTS", &row);
    }

    /// A call into the operating system's libraries.
    pub(crate) fn os_call(&self, thread: i64, name: &str, [start, end]: [i64; 2]) {
        let name = int(self.text(name));
        self.add("OSRT_API", &[("start", int(start)), ("end", int(end)), ("nameId", name), ("globalTid", int(thread))]);
    }

    /// A sample, with its functions from the innermost to the outermost; those without a name are somewhere in `/lib/libcuda.so.1`.
    pub(crate) fn sample(&self, thread: i64, id: i64, start: i64, stack: &[Option<&str>]) {
        self.add("COMPOSITE_EVENTS", &[("id", int(id)), ("start", int(start)), ("cpu", int(3)), ("globalTid", int(thread))]);
        // Outermost first: the order of rows says nothing.
        for (depth, function) in stack.iter().enumerate().rev() {
            let symbol = int(self.text(function.unwrap_or("0x7f00deadbeef")));
            let module = int(self.text(if function.is_some() { "/usr/bin/python3" } else { "/lib/libcuda.so.1" }));
            let row = [
                ("id", int(id)),
                ("symbol", symbol),
                ("module", module),
                ("unresolved", int(i64::from(function.is_none()))),
                ("stackDepth", int(depth as i64)),
            ];
            self.add("SAMPLING_CALLCHAINS", &row);
        }
    }

    /// Kernels by demangled name, as a plain query finds them: count, sum, shortest, longest, and all durations in order.
    pub(crate) fn kernels(connection: &Connection) -> std::collections::BTreeMap<String, Vec<i64>> {
        let sql = "SELECT CAST(value AS BLOB), \"end\" - start FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON StringIds.id = demangledName ORDER BY 1, 2";
        let mut found = std::collections::BTreeMap::<String, Vec<i64>>::new();
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?))).unwrap();
        for (name, dur) in rows.map(Result::unwrap) {
            found.entry(String::from_utf8_lossy(&name).into_owned()).or_default().push(dur);
        }
        found
    }
}

/// A thread of a process, as exports number them.
pub(crate) fn thread(pid: i64, tid: i64) -> i64 {
    1 << 48 | pid << 24 | tid
}

/// Two decode steps of three kernels, a copy and a fill, under nested ranges, from `base` on. Correlation numbers begin with `first`.
pub(crate) fn decode(export: &Export, thread: i64, device: i64, base: i64, first: i64) {
    let mut now = base;
    let mut number = first;
    for step in 0..2 {
        let began = now;
        let mut host = now + 10;
        for (at, name) in ["gemm<float>", "softmax<float>", "gemm<float>"].into_iter().enumerate() {
            export.call(thread, "cudaLaunchKernel_v7000", number, [host, host + 5]);
            let start = host + 20 + 3 * at as i64;
            export.kernel(thread, device, name, number, [start, start + 30 + 5 * at as i64 + step]);
            number += 1;
            host += 100;
        }
        export.registered_range(thread, "layer", 0, [began + 5, host - 50]);
        export.call(thread, "cudaMemcpyAsync_v3020", number, [host, host + 5]);
        let mut row = Export::place(thread, device, number, [host + 10, host + 25]).to_vec();
        row.extend([("bytes", int(4096)), ("copyKind", int(1)), ("srcKind", int(0)), ("dstKind", int(2))]);
        export.add("CUPTI_ACTIVITY_KIND_MEMCPY", &row);
        export.call(thread, "cudaMemsetAsync_v3020", number + 1, [host + 30, host + 35]);
        let mut row = Export::place(thread, device, number + 1, [host + 40, host + 45]).to_vec();
        row.extend([("bytes", int(256)), ("value", int(0)), ("memKind", int(2))]);
        export.add("CUPTI_ACTIVITY_KIND_MEMSET", &row);
        number += 2;
        now = host + 60;
        export.range(thread, "decode_step", began, Some(now));
    }
}
