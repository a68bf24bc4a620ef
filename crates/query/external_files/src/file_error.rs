//! Errors of opening, reading and writing files, in PostgreSQL's words.

use std::io;
use std::path::Path;

use types::{Condition, SqlError};

/// Operation on a file that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOperation {
    Reading,
    Writing,
}

/// Returns PostgreSQL's error for a file that cannot be opened for reading.
#[must_use]
pub fn cannot_read(path: &Path, error: &io::Error) -> SqlError {
    cannot_open(path, FileOperation::Reading, error)
}

/// Returns PostgreSQL's error for a file that cannot be opened.
#[must_use]
pub fn cannot_open(path: &Path, purpose: FileOperation, error: &io::Error) -> SqlError {
    let path = path.display();
    let condition = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Condition::UndefinedFile,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Condition::InsufficientPrivilege,
        io::ErrorKind::IsADirectory => {
            return SqlError::new(Condition::WrongObjectType, format!("\"{path}\" is a directory"));
        }
        io::ErrorKind::StorageFull => Condition::DiskFull,
        _ => Condition::IoError,
    };
    let (doing, hint) = match purpose {
        FileOperation::Reading => (
            "reading",
            "COPY FROM instructs the PostgreSQL server process to read a file. You may want a client-side facility such as psql's \\copy.",
        ),
        FileOperation::Writing => (
            "writing",
            "COPY TO instructs the PostgreSQL server process to write a file. You may want a client-side facility such as psql's \\copy.",
        ),
    };
    let opened = SqlError::new(condition, format!("could not open file \"{path}\" for {doing}: {}", reason(error)));
    if matches!(condition, Condition::UndefinedFile | Condition::InsufficientPrivilege) {
        opened.with_hint(hint)
    } else {
        opened
    }
}

/// Returns PostgreSQL's error for a failure while an open file is read or written.
#[must_use]
pub fn io_failure(path: &Path, purpose: FileOperation, error: &io::Error) -> SqlError {
    let condition = if error.kind() == io::ErrorKind::StorageFull { Condition::DiskFull } else { Condition::IoError };
    let doing = match purpose {
        FileOperation::Reading => "read from",
        FileOperation::Writing => "write to",
    };
    SqlError::new(condition, format!("could not {doing} file \"{}\": {}", path.display(), reason(error)))
}

/// Returns the system's message without the error number that Rust appends.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}
