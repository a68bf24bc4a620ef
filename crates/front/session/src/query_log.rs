//! Log of the statements that have ended lately: `sys.log_query`.

use std::collections::VecDeque;

use parking_lot::Mutex;
use session_context::LogRow;

#[cfg(test)]
mod tests;

/// Log of the newest statements, up to a maximum number.
#[derive(Debug)]
pub struct QueryLog {
    rows: Mutex<VecDeque<LogRow>>,
    rows_max: usize,
}

impl QueryLog {
    pub fn new(rows_max: usize) -> Self {
        Self { rows: Mutex::default(), rows_max }
    }

    /// Adds a statement, in place of the oldest if the log is full.
    pub fn push(&self, row: LogRow) {
        if self.rows_max == 0 {
            return;
        }
        let evicted = {
            let mut rows = self.rows.lock();
            rows.push_back(row);
            if self.rows_max < rows.len() { rows.pop_front() } else { None }
        };
        // Frees the texts of the oldest outside of the lock.
        drop(evicted);
    }

    /// Returns all logged statements, oldest first.
    pub fn rows(&self) -> Vec<LogRow> {
        self.rows.lock().iter().cloned().collect()
    }
}

/// Cuts a text after the first word PASSWORD that follows CREATE or ALTER and ROLE, USER or GROUP: a secret comes next.
///
/// Texts are cut that do not parse, too, and those of several statements. Comments are read as words, and any later
/// ROLE counts: a harmless text may be cut, a secret never stays. The lexer would refuse texts that were truncated.
pub fn without_password(query: &str) -> String {
    let mut has_verb = false;
    let mut has_role = false;
    for (end, word) in words(query) {
        let is = |others: &[&str]| others.iter().any(|other| word.eq_ignore_ascii_case(other));
        if has_role && is(&["password"]) {
            return format!("{} …", &query[..end]);
        }
        has_role |= has_verb && is(&["role", "user", "group"]);
        has_verb |= is(&["create", "alter"]);
    }
    query.to_owned()
}

/// Words of letters, digits and underscores, each with the offset at which it ends.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut start = 0;
    std::iter::from_fn(move || {
        start += text[start..].find(is_part)?;
        let word = text[start..].split(|letter| !is_part(letter)).next().expect("a split gives one part at least");
        start += word.len();
        Some((start, word))
    })
}
