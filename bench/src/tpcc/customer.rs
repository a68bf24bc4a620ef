//! Customer selection: by number, or by last name (the middle match).

use tokio_postgres::{Client, Statement};

use super::random_inputs;
use crate::Error;
use crate::measure::server_connection::{prepare, query_rows};
use crate::random::RandomGenerator;

/// Customer selector in a transaction's input.
#[derive(Debug, Clone)]
pub(super) enum CustomerSelector {
    Number(i32),
    Name(String),
}

impl CustomerSelector {
    /// Draws a selector: 60 % by name.
    pub(super) fn draw(random: &RandomGenerator) -> Self {
        if random.next_below(100) < 60 {
            Self::Name(random_inputs::draw_last_name(random))
        } else {
            Self::Number(random_inputs::draw_customer(random))
        }
    }
}

pub(super) struct Customers {
    by_name: Statement,
}

impl Customers {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        let by_name = "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first";
        Ok(Self { by_name: prepare(client, by_name).await? })
    }

    /// Returns the number of the selected customer.
    pub(super) async fn find(
        &self,
        client: &Client,
        warehouse: i32,
        district: i32,
        selector: &CustomerSelector,
    ) -> Result<i32, Error> {
        match selector {
            CustomerSelector::Number(number) => Ok(*number),
            CustomerSelector::Name(name) => {
                let found = query_rows(client, &self.by_name, &[&warehouse, &district, name]).await?;
                // The match at position ⌈n/2⌉, counted from 1.
                let middle = found.len().div_ceil(2).checked_sub(1);
                let middle =
                    middle.and_then(|middle| found.get(middle)).ok_or(Error::Rows { expected: 1, found: 0 })?;
                Ok(middle.get(0))
            }
        }
    }
}
