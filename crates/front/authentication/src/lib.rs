//! Authentication of clients: passwords by SCRAM, the certificate of the server, and a limit of connections that are not authenticated yet.
//!
//! Never reads a socket and never decides what a role may do.
//!
//! Start at [`Credentials`] for what a server has, `proof.rs` for what is asked of whom, `exchange.rs` for how a password is checked.

mod certificate;
mod connection_limit;
mod credentials;
mod exchange;
mod proof;
mod superuser;
mod tls;
mod verifier;
mod watched;

pub use certificate::Certificate;
pub use connection_limit::{ConnectionLimit, Counted};
pub use credentials::{Credentials, PasswordError};
pub use exchange::Exchange;
pub use proof::{Proof, admit, demand, failed};
pub use superuser::SuperuserPassword;
pub use tls::{ALPN, Tls, TlsError, TlsFiles};
pub use verifier::verifier;
