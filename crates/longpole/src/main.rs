//! longpole.
fn main() {}
