//! A JSON reader for event streams: it finds structure at memory speed and lets the caller pick the few values it wants.
//! It never builds a tree, never allocates per value, and reports damage as a value.
//!
//! Two readers over one kind of index: [`Tokens`] for events, which are many and of one shape, and [`Cursor`] for the
//! metadata around them, which may be anything.

mod cursor;
mod digits;
mod number;
mod positions;
pub(crate) mod strict;
mod structural;
mod text;
mod tokens;

pub(crate) use cursor::{Cursor, Damage, Entered, Key, Value, ValueKind};
pub(crate) use number::{Decimal, parse_decimal_ns, parse_i64, parse_scaled, parse_u64};
pub(crate) use positions::END;
pub(crate) use text::{canonical, unescape};
pub(crate) use tokens::{Repeated, Tokens};
