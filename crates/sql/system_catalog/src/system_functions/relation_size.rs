//! Sizes of objects, in bytes.

use functions::catalog_entry;
use types::SqlResult;

use super::function_declaration::{FunctionDeclaration, function};
use super::scalar_function::FunctionCall;
use crate::row_builder::Cell;
use crate::row_source::RelationObject;

pub(super) const FUNCTIONS: &[FunctionDeclaration] = &[
    function("pg_relation_size", "disk space usage of a relation", 1..=2, "int8", relation_bytes).in_catalog(&[
        catalog_entry(2325, "regclass", "int8").volatile(),
        catalog_entry(2332, "regclass,text", "int8").volatile(),
    ]),
    function("pg_table_size", "disk space usage of a table, without indexes", 1..=1, "int8", relation_bytes)
        .in_catalog(&[catalog_entry(2997, "regclass", "int8").volatile()]),
    function(
        "pg_total_relation_size",
        "total disk space usage of a table and its indexes",
        1..=1,
        "int8",
        relation_bytes,
    )
    .in_catalog(&[catalog_entry(2286, "regclass", "int8").volatile()]),
    function("pg_indexes_size", "disk space usage of all indexes of a table", 1..=1, "int8", |call| {
        Ok(call.relation(0)?.map(|_| 0_i64).into())
    })
    .in_catalog(&[catalog_entry(2998, "regclass", "int8").volatile()]),
    function("pg_database_size", "total disk space usage of a database", 1..=1, "int8", |call| {
        Ok(total_bytes(call).into())
    })
    .in_catalog(&[catalog_entry(2168, "name", "int8").volatile(), catalog_entry(2324, "oid", "int8").volatile()]),
    function("pg_tablespace_size", "total disk space usage of a tablespace", 1..=1, "int8", |call| {
        Ok(total_bytes(call).into())
    })
    .in_catalog(&[catalog_entry(2322, "oid", "int8").volatile(), catalog_entry(2323, "name", "int8").volatile()]),
    function("pg_size_pretty", "convert a number of bytes to human readable text", 1..=1, "text", |call| {
        let bytes = match call.cell(0) {
            #[expect(clippy::cast_possible_truncation, reason = "a size beyond 2^63 bytes saturates")]
            Cell::Float(bytes) => *bytes as i64,
            _ => call.number(0)?,
        };
        Ok(format_size(bytes).into())
    })
    .in_catalog(&[catalog_entry(2288, "int8", "text"), catalog_entry(3166, "numeric", "text")]),
    function("pg_size_bytes", "convert a size in human readable text to bytes", 1..=1, "int8", |call| {
        size_bytes(call.text(0)).map(Cell::Int)
    })
    .in_catalog(&[catalog_entry(3334, "text", "int8")]),
];

fn relation_bytes(call: &FunctionCall<'_>) -> SqlResult<Cell> {
    let Some(relation) = call.relation(0)? else { return Ok(Cell::Null) };
    Ok(match relation.object {
        RelationObject::Table(table) => call.state().shards(table.oid).bytes.into(),
        RelationObject::View(_)
        | RelationObject::Sequence(_)
        | RelationObject::KeyOrIndex(_)
        | RelationObject::System(_) => Cell::Int(0),
    })
}

fn total_bytes(call: &FunctionCall<'_>) -> u64 {
    call.state().tables().map(|table| call.state().shards(table.oid).bytes).sum()
}

const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
/// Size in a unit from which the next unit is used, as in PostgreSQL; values are rounded half up.
const NEXT_UNIT_MIN: i64 = 10 * 1024;

fn format_size(bytes: i64) -> String {
    if bytes.unsigned_abs() < NEXT_UNIT_MIN.unsigned_abs() {
        return format!("{bytes} bytes");
    }
    // One more bit than displayed is retained for rounding.
    let mut doubled = bytes / 512;
    let mut unit = 1;
    while doubled.abs() >= 2 * NEXT_UNIT_MIN - 1 && unit + 1 < UNITS.len() {
        doubled /= 1024;
        unit += 1;
    }
    format!("{} {}", (doubled + doubled.signum()) / 2, UNITS[unit])
}

fn size_bytes(text: &str) -> SqlResult<i64> {
    let invalid = || types::SqlError::new(types::Condition::InvalidParameterValue, format!("invalid size: \"{text}\""));
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
    let number: f64 = trimmed[..split].trim().parse().map_err(|_| invalid())?;
    let unit = trimmed[split..].trim();
    let power = if unit.is_empty() || unit.eq_ignore_ascii_case("b") {
        0
    } else {
        UNITS.iter().position(|known| known.eq_ignore_ascii_case(unit)).ok_or_else(invalid)?
    };
    let bytes = number * 1024_f64.powi(i32::try_from(power).expect("an index into UNITS fits i32"));
    #[expect(clippy::cast_possible_truncation, reason = "bounded below")]
    if bytes.is_finite() && bytes.abs() < 9.2e18 { Ok(bytes.round() as i64) } else { Err(invalid()) }
}

#[cfg(test)]
mod tests {
    use super::format_size;

    #[test]
    fn the_least_size_is_printed_like_others() {
        assert_eq!(format_size(i64::MIN), "-8192 PB");
        assert_eq!(format_size(i64::MAX), "8192 PB");
    }
}
