//! The statements that have ended lately: `sys.log_query`.

use std::collections::VecDeque;

use parking_lot::Mutex;
use session_context::LogRow;

#[cfg(test)]
mod tests;

/// The newest statements, so many of them.
#[derive(Debug)]
pub struct QueryLog {
    rows: Mutex<VecDeque<LogRow>>,
    kept: usize,
}

impl QueryLog {
    pub fn new(kept: usize) -> Self {
        Self { rows: Mutex::default(), kept }
    }

    /// Adds a statement, and forgets the oldest where there are too many.
    pub fn push(&self, row: LogRow) {
        if self.kept == 0 {
            return;
        }
        let forgotten = {
            let mut rows = self.rows.lock();
            rows.push_back(row);
            if self.kept < rows.len() { rows.pop_front() } else { None }
        };
        // Its texts are freed outside of the lock.
        drop(forgotten);
    }

    /// All that are kept, oldest first.
    pub fn rows(&self) -> Vec<LogRow> {
        self.rows.lock().iter().cloned().collect()
    }
}

/// A statement's text up to the first word PASSWORD outside of its beginning: what follows is a secret.
pub fn without_password(query: &str) -> String {
    const WORD: &str = "password";
    let bytes = query.as_bytes();
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let found = bytes.windows(WORD.len()).enumerate().find(|(at, word)| {
        word.eq_ignore_ascii_case(WORD.as_bytes())
            && !is_part(at.checked_sub(1).and_then(|before| bytes.get(before)))
            && !is_part(bytes.get(at + WORD.len()))
    });
    let is_of_role = ["create", "alter"].iter().any(|verb| {
        let start = query.trim_start();
        start.get(..verb.len()).is_some_and(|word| word.eq_ignore_ascii_case(verb))
    });
    match found {
        Some((at, _)) if is_of_role => format!("{} …", &query[..at + WORD.len()]),
        _ => query.to_owned(),
    }
}
