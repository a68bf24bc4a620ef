//! Severity of messages to clients.

/// Severity of a message, in rising order; clients decide by it whether the connection lives on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something the user may like to know.
    Notice,
    /// Something the user most likely did not mean.
    Warning,
    /// The statement failed.
    Error,
    /// The connection ends with this message.
    Fatal,
}

impl Severity {
    /// Returns PostgreSQL's word for the severity.
    pub fn text(self) -> &'static str {
        match self {
            Severity::Fatal => "FATAL",
            Severity::Error => "ERROR",
            Severity::Warning => "WARNING",
            Severity::Notice => "NOTICE",
        }
    }
}
