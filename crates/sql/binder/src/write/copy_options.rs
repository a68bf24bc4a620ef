//! Options of COPY: the format of its data.

mod parse;

#[cfg(test)]
mod tests;

pub(crate) use self::parse::parse_options;

/// Validated options of a COPY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOptions {
    pub format: CopyFormat,
    pub header: CopyHeader,
    pub delimiter: u8,
    pub null: String,
    /// Text that stands for a column's default (COPY FROM).
    pub default: Option<String>,
    /// Quote character (CSV only).
    pub quote: u8,
    /// Escape character (CSV only).
    pub escape: u8,
    /// Columns that are quoted in every row (CSV, COPY TO).
    pub force_quote: ForcedColumns,
    /// Columns in which the NULL marker is read as text (CSV, COPY FROM).
    pub force_not_null: ForcedColumns,
    /// Columns in which a quoted NULL marker is read as NULL (CSV, COPY FROM).
    pub force_null: ForcedColumns,
    pub on_error: OnError,
    /// Number of invalid rows above which the COPY fails, with [`OnError::Ignore`].
    pub reject_limit: Option<u64>,
}

/// Columns named by an option.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ForcedColumns {
    #[default]
    None,
    All,
    Named(Vec<String>),
}

impl ForcedColumns {
    /// Returns whether the option names `column`.
    #[must_use]
    pub fn contains(&self, column: &str) -> bool {
        match self {
            ForcedColumns::None => false,
            ForcedColumns::All => true,
            ForcedColumns::Named(names) => names.iter().any(|name| name == column),
        }
    }
}

/// Format of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyFormat {
    #[default]
    Text,
    Csv,
    Binary,
    Parquet,
}

/// Content of the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyHeader {
    /// No header line.
    #[default]
    Absent,
    /// Column names, written by COPY TO and skipped by COPY FROM.
    Present,
    /// Column names that must match the table's (COPY FROM).
    Match,
}

/// Action for an invalid row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Fail the COPY.
    #[default]
    Stop,
    /// Skip and count the row.
    Ignore,
}
