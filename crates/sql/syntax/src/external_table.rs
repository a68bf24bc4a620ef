//! CREATE EXTERNAL TABLE, in the syntax of Hive and DataFusion.

use sqlparser::ast::ObjectName;
use types::SqlResult;

use super::create_table::ColumnDefinition;
use super::token_cursor::Cursor;

/// `CREATE EXTERNAL TABLE [IF NOT EXISTS] name [(columns)] STORED AS PARQUET LOCATION 'location'`.
#[derive(Debug, Clone)]
pub struct CreateExternalTable {
    pub name: ObjectName,
    pub if_not_exists: bool,
    /// Declared columns; if empty, the columns are those of the files.
    pub columns: Vec<ColumnDefinition>,
    pub location: String,
}

impl Cursor<'_> {
    /// Parses CREATE EXTERNAL TABLE, after CREATE.
    pub(super) fn create_external_table(&mut self) -> SqlResult<CreateExternalTable> {
        self.expect("external table")?;
        let if_not_exists = self.eat("if not exists");
        let name = self.object_name()?;
        let columns = if self.is_symbol('(') { self.parenthesized(Self::column_definition)? } else { Vec::new() };
        if self.next_is("partitioned by") {
            return Err(self.unsupported("PARTITIONED BY of an external table"));
        }
        self.expect("stored as")?;
        if !self.next_is("parquet") && self.next_word().is_some() {
            return Err(self.unsupported("an external table that is not stored as Parquet"));
        }
        self.expect("parquet")?;
        self.expect("location")?;
        let location = self.text()?;
        Ok(CreateExternalTable { name, if_not_exists, columns, location })
    }
}
