//! HTTP port for probes and metrics.
//!
//! Never runs a statement: it reports the state of the instance.
//!
//! Start at [`Probes`]; `bounded_connections.rs` bounds the number and the time of connections.

mod bounded_connections;
mod probes_and_metrics;

pub use probes_and_metrics::Probes;
