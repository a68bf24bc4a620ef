//! HEADER match: checks that the first line names the target columns, in order.

use types::{SqlError, SqlResult};

use super::binary_boundaries::bad_format;
use super::input_layout::TargetColumn;
use super::record_fields::{Field, Fields};

/// Checks the header line, the only record of `names`, which has `count` fields and was split from `text`.
pub(super) fn check_header(
    names: &Fields,
    text: &str,
    count: usize,
    columns: &[TargetColumn],
    null: &str,
) -> SqlResult<()> {
    if count != columns.len() {
        return Err(bad_format(format!(
            "wrong number of fields in header line: got {count}, expected {}",
            columns.len()
        )));
    }
    for (index, column) in columns.iter().enumerate() {
        let number = index + 1;
        let mismatch = |got: String| -> SqlError {
            bad_format(format!(
                "column name mismatch in header line field {number}: got {got}, expected \"{}\"",
                column.name
            ))
        };
        match names.text(text, 0, index) {
            Field::Value(name) if name == column.name => {}
            Field::Value(name) => return Err(mismatch(format!("\"{name}\""))),
            Field::Null | Field::Default => return Err(mismatch(format!("null value (\"{null}\")"))),
        }
    }
    Ok(())
}
