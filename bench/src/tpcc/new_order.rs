//! New-Order transaction, clause 2.4.

use tokio_postgres::{Client, Statement};

use super::client::{TransactionOutcome, draw_district, draw_other_warehouse};
use super::random_inputs;
use crate::Error;
use crate::measure::server_connection::{execute, prepare, query_row, query_rows};
use crate::random::RandomGenerator;

/// Name of the transaction in reports.
pub(super) const OPERATION_NAME: &str = "new order";

/// Input of the New-Order transaction.
#[derive(Debug, Clone)]
pub(super) struct Input {
    warehouse: i32,
    district: i32,
    customer: i32,
    lines: Vec<Line>,
}

#[derive(Debug, Clone)]
struct Line {
    item: i32,
    supplier: i32,
    quantity: i32,
}

/// Item number that does not exist.
const UNUSED_ITEM: i32 = random_inputs::ITEM_COUNT as i32 + 1;

impl Input {
    pub(super) fn draw(random: &RandomGenerator, home: i32, warehouses: i32) -> Self {
        let count = random.next_in_range(5, 15);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| Line {
                item: random_inputs::draw_item(random),
                supplier: if random.next_below(100) == 0 {
                    draw_other_warehouse(random, home, warehouses)
                } else {
                    home
                },
                quantity: random.next_in_range(1, 10) as i32,
            })
            .collect();
        // 1 % of orders have an unused item number in the last line and roll back.
        if random.next_below(100) == 0
            && let Some(last) = lines.last_mut()
        {
            last.item = UNUSED_ITEM;
        }
        Self { warehouse: home, district: draw_district(random), customer: random_inputs::draw_customer(random), lines }
    }
}

pub(super) struct NewOrder {
    warehouse: Statement,
    customer: Statement,
    district: Statement,
    order: Statement,
    new_order: Statement,
    item: Statement,
    /// One statement per district.
    stock: Vec<Statement>,
    update_stock: Statement,
    line: Statement,
}

impl NewOrder {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        let mut stock = Vec::with_capacity(10);
        for district in 1..=random_inputs::DISTRICTS_PER_WAREHOUSE {
            let query = format!(
                "SELECT s_quantity, s_dist_{district:02}, s_data FROM stock WHERE s_w_id = $1 AND s_i_id = $2 FOR UPDATE"
            );
            stock.push(prepare(client, &query).await?);
        }
        Ok(Self {
            warehouse: prepare(client, "SELECT w_tax::float8 FROM warehouse WHERE w_id = $1").await?,
            customer: prepare(
                client,
                "SELECT c_discount::float8, c_last, c_credit FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            )
            .await?,
            district: prepare(
                client,
                "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 \
                 RETURNING d_next_o_id, d_tax::float8",
            )
            .await?,
            order: prepare(
                client,
                "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
                 VALUES ($1, $2, $3, $4, localtimestamp, NULL, $5, $6)",
            )
            .await?,
            new_order: prepare(client, "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, $3)").await?,
            item: prepare(client, "SELECT i_price::float8, i_name, i_data FROM item WHERE i_id = $1").await?,
            stock,
            update_stock: prepare(
                client,
                "UPDATE stock SET s_quantity = $1, s_ytd = s_ytd + $2, s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + $3 WHERE s_w_id = $4 AND s_i_id = $5",
            )
            .await?,
            line: prepare(
                client,
                "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
                 ol_quantity, ol_amount, ol_dist_info) VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, $8::float8, $9)",
            )
            .await?,
        })
    }

    pub(super) async fn run(&self, client: &Client, input: &Input) -> Result<TransactionOutcome, Error> {
        let Input { warehouse, district, customer, lines } = input;
        query_row(client, &self.warehouse, &[warehouse]).await?;
        query_row(client, &self.customer, &[warehouse, district, customer]).await?;
        let next: i32 = query_row(client, &self.district, &[warehouse, district]).await?.get(0);
        let order = next - 1;
        let count = lines.len() as i32;
        let all_local = i32::from(lines.iter().all(|line| line.supplier == *warehouse));
        execute(client, &self.order, &[warehouse, district, &order, customer, &count, &all_local]).await?;
        execute(client, &self.new_order, &[warehouse, district, &order]).await?;
        for (number, line) in (1_i32..).zip(lines) {
            let found = query_rows(client, &self.item, &[&line.item]).await?;
            let Some(item) = found.first() else { return Ok(TransactionOutcome::Rollback) };
            let price: f64 = item.get(0);
            let stock = query_row(client, &self.stock[(*district - 1) as usize], &[&line.supplier, &line.item]).await?;
            let (quantity, info): (i32, &str) = (stock.get(0), stock.get(1));
            let left = quantity - line.quantity;
            let left = if left < 10 { left + 91 } else { left };
            let remote = i32::from(line.supplier != *warehouse);
            execute(client, &self.update_stock, &[&left, &line.quantity, &remote, &line.supplier, &line.item]).await?;
            let amount = (price * f64::from(line.quantity) * 100.0).round() / 100.0;
            execute(
                client,
                &self.line,
                &[warehouse, district, &order, &number, &line.item, &line.supplier, &line.quantity, &amount, &info],
            )
            .await?;
        }
        Ok(TransactionOutcome::Commit)
    }
}
