//! How COPY's data looks.

mod read;

#[cfg(test)]
mod tests;

pub(crate) use self::read::read;

/// The options of a COPY, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOptions {
    pub format: CopyFormat,
    pub header: CopyHeader,
    pub delimiter: u8,
    pub null: String,
    /// The marker for a column's default (COPY FROM).
    pub default: Option<String>,
    /// CSV only.
    pub quote: u8,
    /// CSV only.
    pub escape: u8,
    /// CSV, COPY TO: columns that are quoted in every row.
    pub force_quote: ForcedColumns,
    /// CSV, COPY FROM: columns whose NULL marker is text.
    pub force_not_null: ForcedColumns,
    /// CSV, COPY FROM: columns whose NULL marker is NULL even in quotes.
    pub force_null: ForcedColumns,
    pub on_error: OnError,
    /// With [`OnError::Ignore`]: how many bad rows are too many.
    pub reject_limit: Option<u64>,
}

/// Which columns an option names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ForcedColumns {
    #[default]
    None,
    All,
    Named(Vec<String>),
}

impl ForcedColumns {
    /// Whether the option names `column`.
    #[must_use]
    pub fn contains(&self, column: &str) -> bool {
        match self {
            ForcedColumns::None => false,
            ForcedColumns::All => true,
            ForcedColumns::Named(names) => names.iter().any(|name| name == column),
        }
    }
}

/// The format of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyFormat {
    #[default]
    Text,
    Csv,
    Binary,
    Parquet,
}

/// What the first line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyHeader {
    /// Data.
    #[default]
    Absent,
    /// Column names: written by COPY TO, skipped by COPY FROM.
    Present,
    /// Column names that must be the table's (COPY FROM).
    Match,
}

/// What a bad row does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Fails the COPY.
    #[default]
    Stop,
    /// Is left out and counted.
    Ignore,
}
