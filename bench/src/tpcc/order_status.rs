//! Order-Status transaction, clause 2.6.

use tokio_postgres::{Client, Statement};

use super::client::{TransactionOutcome, draw_district};
use super::customer::{CustomerSelector, Customers};
use crate::Error;
use crate::measure::server_connection::{prepare, query_row, query_rows};
use crate::random::RandomGenerator;

/// Input of the Order-Status transaction: the customer whose last order is read.
#[derive(Debug, Clone)]
pub(super) struct Input {
    warehouse: i32,
    district: i32,
    customer: CustomerSelector,
}

impl Input {
    pub(super) fn draw(random: &RandomGenerator, home: i32) -> Self {
        Self { warehouse: home, district: draw_district(random), customer: CustomerSelector::draw(random) }
    }
}

pub(super) struct OrderStatus {
    customer: Statement,
    order: Statement,
    lines: Statement,
}

impl OrderStatus {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            customer: prepare(
                client,
                "SELECT c_first, c_middle, c_last, c_balance::float8 FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            )
            .await?,
            order: prepare(
                client,
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 \
                 ORDER BY o_id DESC LIMIT 1",
            )
            .await?,
            lines: prepare(
                client,
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount::float8, ol_delivery_d FROM order_line \
                 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            )
            .await?,
        })
    }

    pub(super) async fn run(
        &self,
        client: &Client,
        customers: &Customers,
        input: &Input,
    ) -> Result<TransactionOutcome, Error> {
        let Input { warehouse, district, customer: selector } = input;
        let customer = customers.find(client, *warehouse, *district, selector).await?;
        query_row(client, &self.customer, &[warehouse, district, &customer]).await?;
        let order: i32 = query_row(client, &self.order, &[warehouse, district, &customer]).await?.get(0);
        let found = query_rows(client, &self.lines, &[warehouse, district, &order]).await?.len();
        if found == 0 {
            return Err(Error::Rows { expected: 5, found });
        }
        Ok(TransactionOutcome::Commit)
    }
}
