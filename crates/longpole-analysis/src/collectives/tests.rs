//! Generated ranks.
