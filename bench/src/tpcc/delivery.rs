//! Delivery transaction, clause 2.7: delivers the oldest new order of each district, all in one transaction.

use tokio_postgres::{Client, Statement};

use super::client::TransactionOutcome;
use super::random_inputs;
use crate::Error;
use crate::measure::server_connection::{execute, prepare, query_row, query_rows};
use crate::random::RandomGenerator;

/// Input of the Delivery transaction.
#[derive(Debug, Clone)]
pub(super) struct Input {
    warehouse: i32,
    carrier: i32,
}

impl Input {
    pub(super) fn draw(random: &RandomGenerator, home: i32) -> Self {
        Self { warehouse: home, carrier: random.next_in_range(1, 10) as i32 }
    }
}

pub(super) struct Delivery {
    oldest: Statement,
    delete_new_order: Statement,
    order: Statement,
    lines: Statement,
    amount: Statement,
    customer: Statement,
}

impl Delivery {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            oldest: prepare(client, "SELECT min(no_o_id) FROM new_order WHERE no_w_id = $1 AND no_d_id = $2").await?,
            delete_new_order: prepare(client, "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3").await?,
            order: prepare(
                client,
                "UPDATE orders SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 AND o_id = $4 RETURNING o_c_id",
            )
            .await?,
            lines: prepare(
                client,
                "UPDATE order_line SET ol_delivery_d = localtimestamp WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            )
            .await?,
            amount: prepare(
                client,
                "SELECT (sum(ol_amount) * 100)::bigint FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            )
            .await?,
            customer: prepare(
                client,
                "UPDATE customer SET c_balance = c_balance + ($1::bigint::numeric(12,0) / 100)::numeric(12,2), \
                 c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
            )
            .await?,
        })
    }

    pub(super) async fn run(&self, client: &Client, input: &Input) -> Result<TransactionOutcome, Error> {
        let Input { warehouse, carrier } = input;
        for district in 1..=random_inputs::DISTRICTS_PER_WAREHOUSE as i32 {
            let Some(order) = self.take_oldest(client, *warehouse, district).await? else { continue };
            let customer: i32 = query_row(client, &self.order, &[carrier, warehouse, &district, &order]).await?.get(0);
            execute(client, &self.lines, &[warehouse, &district, &order]).await?;
            let cents: i64 = query_row(client, &self.amount, &[warehouse, &district, &order]).await?.get(0);
            execute(client, &self.customer, &[&cents, warehouse, &district, &customer]).await?;
        }
        Ok(TransactionOutcome::Commit)
    }

    /// Deletes the oldest undelivered order and returns its number; takes the next one if another delivery was
    /// faster.
    async fn take_oldest(&self, client: &Client, warehouse: i32, district: i32) -> Result<Option<i32>, Error> {
        loop {
            let found = query_rows(client, &self.oldest, &[&warehouse, &district]).await?;
            let oldest: Option<i32> = found.first().and_then(|row| row.get(0));
            let Some(oldest) = oldest else { return Ok(None) };
            if execute(client, &self.delete_new_order, &[&warehouse, &district, &oldest]).await? == 1 {
                return Ok(Some(oldest));
            }
        }
    }
}
