//! Command line.

use std::path::PathBuf;

use clap::Parser;

use crate::suite::Suite;

/// Runs another project's SQL tests on Kiln and on PostgreSQL, and compares the answers
#[derive(Debug, Clone, Parser)]
#[command(name = "suites")]
pub(crate) struct Arguments {
    /// Kind of the test files
    pub(crate) suite: Suite,

    /// Folder of the test files; for PostgreSQL the folder sql of its regression tests
    pub(crate) folder: PathBuf,

    /// Run only the files whose path contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,

    /// Run DuckDB's *.test_slow files too
    #[arg(long)]
    pub(crate) slow: bool,

    /// Kiln to use instead of own ones, as "host=… port=… user=… dbname=…" or a URL; files then run one at a time
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) kiln: Option<String>,

    /// PostgreSQL to use instead of own ones, in the same form, as a superuser; files then run one at a time
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) postgres: Option<String>,

    /// Folder for the lists of differences, refusals and files
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,

    /// SQL that each session of Kiln runs first, such as "SET kiln.engine = off"
    #[arg(long, value_name = "SQL", default_value = "")]
    pub(crate) mode: String,

    /// Number of files that run at a time, each on servers of its own
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    pub(crate) threads: usize,
}

impl Arguments {
    /// Returns the number of lanes. Servers that are given are used by one file at a time, because files make schemas
    /// and roles of any name.
    pub(crate) fn lanes(&self, files: usize) -> usize {
        let lanes = if self.kiln.is_some() || self.postgres.is_some() { 1 } else { self.threads };
        lanes.min(files).max(1)
    }
}
