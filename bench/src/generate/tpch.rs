//! Generates TPC-H rows as CSV.

use std::fmt::Write;

use tpchgen::csv::{CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

use crate::Error;

/// Returns the number of parts of roughly `rows_max` rows into which `table` is split at `scale`.
pub(super) fn part_count(table: &str, scale: f64, rows_max: u64) -> Result<u64, Error> {
    let rows = match table {
        "region" | "nation" => 1,
        "supplier" => SupplierGenerator::calculate_row_count(scale, 1, 1),
        "customer" => CustomerGenerator::calculate_row_count(scale, 1, 1),
        "part" => PartGenerator::calculate_row_count(scale, 1, 1),
        "partsupp" => PartSuppGenerator::calculate_row_count(scale, 1, 1),
        "orders" => OrderGenerator::calculate_row_count(scale, 1, 1),
        // A lineitem part is generated from a part of orders, which have four lines each on average.
        "lineitem" => OrderGenerator::calculate_row_count(scale, 1, 1) * 4,
        _ => return Err(unknown_table_error(table, scale)),
    };
    Ok(rows.unsigned_abs().div_ceil(rows_max).max(1))
}

/// Generates part `part` (from 0) of `part_count` as CSV lines without a header.
pub(super) fn generate_part(table: &str, scale: f64, part: u64, part_count: u64) -> Result<String, Error> {
    let too_many = |_| Error::Data { table: table.to_owned(), scale, reason: "too many parts".to_owned() };
    let part = i32::try_from(part + 1).map_err(too_many)?;
    let part_count = i32::try_from(part_count).map_err(too_many)?;
    let mut csv = String::new();
    macro_rules! rows {
        ($generator:ident, $csv:ident) => {
            for row in $generator::new(scale, part, part_count).iter() {
                writeln!(csv, "{}", $csv::new(row)).expect("writing to a string cannot fail");
            }
        };
    }
    match table {
        "region" => rows!(RegionGenerator, RegionCsv),
        "nation" => rows!(NationGenerator, NationCsv),
        "supplier" => rows!(SupplierGenerator, SupplierCsv),
        "customer" => rows!(CustomerGenerator, CustomerCsv),
        "part" => rows!(PartGenerator, PartCsv),
        "partsupp" => rows!(PartSuppGenerator, PartSuppCsv),
        "orders" => rows!(OrderGenerator, OrderCsv),
        "lineitem" => rows!(LineItemGenerator, LineItemCsv),
        _ => return Err(unknown_table_error(table, scale)),
    }
    Ok(csv)
}

fn unknown_table_error(table: &str, scale: f64) -> Error {
    Error::Data { table: table.to_owned(), scale, reason: "TPC-H has no such table".to_owned() }
}
