//! From a cubin and per-instruction samples to lines and instructions of the source.
