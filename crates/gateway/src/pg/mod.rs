//! The PostgreSQL front door: bytes to messages, messages to session calls, results and errors back to bytes.
//!
//! `server.rs` accepts, `startup.rs` and `authenticate.rs` let a client in, `connection.rs` is its life.

mod authenticate;
pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod error_message;
pub(crate) mod frontend;
mod parameters;
pub(crate) mod rows;
pub(crate) mod server;
mod startup;
mod transport;

#[cfg(test)]
mod tests;
