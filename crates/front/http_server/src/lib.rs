//! HTTP port for probes and metrics.
//!
//! Never runs a statement: it reports the state of the instance.
//!
//! Start at [`Probes`]; `connections.rs` bounds the number and the time of connections.

mod connections;
mod probes;

pub use probes::Probes;
