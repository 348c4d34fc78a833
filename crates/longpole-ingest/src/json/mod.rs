//! A JSON reader for event streams: it finds quotes and brackets at memory speed and lets the caller pick the few values
//! it wants. It never builds a tree, never allocates per value, and reports damage as a value.

mod cursor;
mod number;
mod structural;
mod text;

pub(crate) use cursor::{Cursor, Damage, Entered, Key, Value, ValueKind};
pub(crate) use number::{Decimal, parse_decimal_ns, parse_i64, parse_u64};
pub(crate) use text::{canonical, unescape};
