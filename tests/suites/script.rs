//! Test files as data: records in order, and what was left out.

use std::collections::BTreeMap;

use crate::sql;

/// Test file, parsed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
    /// Number of records and commands that are not run, by cause.
    pub(crate) skipped: BTreeMap<String, usize>,
    /// Requirement that is not met, for which the whole file is skipped.
    pub(crate) unmet: Option<String>,
}

/// One step of a test file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Run(Record),
    /// Close all sessions.
    Reconnect,
}

/// One statement of a test file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Line of the file on which the statement begins, from 1.
    pub(crate) line: usize,
    /// Name of the session that runs it; empty for the first one.
    pub(crate) session: String,
    pub(crate) sql: String,
    /// Data of COPY FROM STDIN.
    pub(crate) copy_data: Option<String>,
    /// Whether the file sorts the rows before it compares them.
    pub(crate) ignores_order: bool,
}

impl Script {
    /// Adds the statements of a record, each as a record of its own.
    pub(crate) fn push(&mut self, record: &Record) {
        for (offset, statement) in sql::split(&record.sql) {
            let line = record.line + record.sql[..offset].matches('\n').count();
            self.steps.push(Step::Run(Record { line, sql: statement.to_owned(), ..record.clone() }));
        }
    }

    /// Counts something that is not run.
    pub(crate) fn skip(&mut self, cause: &str) {
        *self.skipped.entry(cause.to_owned()).or_default() += 1;
    }
}
