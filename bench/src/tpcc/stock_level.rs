//! Stock-Level transaction, clause 2.8.

use tokio_postgres::{Client, Statement};

use super::client::TransactionOutcome;
use crate::Error;
use crate::measure::server_connection::{prepare, query_row};
use crate::random::RandomGenerator;

/// Input of the Stock-Level transaction: the district whose last 20 orders are checked, and the stock threshold.
#[derive(Debug, Clone)]
pub(super) struct Input {
    warehouse: i32,
    district: i32,
    threshold: i32,
}

impl Input {
    pub(super) fn draw(random: &RandomGenerator, home: i32, district: i32) -> Self {
        Self { warehouse: home, district, threshold: random.next_in_range(10, 20) as i32 }
    }
}

pub(super) struct StockLevel {
    district: Statement,
    low_stock: Statement,
}

impl StockLevel {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            district: prepare(client, "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2").await?,
            low_stock: prepare(
                client,
                "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $3 \
                 AND ol_o_id >= $3 - 20 AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $4",
            )
            .await?,
        })
    }

    pub(super) async fn run(&self, client: &Client, input: &Input) -> Result<TransactionOutcome, Error> {
        let Input { warehouse, district, threshold } = input;
        let next: i32 = query_row(client, &self.district, &[warehouse, district]).await?.get(0);
        query_row(client, &self.low_stock, &[warehouse, district, &next, threshold]).await?;
        Ok(TransactionOutcome::Commit)
    }
}
