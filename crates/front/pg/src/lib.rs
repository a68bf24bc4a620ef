//! PostgreSQL's wire protocol: bytes to messages, messages to calls of a session, results and errors back to bytes.
//!
//! Never runs a statement: `session` does, and tells its results to a sink that is the client here.
//!
//! Start at `server.rs`, which accepts; `startup.rs` and `authenticate.rs` let a client in, `connection.rs` is its life.

mod authenticate;
mod client;
mod connection;
mod error_message;
mod frontend;
mod parameters;
mod rows;
mod server;
mod startup;
mod transport;

#[cfg(test)]
mod tests;

pub use server::{PgSettings, serve};
