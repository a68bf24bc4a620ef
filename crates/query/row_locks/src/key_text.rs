//! Text of keys in the details of constraint errors.

use std::sync::Arc;

use catalog::{Column, Table};
use rowstore::{Tuple, decode_columns};
use scan::{column_def, stored_column};
use types::{ColumnId, ObjectNames, SessionZone, SqlType};
use value_codec::encode::{TextEncoder, TextStyle};

/// Returns the names and the values of some columns of a row, each separated by commas.
pub(super) fn key_text(table: &Table, columns: &[ColumnId], row: &Tuple) -> (String, String) {
    let named = columns.iter().filter_map(|id| table.column(*id));
    let names: Vec<&str> = named.clone().map(|column| column.name.as_str()).collect();
    let values: Vec<String> =
        named.map(|column| value_text(row, column).unwrap_or_else(|| "null".to_owned())).collect();
    (names.join(", "), values.join(", "))
}

fn value_text(row: &Tuple, column: &Column) -> Option<String> {
    let stored = [stored_column(&column_def(column)).ok()?];
    let values = decode_columns([row], &stored, 1).ok()?;
    let style = TextStyle { zone: SessionZone::UTC, names: Arc::new(NumericOids) };
    let mut encoder = TextEncoder::new(&values[0], &column.sql_type, &style).ok()?;
    encoder.text(0).map(str::to_owned)
}

/// Formats catalog objects as their numeric oids.
#[derive(Debug)]
struct NumericOids;

impl ObjectNames for NumericOids {
    fn format(&self, _: &SqlType, oid: u32) -> String {
        oid.to_string()
    }
}
