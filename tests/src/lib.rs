//! Server processes for the integration tests in `it/` and for the program `suites`; SQL files are in `slt/`.
//!
//! - `server.rs`: Kiln; `processes.rs`: its workers
//! - `postgres.rs`: PostgreSQL

pub mod postgres;
pub mod processes;
pub mod server;
