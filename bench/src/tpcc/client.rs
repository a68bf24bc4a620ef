//! TPC-C terminal: a connection that runs the transaction mix and retries conflicts.

use tokio_postgres::Client;

use super::customer::Customers;
use super::delivery::{self, Delivery};
use super::new_order::{self, NewOrder};
use super::order_status::{self, OrderStatus};
use super::payment::{self, Payment};
use super::stock_level::{self, StockLevel};
use super::{TpccOptions, random_inputs};
use crate::Error;
use crate::measure::server_connection::{Server, is_retryable, run_statements};
use crate::measure::{self, CompletedOperation};
use crate::random::RandomGenerator;

/// Retries after which a transaction counts as failed.
const RETRIES_MAX: u64 = 100;

/// Connection with the statements of every transaction prepared.
pub(super) struct Terminal {
    client: Client,
    random: RandomGenerator,
    begin: String,
    /// Home warehouse.
    home_warehouse: i32,
    /// District for the Stock-Level transaction.
    district: i32,
    warehouses: i32,
    customers: Customers,
    new_order: NewOrder,
    payment: Payment,
    order_status: OrderStatus,
    delivery: Delivery,
    stock_level: StockLevel,
}

/// Transaction type with its input.
enum TransactionInput {
    NewOrder(new_order::Input),
    Payment(payment::Input),
    OrderStatus(order_status::Input),
    Delivery(delivery::Input),
    StockLevel(stock_level::Input),
}

/// MeasurementOutcome of a successful transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransactionOutcome {
    Commit,
    /// Rollback required by the specification, for an order with an unused item number.
    Rollback,
}

impl Terminal {
    pub(super) async fn connect(server: &Server, options: &TpccOptions, number: usize) -> Result<Self, Error> {
        let client = server.connect().await?;
        let home = (number as i32) % options.warehouses + 1;
        Ok(Self {
            begin: format!("BEGIN ISOLATION LEVEL {}", options.isolation),
            home_warehouse: home,
            district: (number as i32) / options.warehouses % 10 + 1,
            warehouses: options.warehouses,
            customers: Customers::prepare(&client).await?,
            new_order: NewOrder::prepare(&client).await?,
            payment: Payment::prepare(&client).await?,
            order_status: OrderStatus::prepare(&client).await?,
            delivery: Delivery::prepare(&client).await?,
            stock_level: StockLevel::prepare(&client).await?,
            random: RandomGenerator::new(0x7E12 + number as u64),
            client,
        })
    }

    /// Draws the next transaction: 45 % New-Order, 43 % Payment, 4 % each of the others.
    fn draw_transaction(&self) -> TransactionInput {
        let (random, home) = (&self.random, self.home_warehouse);
        match random.next_below(100) {
            0..45 => TransactionInput::NewOrder(new_order::Input::draw(random, home, self.warehouses)),
            45..88 => TransactionInput::Payment(payment::Input::draw(random, home, self.warehouses)),
            88..92 => TransactionInput::OrderStatus(order_status::Input::draw(random, home)),
            92..96 => TransactionInput::Delivery(delivery::Input::draw(random, home)),
            _ => TransactionInput::StockLevel(stock_level::Input::draw(random, home, self.district)),
        }
    }

    async fn run(&self, work: &TransactionInput) -> Result<TransactionOutcome, Error> {
        run_statements(&self.client, "BEGIN", &self.begin).await?;
        let end = match work {
            TransactionInput::NewOrder(input) => self.new_order.run(&self.client, input).await?,
            TransactionInput::Payment(input) => self.payment.run(&self.client, &self.customers, input).await?,
            TransactionInput::OrderStatus(input) => self.order_status.run(&self.client, &self.customers, input).await?,
            TransactionInput::Delivery(input) => self.delivery.run(&self.client, input).await?,
            TransactionInput::StockLevel(input) => self.stock_level.run(&self.client, input).await?,
        };
        let last = if end == TransactionOutcome::Commit { "COMMIT" } else { "ROLLBACK" };
        run_statements(&self.client, last, last).await?;
        Ok(end)
    }
}

impl measure::BenchmarkClient for Terminal {
    async fn run_operation(&mut self) -> Result<CompletedOperation, Error> {
        let work = self.draw_transaction();
        let mut retries = 0;
        loop {
            match self.run(&work).await {
                Ok(end) => {
                    let kind = match (&work, end) {
                        (TransactionInput::NewOrder(_), TransactionOutcome::Commit) => new_order::OPERATION_NAME,
                        (TransactionInput::NewOrder(_), TransactionOutcome::Rollback) => "new order taken back",
                        (TransactionInput::Payment(_), _) => "payment",
                        (TransactionInput::OrderStatus(_), _) => "order status",
                        (TransactionInput::Delivery(_), _) => "delivery",
                        (TransactionInput::StockLevel(_), _) => "stock level",
                    };
                    return Ok(CompletedOperation { kind, retries, rows: 1 });
                }
                Err(error) => {
                    // Leave a failed transaction block, so that the next transaction starts outside of one.
                    let ended = run_statements(&self.client, "ROLLBACK", "ROLLBACK").await;
                    if !is_retryable(&error) || ended.is_err() || retries == RETRIES_MAX {
                        return Err(error);
                    }
                    retries += 1;
                }
            }
        }
    }
}

/// Draws a district number.
pub(super) fn draw_district(random: &RandomGenerator) -> i32 {
    random.next_in_range(1, random_inputs::DISTRICTS_PER_WAREHOUSE) as i32
}

/// Draws a warehouse other than `home`, if there are several.
pub(super) fn draw_other_warehouse(random: &RandomGenerator, home: i32, warehouses: i32) -> i32 {
    if warehouses == 1 {
        return home;
    }
    let other = random.next_in_range(1, i64::from(warehouses) - 1) as i32;
    if other < home { other } else { other + 1 }
}
