//! Generates TPC-DS rows as CSV.

use std::fmt::Write;

use tpcdsgen::config::{Session, SessionBuilder, Table};
use tpcdsgen::csv::{
    CallCenterCsv, CatalogPageCsv, CatalogReturnsCsv, CatalogSalesCsv, CsvRow, CustomerAddressCsv, CustomerCsv,
    CustomerDemographicsCsv, DateDimCsv, HouseholdDemographicsCsv, IncomeBandCsv, InventoryCsv, ItemCsv, PromotionCsv,
    ReasonCsv, ShipModeCsv, StoreCsv, StoreReturnsCsv, StoreSalesCsv, TimeDimCsv, WarehouseCsv, WebPageCsv,
    WebReturnsCsv, WebSalesCsv, WebSiteCsv,
};
use tpcdsgen::row::{
    CallCenterRowGenerator, CatalogPageRowGenerator, CatalogReturnsRowGenerator, CatalogSalesRowGenerator,
    CustomerAddressRowGenerator, CustomerDemographicsRowGenerator, CustomerRowGenerator, DateDimRowGenerator,
    HouseholdDemographicsRowGenerator, IncomeBandRowGenerator, InventoryRowGenerator, ItemRowGenerator,
    PromotionRowGenerator, ReasonRowGenerator, ShipModeRowGenerator, StoreReturnsRowGenerator, StoreRowGenerator,
    StoreSalesRowGenerator, TimeDimRowGenerator, WarehouseRowGenerator, WebPageRowGenerator, WebReturnsRowGenerator,
    WebSalesRowGenerator, WebSiteRowGenerator,
};

use crate::Error;

/// Returns the number of parts of roughly `source_rows_max` source rows into which `table` is split at `scale`.
pub(super) fn part_count(table: &str, scale: f64, source_rows_max: u64) -> Result<u64, Error> {
    let session = generator_session(table, scale)?;
    Ok(source_row_count(&session, table).div_ceil(source_rows_max).max(1))
}

/// Generates part `part` (from 0) of `part_count` as CSV lines without a header.
pub(super) fn generate_part(table: &str, scale: f64, part: u64, part_count: u64) -> Result<String, Error> {
    let session = generator_session(table, scale)?;
    let row_count = source_row_count(&session, table);
    let first = row_count * part / part_count + 1;
    let last = row_count * (part + 1) / part_count;
    let mut csv = String::new();
    macro_rules! rows {
        ($table:ident, $generator:ident, $csv:ident) => {{
            let mut rows = $generator::new(session, row_count);
            rows.set_source_row_range(first, last);
            for row in rows {
                writeln!(csv, "{}", $csv::new(&row)).expect("writing to a string cannot fail");
            }
        }};
    }
    match table {
        "call_center" => rows!(CallCenter, CallCenterRowGenerator, CallCenterCsv),
        "catalog_page" => rows!(CatalogPage, CatalogPageRowGenerator, CatalogPageCsv),
        "catalog_returns" => rows!(CatalogReturns, CatalogReturnsRowGenerator, CatalogReturnsCsv),
        "catalog_sales" => rows!(CatalogSales, CatalogSalesRowGenerator, CatalogSalesCsv),
        "customer" => rows!(Customer, CustomerRowGenerator, CustomerCsv),
        "customer_address" => rows!(CustomerAddress, CustomerAddressRowGenerator, CustomerAddressCsv),
        "customer_demographics" => {
            rows!(CustomerDemographics, CustomerDemographicsRowGenerator, CustomerDemographicsCsv)
        }
        "date_dim" => rows!(DateDim, DateDimRowGenerator, DateDimCsv),
        "household_demographics" => {
            rows!(HouseholdDemographics, HouseholdDemographicsRowGenerator, HouseholdDemographicsCsv)
        }
        "income_band" => rows!(IncomeBand, IncomeBandRowGenerator, IncomeBandCsv),
        "inventory" => rows!(Inventory, InventoryRowGenerator, InventoryCsv),
        "item" => rows!(Item, ItemRowGenerator, ItemCsv),
        "promotion" => rows!(Promotion, PromotionRowGenerator, PromotionCsv),
        "reason" => rows!(Reason, ReasonRowGenerator, ReasonCsv),
        "ship_mode" => rows!(ShipMode, ShipModeRowGenerator, ShipModeCsv),
        "store" => rows!(Store, StoreRowGenerator, StoreCsv),
        "store_returns" => rows!(StoreReturns, StoreReturnsRowGenerator, StoreReturnsCsv),
        "store_sales" => rows!(StoreSales, StoreSalesRowGenerator, StoreSalesCsv),
        "time_dim" => rows!(TimeDim, TimeDimRowGenerator, TimeDimCsv),
        "warehouse" => rows!(Warehouse, WarehouseRowGenerator, WarehouseCsv),
        "web_page" => rows!(WebPage, WebPageRowGenerator, WebPageCsv),
        "web_returns" => rows!(WebReturns, WebReturnsRowGenerator, WebReturnsCsv),
        "web_sales" => rows!(WebSales, WebSalesRowGenerator, WebSalesCsv),
        "web_site" => rows!(WebSite, WebSiteRowGenerator, WebSiteCsv),
        _ => return Err(unknown_table_error(table, scale)),
    }
    Ok(csv)
}

/// Returns the number of source rows of a table: its generator counts orders, not lines, for sales, and sales for
/// returns.
fn source_row_count(session: &Session, table: &str) -> u64 {
    let source = match table {
        "catalog_returns" => "catalog_sales",
        "store_returns" => "store_sales",
        "web_returns" => "web_sales",
        other => other,
    };
    let table = Table::values().iter().find(|known| known.get_name() == source);
    table.map_or(0, |table| session.get_scaling().get_row_count(*table))
}

fn generator_session(table: &str, scale: f64) -> Result<Session, Error> {
    SessionBuilder::new().with_scale_factor(scale).build().map_err(|error| Error::Data {
        table: table.to_owned(),
        scale,
        reason: error.to_string(),
    })
}

fn unknown_table_error(table: &str, scale: f64) -> Error {
    Error::Data { table: table.to_owned(), scale, reason: "TPC-DS has no such table".to_owned() }
}
