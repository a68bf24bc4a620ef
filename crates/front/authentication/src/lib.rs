//! Authentication of clients: SCRAM passwords, the server's certificate, and a limit of connections that have not
//! authenticated.
//!
//! Never reads a socket and never decides what a role may do.
//!
//! Files in reading order:
//!
//! - `file_credentials.rs`: the credentials of a server, and their reloading from files.
//! - `required_proof.rs`: the proof that a client has to show.
//! - `scram_verifier.rs`, `scram.rs`: stored verifiers of passwords, and the SCRAM exchange that checks a password.
//! - `tls_acceptor.rs`, `server_certificate.rs`: TLS, and the certificate that new connections are shown.
//! - `superuser_password.rs`: the superuser's password from a file.
//! - `watched_files.rs`: files that are watched for changes.
//! - `connection_limit.rs`: a limit of connections that closes the oldest.

mod connection_limit;
mod file_credentials;
mod required_proof;
mod scram;
mod scram_verifier;
mod server_certificate;
mod superuser_password;
mod tls_acceptor;
mod watched_files;

pub use connection_limit::{ConnectionLimit, CountedConnection};
pub use file_credentials::{Credentials, PasswordError};
pub use required_proof::{RequiredProof, authentication_failed, check_login_allowed, required_proof};
pub use scram::ScramExchange;
pub use scram_verifier::create_verifier;
pub use server_certificate::Certificate;
pub use superuser_password::SuperuserPassword;
pub use tls_acceptor::{ALPN, Tls, TlsError, TlsFiles};
