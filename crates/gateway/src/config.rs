//! What an operator may choose about the front doors.

use std::path::PathBuf;
use std::time::Duration;

use authentication::TlsFiles;

/// Limits and files of the front doors.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// Sessions at once; one more is refused with 53300.
    pub connections_max: usize,
    /// Of those, kept for superusers.
    pub connections_reserved: usize,
    /// From the first byte to the end of authentication.
    pub startup_timeout: Duration,
    /// What running statements get to finish after a request to shut down.
    pub shutdown_grace: Duration,
    /// Statements that have ended and are kept for `sys.log_query`.
    pub query_log_rows: usize,
    /// `None`: TLS is refused.
    pub tls: Option<TlsFiles>,
    /// A file with the password of the role that every catalog begins with, or with its verifier. `None`: SQL says it.
    pub superuser_password: Option<PathBuf>,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            connections_max: 500,
            connections_reserved: 3,
            startup_timeout: Duration::from_secs(60),
            shutdown_grace: Duration::from_secs(10),
            query_log_rows: 10_000,
            tls: None,
            superuser_password: None,
        }
    }
}
