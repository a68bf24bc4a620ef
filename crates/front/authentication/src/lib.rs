//! Authentication of clients: SCRAM passwords, the server's certificate, and a limit of connections that have not
//! authenticated.
//!
//! Never reads a socket and never decides what a role may do.
//!
//! Files in reading order:
//!
//! - `credentials.rs`: the credentials of a server, and their reloading from files.
//! - `proof.rs`: the proof that a client has to show.
//! - `verifier.rs`, `scram.rs`: stored verifiers of passwords, and the SCRAM exchange that checks a password.
//! - `tls.rs`, `certificate.rs`: TLS, and the certificate that new connections are shown.
//! - `superuser.rs`: the superuser's password from a file.
//! - `watched_files.rs`: files that are watched for changes.
//! - `connection_limit.rs`: a limit of connections that closes the oldest.

mod certificate;
mod connection_limit;
mod credentials;
mod proof;
mod scram;
mod superuser;
mod tls;
mod verifier;
mod watched_files;

pub use certificate::Certificate;
pub use connection_limit::{ConnectionLimit, CountedConnection};
pub use credentials::{Credentials, PasswordError};
pub use proof::{Proof, authentication_failed, check_login_allowed, required_proof};
pub use scram::ScramExchange;
pub use superuser::SuperuserPassword;
pub use tls::{ALPN, Tls, TlsError, TlsFiles};
pub use verifier::create_verifier;
