//! One terminal: a connection that runs the mix, each transaction again and again until it gets through.

use tokio_postgres::Client;

use super::customer::Customers;
use super::delivery::{self, Delivery};
use super::new_order::{self, NewOrder};
use super::order_status::{self, OrderStatus};
use super::payment::{self, Payment};
use super::stock_level::{self, StockLevel};
use super::{Options, inputs};
use crate::Error;
use crate::chance::Chance;
use crate::measure::server::{Server, batch, is_retryable};
use crate::measure::{self, Done};

/// How often a transaction is tried before it counts as failed.
const TRIES_MAX: u64 = 100;

/// One connection of a terminal, with every transaction's statements prepared.
pub(super) struct Terminal {
    client: Client,
    chance: Chance,
    begin: String,
    /// Its home.
    warehouse: i32,
    /// Its district, for the stock level.
    district: i32,
    warehouses: i32,
    customers: Customers,
    new_order: NewOrder,
    payment: Payment,
    order_status: OrderStatus,
    delivery: Delivery,
    stock_level: StockLevel,
}

/// What a transaction was asked to do.
enum Work {
    NewOrder(new_order::Input),
    Payment(payment::Input),
    OrderStatus(order_status::Input),
    Delivery(delivery::Input),
    StockLevel(stock_level::Input),
}

/// How a transaction ends that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Commit,
    /// As the specification wants it: an order with an item that does not exist.
    Rollback,
}

impl Terminal {
    pub(super) async fn connect(server: &Server, options: &Options, number: usize) -> Result<Self, Error> {
        let client = server.connect().await?;
        let home = (number as i32) % options.warehouses + 1;
        Ok(Self {
            begin: format!("BEGIN ISOLATION LEVEL {}", options.isolation),
            warehouse: home,
            district: (number as i32) / options.warehouses % 10 + 1,
            warehouses: options.warehouses,
            customers: Customers::prepare(&client).await?,
            new_order: NewOrder::prepare(&client).await?,
            payment: Payment::prepare(&client).await?,
            order_status: OrderStatus::prepare(&client).await?,
            delivery: Delivery::prepare(&client).await?,
            stock_level: StockLevel::prepare(&client).await?,
            chance: Chance::new(0x7E12 + number as u64),
            client,
        })
    }

    /// 45 of 100 new orders, 43 payments, 4 each of the others.
    fn next(&self) -> Work {
        let (chance, home) = (&self.chance, self.warehouse);
        match chance.below(100) {
            0..45 => Work::NewOrder(new_order::Input::draw(chance, home, self.warehouses)),
            45..88 => Work::Payment(payment::Input::draw(chance, home, self.warehouses)),
            88..92 => Work::OrderStatus(order_status::Input::draw(chance, home)),
            92..96 => Work::Delivery(delivery::Input::draw(chance, home)),
            _ => Work::StockLevel(stock_level::Input::draw(chance, home, self.district)),
        }
    }

    async fn run(&self, work: &Work) -> Result<End, Error> {
        batch(&self.client, "BEGIN", &self.begin).await?;
        let end = match work {
            Work::NewOrder(input) => self.new_order.run(&self.client, input).await?,
            Work::Payment(input) => self.payment.run(&self.client, &self.customers, input).await?,
            Work::OrderStatus(input) => self.order_status.run(&self.client, &self.customers, input).await?,
            Work::Delivery(input) => self.delivery.run(&self.client, input).await?,
            Work::StockLevel(input) => self.stock_level.run(&self.client, input).await?,
        };
        let last = if end == End::Commit { "COMMIT" } else { "ROLLBACK" };
        batch(&self.client, last, last).await?;
        Ok(end)
    }
}

impl measure::Client for Terminal {
    async fn step(&mut self) -> Result<Done, Error> {
        let work = self.next();
        let mut retries = 0;
        loop {
            match self.run(&work).await {
                Ok(end) => {
                    let kind = match (&work, end) {
                        (Work::NewOrder(_), End::Commit) => new_order::KIND,
                        (Work::NewOrder(_), End::Rollback) => "new order taken back",
                        (Work::Payment(_), _) => "payment",
                        (Work::OrderStatus(_), _) => "order status",
                        (Work::Delivery(_), _) => "delivery",
                        (Work::StockLevel(_), _) => "stock level",
                    };
                    return Ok(Done { kind, retries, rows: 1 });
                }
                Err(error) => {
                    // Whatever state the block is in, the next transaction begins outside of it.
                    let ended = batch(&self.client, "ROLLBACK", "ROLLBACK").await;
                    if !is_retryable(&error) || ended.is_err() || retries == TRIES_MAX {
                        return Err(error);
                    }
                    retries += 1;
                }
            }
        }
    }
}

/// A district of any warehouse.
pub(super) fn any_district(chance: &Chance) -> i32 {
    chance.between(1, inputs::DISTRICTS) as i32
}

/// Another warehouse than `home`, where there is one.
pub(super) fn other_warehouse(chance: &Chance, home: i32, warehouses: i32) -> i32 {
    if warehouses == 1 {
        return home;
    }
    let other = chance.between(1, i64::from(warehouses) - 1) as i32;
    if other < home { other } else { other + 1 }
}
