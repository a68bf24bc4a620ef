//! Suites: the files of a folder that belong to one, and their parsers.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::parse::{SltDialect, parse_psql, parse_slt};
use crate::script::Script;

#[cfg(test)]
mod tests;

/// Script of PostgreSQL's regression tests that makes the tables of the others.
const POSTGRES_SETUP: &str = "test_setup.sql";
/// Endings of files beside CockroachDB's tests, whose own files have none.
const COCKROACH_OTHER_FILES: [&str; 5] = ["bazel", "bzl", "go", "md", "txt"];

/// Kind of test files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Suite {
    /// DuckDB's `*.test` files
    Duckdb,
    /// SQLite's `*.test` files
    Sqlite,
    /// CockroachDB's logic tests: files of any name
    Cockroach,
    /// PostgreSQL's regression scripts, `*.sql`
    Postgres,
    /// Other sqllogictest files, `*.slt`
    Slt,
}

impl Suite {
    /// Lists the files of the suite below a folder, by name. `only` is a text that their paths contain.
    pub(crate) fn files(self, folder: &Path, only: Option<&str>, with_slow: bool) -> anyhow::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        collect(folder, &mut files)?;
        files.retain(|path| self.has_file(path, with_slow));
        files.retain(|path| only.is_none_or(|only| path.to_string_lossy().contains(only)));
        files.sort();
        Ok(files)
    }

    fn has_file(self, path: &Path, with_slow: bool) -> bool {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match self {
            Self::Duckdb => extension == Some("test") || (with_slow && extension == Some("test_slow")),
            Self::Sqlite => extension == Some("test"),
            Self::Cockroach => extension.is_none_or(|extension| !COCKROACH_OTHER_FILES.contains(&extension)),
            Self::Postgres => extension == Some("sql"),
            Self::Slt => extension == Some("slt"),
        }
    }

    /// Parses a file. `folder` is the suite's, `test_folder` one that the file's statements may write.
    pub(crate) fn parse(self, path: &Path, folder: &Path, test_folder: &str) -> anyhow::Result<Script> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let variables =
            |names: &[&str], value: &str| names.iter().map(|name| ((*name).to_owned(), value.to_owned())).collect();
        let folders = || variables(&["TEST_DIR", "TEMP_DIR", "FOLDER"], test_folder);
        Ok(match self {
            Self::Duckdb => parse_slt(&text, SltDialect::DuckDb, &folders()),
            Self::Sqlite | Self::Cockroach | Self::Slt => parse_slt(&text, SltDialect::Standard, &folders()),
            Self::Postgres => {
                // Scripts lie in sql/, and their data in data/ beside it.
                let source = folder.parent().unwrap_or(folder).display().to_string();
                parse_psql(&text, &variables(&["PG_ABS_SRCDIR"], &source))
            }
        })
    }

    /// Returns the script that runs before each file.
    pub(crate) fn preamble(self, folder: &Path) -> Option<PathBuf> {
        let setup = folder.join(POSTGRES_SETUP);
        (self == Self::Postgres && setup.exists()).then_some(setup)
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let listed = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in listed {
        let path = entry.with_context(|| format!("cannot list {}", folder.display()))?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !is_hidden {
            collect(&path, files)?;
        } else if path.is_file() && !is_hidden {
            files.push(path);
        }
    }
    Ok(())
}
