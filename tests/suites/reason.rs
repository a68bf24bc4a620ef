//! Reasons of refusals: a feature of the closed list, or a line of what is to do.

mod feature;
#[cfg(test)]
mod tests;

use std::fmt;

pub(crate) use self::feature::Feature;
use crate::answer::Failure;

/// Most characters of a message in a key.
const KEY_LENGTH_MAX: usize = 140;

/// Reason why Kiln does not answer a statement that PostgreSQL accepts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// A feature of the closed list, which the error names.
    Feature(Feature),
    /// Anything else: SQLSTATE and message without names and numbers.
    ToDo(String),
    TimedOut,
    ConnectionLost,
    /// A statement that changed other rows than on PostgreSQL.
    DifferentWrite,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feature(feature) => write!(f, "{feature}"),
            Self::ToDo(key) => f.write_str(key),
            Self::TimedOut => f.write_str("timed out"),
            Self::ConnectionLost => f.write_str("connection lost"),
            Self::DifferentWrite => f.write_str("a statement that changed other rows"),
        }
    }
}

/// Returns the reason of a refusal.
pub(crate) fn reason(failure: &Failure, sql: &str) -> Reason {
    Feature::named_by(failure, sql).map_or_else(|| Reason::ToDo(key(failure)), Reason::Feature)
}

/// Returns SQLSTATE and message such that messages that differ by names and numbers only are one.
pub(crate) fn key(failure: &Failure) -> String {
    let message = failure.message.lines().next().unwrap_or_default();
    // These names are Kiln's and PostgreSQL's, not the test's.
    let names_matter = failure.sqlstate == "42601" || message.contains("configuration parameter");
    let normalised = if names_matter { message.to_owned() } else { without_names(message) };
    let normalised: String = normalised.chars().take(KEY_LENGTH_MAX).collect();
    format!("{} {normalised}", failure.sqlstate)
}

/// Replaces quoted texts by `…` and numbers by N.
fn without_names(message: &str) -> String {
    let mut replaced = String::new();
    let mut remaining = message;
    while let Some(first) = remaining.chars().next() {
        let is_after_word = replaced.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let closing =
            remaining[first.len_utf8()..].find(first).filter(|_| first == '"' || (first == '\'' && !is_after_word));
        if let Some(length) = closing {
            replaced.push_str(&format!("{first}…{first}"));
            remaining = &remaining[length + 2..];
        } else if first.is_ascii_digit() && !is_after_word {
            replaced.push('N');
            remaining = remaining.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        } else {
            replaced.push(first);
            remaining = &remaining[first.len_utf8()..];
        }
    }
    replaced
}
