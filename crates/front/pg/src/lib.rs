//! PostgreSQL's wire protocol: decodes messages, calls a session, and encodes its results and errors.
//!
//! Never runs a statement: `session` does, and sends its results to a `ResultSink`, which is the client here.
//!
//! Files in reading order:
//!
//! - `server.rs`: accepts connections.
//! - `startup.rs`, `authenticate.rs`: encryption, startup packet and authentication.
//! - `connection.rs`: serves an authenticated client.
//! - `frontend.rs`, `transport.rs`: messages of the client, and its socket with buffers.
//! - `client.rs`, `rows.rs`, `error_message.rs`, `parameters.rs`: results, errors and changed settings to the client.

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
