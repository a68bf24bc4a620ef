//! Loads the initial rows of clause 4.3.3 through COPY.

use super::random_inputs::{
    CUSTOMERS_PER_DISTRICT, DISTRICTS_PER_WAREHOUSE, FIRST_NEW_ORDER, ITEM_COUNT, ORDERS_PER_DISTRICT, draw_digits,
    draw_loaded_last_name, draw_original_data, draw_zip_code,
};
use super::{TpccOptions, schema};
use crate::Error;
use crate::measure::server_connection::{CopyIn, Server, run_statements};
use crate::random::RandomGenerator;

/// Timestamp of all loaded rows.
const LOAD_TIMESTAMP: &str = "2026-01-01 00:00:00";

pub(super) async fn load(server: &Server, options: &TpccOptions, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    schema::create(server, options, say).await?;
    let loader = Loader { server, random: RandomGenerator::new(0x7CC), warehouses: i64::from(options.warehouses) };
    loader.load_items().await?;
    loader.load_warehouses().await?;
    // One transaction per table and warehouse: there may be many rows.
    for warehouse in 1..=loader.warehouses {
        loader.load_customers(warehouse).await?;
        loader.load_orders(warehouse).await?;
        loader.load_stock(warehouse).await?;
    }
    if !server.is_kiln() {
        let client = server.connect().await?;
        for table in schema::TABLES {
            run_statements(&client, "VACUUM ANALYZE", &format!("VACUUM ANALYZE {table}")).await?;
        }
    }
    Ok(())
}

struct Loader<'a> {
    server: &'a Server,
    random: RandomGenerator,
    warehouses: i64,
}

impl Loader<'_> {
    async fn begin_copy(&self, table: &str) -> Result<CopyIn, Error> {
        CopyIn::begin(&self.server.connect().await?, table).await
    }

    /// Draws an address: two streets, city, state and zip code.
    fn draw_address(&self) -> String {
        let text = |first, last| self.random.next_text_between(first, last);
        let (one, two, city) = (text(10, 20), text(10, 20), text(10, 20));
        format!("{one}\t{two}\t{city}\t{}\t{}", self.random.next_text(2), draw_zip_code(&self.random))
    }

    /// Draws a tax or discount of up to `most` ten-thousandths.
    fn draw_rate(&self, most: i64) -> String {
        format!("0.{:04}", self.random.next_in_range(0, most))
    }

    /// Draws an amount of `first` to `last` cents.
    fn draw_amount(&self, first: i64, last: i64) -> String {
        let cents = self.random.next_in_range(first, last);
        format!("{}.{:02}", cents / 100, cents % 100)
    }

    async fn load_items(&self) -> Result<(), Error> {
        let mut copy = self.begin_copy("item").await?;
        for item in 1..=ITEM_COUNT {
            let (image, name) = (self.random.next_in_range(1, 10_000), self.random.next_text_between(14, 24));
            let (price, data) = (self.draw_amount(100, 10_000), draw_original_data(&self.random));
            copy.write_row(&format!("{item}\t{image}\t{name}\t{price}\t{data}")).await?;
        }
        copy.finish().await.map(drop)
    }

    async fn load_warehouses(&self) -> Result<(), Error> {
        let mut copy = self.begin_copy("warehouse").await?;
        for warehouse in 1..=self.warehouses {
            let (name, address, tax) =
                (self.random.next_text_between(6, 10), self.draw_address(), self.draw_rate(2_000));
            copy.write_row(&format!("{warehouse}\t{name}\t{address}\t{tax}\t300000.00")).await?;
        }
        copy.finish().await?;
        let mut copy = self.begin_copy("district").await?;
        for warehouse in 1..=self.warehouses {
            for district in 1..=DISTRICTS_PER_WAREHOUSE {
                let (name, address, tax) =
                    (self.random.next_text_between(6, 10), self.draw_address(), self.draw_rate(2_000));
                let next = ORDERS_PER_DISTRICT + 1;
                copy.write_row(&format!("{warehouse}\t{district}\t{name}\t{address}\t{tax}\t30000.00\t{next}")).await?;
            }
        }
        copy.finish().await.map(drop)
    }

    async fn load_customers(&self, warehouse: i64) -> Result<(), Error> {
        let mut copy = self.begin_copy("customer").await?;
        let mut history = self.begin_copy("history").await?;
        for district in 1..=DISTRICTS_PER_WAREHOUSE {
            for customer in 1..=CUSTOMERS_PER_DISTRICT {
                let (first, last) =
                    (self.random.next_text_between(8, 16), draw_loaded_last_name(&self.random, customer));
                let (address, phone) = (self.draw_address(), draw_digits(&self.random, 16));
                let credit = if self.random.next_below(10) == 0 { "BC" } else { "GC" };
                let (discount, data) = (self.draw_rate(5_000), self.random.next_text_between(300, 500));
                copy.write_row(&format!(
                    "{warehouse}\t{district}\t{customer}\t{first}\tOE\t{last}\t{address}\t{phone}\t{LOAD_TIMESTAMP}\t{credit}\t\
                     50000.00\t{discount}\t-10.00\t10.00\t1\t0\t{data}"
                ))
                .await?;
                let data = self.random.next_text_between(12, 24);
                history
                    .write_row(&format!(
                        "{customer}\t{district}\t{warehouse}\t{district}\t{warehouse}\t{LOAD_TIMESTAMP}\t10.00\t{data}"
                    ))
                    .await?;
            }
        }
        copy.finish().await?;
        history.finish().await.map(drop)
    }

    async fn load_orders(&self, warehouse: i64) -> Result<(), Error> {
        let mut copy = self.begin_copy("orders").await?;
        let mut new_orders = self.begin_copy("new_order").await?;
        let mut lines = self.begin_copy("order_line").await?;
        for district in 1..=DISTRICTS_PER_WAREHOUSE {
            for (order, customer) in (1..=ORDERS_PER_DISTRICT).zip(self.permutation()) {
                let is_new = order >= FIRST_NEW_ORDER;
                let carrier = if is_new { "\\N".to_owned() } else { self.random.next_in_range(1, 10).to_string() };
                let count = self.random.next_in_range(5, 15);
                copy.write_row(&format!(
                    "{warehouse}\t{district}\t{order}\t{customer}\t{LOAD_TIMESTAMP}\t{carrier}\t{count}\t1"
                ))
                .await?;
                if is_new {
                    new_orders.write_row(&format!("{warehouse}\t{district}\t{order}")).await?;
                }
                for line in 1..=count {
                    let item = self.random.next_in_range(1, ITEM_COUNT);
                    let delivered = if is_new { "\\N" } else { LOAD_TIMESTAMP };
                    let amount = if is_new { self.draw_amount(1, 999_999) } else { "0.00".to_owned() };
                    let info = self.random.next_text(24);
                    lines
                        .write_row(&format!(
                            "{warehouse}\t{district}\t{order}\t{line}\t{item}\t{warehouse}\t{delivered}\t5\t{amount}\t{info}"
                        ))
                        .await?;
                }
            }
        }
        copy.finish().await?;
        new_orders.finish().await?;
        lines.finish().await.map(drop)
    }

    async fn load_stock(&self, warehouse: i64) -> Result<(), Error> {
        let mut copy = self.begin_copy("stock").await?;
        for item in 1..=ITEM_COUNT {
            let quantity = self.random.next_in_range(10, 100);
            let districts =
                (0..DISTRICTS_PER_WAREHOUSE).map(|_| self.random.next_text(24)).collect::<Vec<_>>().join("\t");
            let data = draw_original_data(&self.random);
            copy.write_row(&format!("{warehouse}\t{item}\t{quantity}\t{districts}\t0\t0\t0\t{data}")).await?;
        }
        copy.finish().await.map(drop)
    }

    /// Returns a random permutation of a district's customers.
    fn permutation(&self) -> Vec<i64> {
        let mut customers: Vec<i64> = (1..=CUSTOMERS_PER_DISTRICT).collect();
        for last in (1..customers.len()).rev() {
            customers.swap(last, self.random.next_below(last as u64 + 1) as usize);
        }
        customers
    }
}
