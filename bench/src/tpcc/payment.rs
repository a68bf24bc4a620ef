//! Payment transaction, clause 2.5.

use tokio_postgres::{Client, Statement};

use super::client::{TransactionOutcome, draw_district, draw_other_warehouse};
use super::customer::{CustomerSelector, Customers};
use crate::Error;
use crate::measure::server_connection::{execute, prepare, query_row};
use crate::random::RandomGenerator;

/// Input of the Payment transaction.
#[derive(Debug, Clone)]
pub(super) struct Input {
    warehouse: i32,
    district: i32,
    customer_warehouse: i32,
    customer_district: i32,
    customer: CustomerSelector,
    cents: i64,
}

impl Input {
    pub(super) fn draw(random: &RandomGenerator, home: i32, warehouses: i32) -> Self {
        let district = draw_district(random);
        // 15 % of customers pay at another warehouse than their own.
        let is_home = random.next_below(100) < 85 || warehouses == 1;
        Self {
            warehouse: home,
            district,
            customer_warehouse: if is_home { home } else { draw_other_warehouse(random, home, warehouses) },
            customer_district: if is_home { district } else { draw_district(random) },
            customer: CustomerSelector::draw(random),
            cents: random.next_in_range(100, 500_000),
        }
    }
}

pub(super) struct Payment {
    warehouse: Statement,
    district: Statement,
    customer: Statement,
    bad_customer: Statement,
    credit: Statement,
    history: Statement,
}

/// SQL expression of the amount, which is sent as whole cents.
const AMOUNT_SQL: &str = "($1::bigint::numeric(12,0) / 100)::numeric(12,2)";

impl Payment {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        let customer = |also: &str| {
            format!(
                "UPDATE customer SET c_balance = c_balance - {AMOUNT_SQL}, c_ytd_payment = c_ytd_payment + {AMOUNT_SQL}, \
                 c_payment_cnt = c_payment_cnt + 1{also} WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4 \
                 RETURNING c_first, c_middle, c_last, c_balance::float8"
            )
        };
        Ok(Self {
            warehouse: prepare(
                client,
                &format!(
                    "UPDATE warehouse SET w_ytd = w_ytd + {AMOUNT_SQL} WHERE w_id = $2 \
                     RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip"
                ),
            )
            .await?,
            district: prepare(
                client,
                &format!(
                    "UPDATE district SET d_ytd = d_ytd + {AMOUNT_SQL} WHERE d_w_id = $2 AND d_id = $3 \
                     RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip"
                ),
            )
            .await?,
            customer: prepare(client, &customer("")).await?,
            bad_customer: prepare(client, &customer(", c_data = left($5::text || c_data, 500)")).await?,
            credit: prepare(
                client,
                "SELECT c_credit FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 FOR UPDATE",
            )
            .await?,
            history: prepare(
                client,
                &format!(
                    "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                     VALUES ($4, $5, $6, $3, $2, localtimestamp, {AMOUNT_SQL}, $7)"
                ),
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
        let Input { warehouse, district, customer_warehouse, customer_district, customer: selector, cents } = input;
        let place = query_row(client, &self.warehouse, &[cents, warehouse]).await?;
        let warehouse_name: &str = place.get(0);
        let place = query_row(client, &self.district, &[cents, warehouse, district]).await?;
        let district_name: &str = place.get(0);
        let customer = customers.find(client, *customer_warehouse, *customer_district, selector).await?;
        let found = query_row(client, &self.credit, &[customer_warehouse, customer_district, &customer]).await?;
        let credit: &str = found.get(0);
        if credit == "BC" {
            let note = format!(
                "{customer} {customer_district} {customer_warehouse} {district} {warehouse} {}.{:02}|",
                cents / 100,
                cents % 100
            );
            query_row(client, &self.bad_customer, &[cents, customer_warehouse, customer_district, &customer, &note])
                .await?;
        } else {
            query_row(client, &self.customer, &[cents, customer_warehouse, customer_district, &customer]).await?;
        }
        let data = format!("{warehouse_name}    {district_name}");
        execute(
            client,
            &self.history,
            &[cents, warehouse, district, &customer, customer_district, customer_warehouse, &data],
        )
        .await?;
        Ok(TransactionOutcome::Commit)
    }
}
