//! The file as a database: opened so that nothing in it can act, its tables found, its columns known by name.
//!
//! The file is read-only and immutable to SQLite: no journal is played back, no lock taken. Only ordinary tables are read; a view or a
//! virtual table of a known name could run for ever, so it is counted and left alone. No value is longer than [`MAX_VALUE`].

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ProblemCode, Problems};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

/// Longest value that is read, in bytes. Kernel names of templates have a few kilobytes.
const MAX_VALUE: i32 = 1 << 20;
/// Tables looked at. Exports have about a hundred.
const MAX_TABLES: usize = 4096;
/// Columns of a table looked at. The widest of an export has 40.
const MAX_COLUMNS: usize = 512;
/// Page cache of one connection, in KiB. Tables are read once, in order.
const CACHE_KIB: i64 = 1024;

/// An open export.
#[derive(Debug)]
pub(super) struct Database {
    uri: String,
    /// Size of the file.
    pub(super) bytes: u64,
    tables: HashMap<String, Table, FixedState>,
    idle: Mutex<Vec<Connection>>,
}

/// An ordinary table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    /// How its row number is called; absent when it has none.
    pub(super) rowid: Option<&'static str>,
    /// The column that is the row number under another name, which makes looking it up cheap.
    pub(super) key: Option<String>,
}

impl Table {
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|name| name == column)
    }
}

impl Database {
    /// Opens a file. The message of a failure is SQLite's.
    pub(super) fn open(path: &Path, bytes: u64, problems: &mut Problems) -> rusqlite::Result<Self> {
        let mut database = Self { uri: uri(path), bytes, tables: HashMap::default(), idle: Mutex::new(Vec::new()) };
        let connection = database.connect()?;
        database.tables = tables(&connection, problems)?;
        database.give_back(connection);
        Ok(database)
    }

    /// A connection that has read nothing yet.
    pub(super) fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.uri, flags)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        Ok(connection)
    }

    /// A connection for one thread, to be given back.
    pub(super) fn lend(&self) -> rusqlite::Result<Connection> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = idle.map_or_else(|| self.connect(), Ok)?;
        forget(&connection)?;
        Ok(connection)
    }

    pub(super) fn give_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    /// A table, if the export has it.
    pub(super) fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(name)
    }

    /// Names of all tables, sorted.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.tables.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Whether a table has a row.
    pub(super) fn has_rows(&self, table: &Table) -> bool {
        let Ok(connection) = self.lend() else { return false };
        let found = connection.query_row(&format!("SELECT 1 FROM {} NOT INDEXED LIMIT 1", quoted(&table.name)), [], |_| Ok(())).is_ok();
        self.give_back(connection);
        found
    }
}

/// Drops all pages that a connection holds. SQLite checks a page when it first reads it, so what it makes of damage depends on what it holds;
/// and that must not depend on which thread read what before.
pub(super) fn forget(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA shrink_memory")
}

/// Tables whose names say that they hold environments. They are not even listed: secrets are in them.
fn is_environment(name: &str) -> bool {
    name.to_ascii_uppercase().contains("_ENV")
}

fn tables(connection: &Connection, problems: &mut Problems) -> rusqlite::Result<HashMap<String, Table, FixedState>> {
    let mut found = HashMap::default();
    let mut statement =
        connection.prepare("SELECT name, type, upper(substr(sql, 1, 15)) FROM sqlite_master WHERE type IN ('table', 'view')")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if found.len() >= MAX_TABLES {
            break;
        }
        // A name that is not text cannot be one that is read.
        let (Ok(name), Ok(kind)) = (row.get::<_, String>(0), row.get::<_, String>(1)) else { continue };
        if is_environment(&name) {
            continue;
        }
        let is_virtual = row.get::<_, String>(2).is_ok_and(|text| text.starts_with("CREATE VIRTUAL"));
        if kind != "table" || is_virtual {
            if super::tables::is_read(&name) {
                problems.add(ProblemCode::NotATable, None, || Some(name.clone()));
            }
            continue;
        }
        if let Ok(table) = table(connection, &name) {
            found.insert(name, table);
        }
    }
    Ok(found)
}

fn table(connection: &Connection, name: &str) -> rusqlite::Result<Table> {
    let (mut columns, mut keys) = (Vec::new(), Vec::new());
    // Generated columns are not in this list: what they compute could be anything.
    let mut statement = connection.prepare("SELECT name, type, pk FROM pragma_table_info(?1)")?;
    let mut rows = statement.query([name])?;
    while let Some(row) = rows.next()? {
        let Ok(column) = row.get::<_, String>(0) else { continue };
        if row.get::<_, i64>(2).unwrap_or(0) > 0 {
            let is_integer = row.get::<_, String>(1).is_ok_and(|kind| kind.eq_ignore_ascii_case("INTEGER"));
            keys.push((column.clone(), is_integer));
        }
        columns.push(column);
        if columns.len() == MAX_COLUMNS {
            break;
        }
    }
    let free = ["_rowid_", "rowid", "oid"].into_iter().find(|name| !columns.iter().any(|column| column.eq_ignore_ascii_case(name)));
    let rowid = free.filter(|rowid| connection.prepare(&format!("SELECT {rowid} FROM {}", quoted(name))).is_ok());
    let key = match (keys.as_slice(), rowid) {
        ([(column, true)], Some(_)) => Some(column.clone()),
        _ => None,
    };
    Ok(Table { name: name.to_owned(), columns, rowid, key })
}

/// A name as SQL writes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A path as SQLite's URIs write it.
fn uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => uri.push(char::from(*byte)),
            b'\\' if cfg!(windows) => uri.push('/'),
            // Writing to a string cannot fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}
