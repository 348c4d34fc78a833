//! Each smell on a trace that shows it, and on one that nearly does.
