//! PostgreSQL's wire protocol: decodes messages, calls a session, and encodes its results and errors.
//!
//! Never runs a statement: `session` does, and sends its results to a `ResultSink`, which is the client here.
//!
//! Files in reading order:
//!
//! - `server.rs`: accepts connections.
//! - `startup.rs`, `authenticate.rs`: encryption, startup packet and authentication.
//! - `connection.rs`: serves an authenticated client.
//! - `frontend_messages.rs`, `buffered_transport.rs`: messages of the client, and its socket with buffers.
//! - `client_result_sink.rs`, `data_rows.rs`, `error_message.rs`, `parameter_status.rs`: results, errors and changed
//!   settings to the client.

mod authenticate;
mod buffered_transport;
mod client_result_sink;
mod connection;
mod data_rows;
mod error_message;
mod frontend_messages;
mod parameter_status;
mod server;
mod startup;

#[cfg(test)]
mod tests;

pub use server::{PgSettings, serve};
