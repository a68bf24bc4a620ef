//! The HTTP port.
//!
//! Never runs a statement: what it answers is read off the instance.
//!
//! Start at [`Probes`]; `connections.rs` bounds who may ask.

mod connections;
mod probes;

pub use probes::Probes;
