//! Loads the initial rows of clause 4.3.3 through COPY.

use super::inputs::{CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS, ORDERS, digits, loaded_name, original_data, zip};
use super::{TpccOptions, schema};
use crate::Error;
use crate::measure::server::{CopyIn, Server, batch};
use crate::random::RandomGenerator;

/// Timestamp of all loaded rows.
const LOAD_TIMESTAMP: &str = "2026-01-01 00:00:00";

pub(super) async fn load(server: &Server, options: &TpccOptions, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    schema::create(server, options, say).await?;
    let loader = Loader { server, chance: RandomGenerator::new(0x7CC), warehouses: i64::from(options.warehouses) };
    loader.items().await?;
    loader.warehouses().await?;
    // One transaction per table and warehouse: there may be many rows.
    for warehouse in 1..=loader.warehouses {
        loader.customers(warehouse).await?;
        loader.orders(warehouse).await?;
        loader.stock(warehouse).await?;
    }
    if !server.is_kiln() {
        let client = server.connect().await?;
        for table in schema::TABLES {
            batch(&client, "VACUUM ANALYZE", &format!("VACUUM ANALYZE {table}")).await?;
        }
    }
    Ok(())
}

struct Loader<'a> {
    server: &'a Server,
    chance: RandomGenerator,
    warehouses: i64,
}

impl Loader<'_> {
    async fn copy(&self, table: &str) -> Result<CopyIn, Error> {
        CopyIn::begin(&self.server.connect().await?, table).await
    }

    /// Draws an address: two streets, city, state and zip code.
    fn address(&self) -> String {
        let text = |first, last| self.chance.text_between(first, last);
        let (one, two, city) = (text(10, 20), text(10, 20), text(10, 20));
        format!("{one}\t{two}\t{city}\t{}\t{}", self.chance.text(2), zip(&self.chance))
    }

    /// Draws a tax or discount of up to `most` ten-thousandths.
    fn draw_rate(&self, most: i64) -> String {
        format!("0.{:04}", self.chance.in_range(0, most))
    }

    /// Draws an amount of `first` to `last` cents.
    fn draw_amount(&self, first: i64, last: i64) -> String {
        let cents = self.chance.in_range(first, last);
        format!("{}.{:02}", cents / 100, cents % 100)
    }

    async fn items(&self) -> Result<(), Error> {
        let mut copy = self.copy("item").await?;
        for item in 1..=ITEMS {
            let (image, name) = (self.chance.in_range(1, 10_000), self.chance.text_between(14, 24));
            let (price, data) = (self.draw_amount(100, 10_000), original_data(&self.chance));
            copy.write_row(&format!("{item}\t{image}\t{name}\t{price}\t{data}")).await?;
        }
        copy.finish().await.map(drop)
    }

    async fn warehouses(&self) -> Result<(), Error> {
        let mut copy = self.copy("warehouse").await?;
        for warehouse in 1..=self.warehouses {
            let (name, address, tax) = (self.chance.text_between(6, 10), self.address(), self.draw_rate(2_000));
            copy.write_row(&format!("{warehouse}\t{name}\t{address}\t{tax}\t300000.00")).await?;
        }
        copy.finish().await?;
        let mut copy = self.copy("district").await?;
        for warehouse in 1..=self.warehouses {
            for district in 1..=DISTRICTS {
                let (name, address, tax) = (self.chance.text_between(6, 10), self.address(), self.draw_rate(2_000));
                let next = ORDERS + 1;
                copy.write_row(&format!("{warehouse}\t{district}\t{name}\t{address}\t{tax}\t30000.00\t{next}")).await?;
            }
        }
        copy.finish().await.map(drop)
    }

    async fn customers(&self, warehouse: i64) -> Result<(), Error> {
        let mut copy = self.copy("customer").await?;
        let mut history = self.copy("history").await?;
        for district in 1..=DISTRICTS {
            for customer in 1..=CUSTOMERS {
                let (first, last) = (self.chance.text_between(8, 16), loaded_name(&self.chance, customer));
                let (address, phone) = (self.address(), digits(&self.chance, 16));
                let credit = if self.chance.below(10) == 0 { "BC" } else { "GC" };
                let (discount, data) = (self.draw_rate(5_000), self.chance.text_between(300, 500));
                copy.write_row(&format!(
                    "{warehouse}\t{district}\t{customer}\t{first}\tOE\t{last}\t{address}\t{phone}\t{LOAD_TIMESTAMP}\t{credit}\t\
                     50000.00\t{discount}\t-10.00\t10.00\t1\t0\t{data}"
                ))
                .await?;
                let data = self.chance.text_between(12, 24);
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

    async fn orders(&self, warehouse: i64) -> Result<(), Error> {
        let mut copy = self.copy("orders").await?;
        let mut new_orders = self.copy("new_order").await?;
        let mut lines = self.copy("order_line").await?;
        for district in 1..=DISTRICTS {
            for (order, customer) in (1..=ORDERS).zip(self.permutation()) {
                let is_new = order >= FIRST_NEW_ORDER;
                let carrier = if is_new { "\\N".to_owned() } else { self.chance.in_range(1, 10).to_string() };
                let count = self.chance.in_range(5, 15);
                copy.write_row(&format!(
                    "{warehouse}\t{district}\t{order}\t{customer}\t{LOAD_TIMESTAMP}\t{carrier}\t{count}\t1"
                ))
                .await?;
                if is_new {
                    new_orders.write_row(&format!("{warehouse}\t{district}\t{order}")).await?;
                }
                for line in 1..=count {
                    let item = self.chance.in_range(1, ITEMS);
                    let delivered = if is_new { "\\N" } else { LOAD_TIMESTAMP };
                    let amount = if is_new { self.draw_amount(1, 999_999) } else { "0.00".to_owned() };
                    let info = self.chance.text(24);
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

    async fn stock(&self, warehouse: i64) -> Result<(), Error> {
        let mut copy = self.copy("stock").await?;
        for item in 1..=ITEMS {
            let quantity = self.chance.in_range(10, 100);
            let districts = (0..DISTRICTS).map(|_| self.chance.text(24)).collect::<Vec<_>>().join("\t");
            let data = original_data(&self.chance);
            copy.write_row(&format!("{warehouse}\t{item}\t{quantity}\t{districts}\t0\t0\t0\t{data}")).await?;
        }
        copy.finish().await.map(drop)
    }

    /// Returns a random permutation of a district's customers.
    fn permutation(&self) -> Vec<i64> {
        let mut customers: Vec<i64> = (1..=CUSTOMERS).collect();
        for last in (1..customers.len()).rev() {
            customers.swap(last, self.chance.below(last as u64 + 1) as usize);
        }
        customers
    }
}
