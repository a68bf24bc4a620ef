//! Rows into tables: a plan's rows become shards, side by side, and the transaction gets them staged. Nothing is visible
//! before it commits, and nothing stays of a load that fails.
//!
//! Start at `load.rs` for how streams of rows become shards; `order.rs` and `cluster.rs` put rows in a table's order first.

mod cluster;
mod conform;
mod hilbert;
mod load;
mod order;
mod sample;
mod shards_of;

#[cfg(test)]
mod tests;

use planner::WritePlan;
use txn::Transaction;
use types::SqlResult;

use crate::error::from_txn;
use crate::{Execution, RunContext};

pub(crate) use load::Load;

impl Execution {
    /// Runs a write and stages what it adds to the table; how many rows that is.
    ///
    /// # Errors
    /// What a row violates (`23502`, `23514`, …), what the query finds, `57014` when cancelled; the transaction then has to
    /// be rolled back to where it was.
    pub async fn write(&self, plan: &WritePlan, transaction: &mut Transaction, context: &RunContext) -> SqlResult<u64> {
        transaction.stage(plan.before.clone()).map_err(from_txn)?;
        let Some(input) = plan.input.clone() else { return Ok(0) };
        let load = Load::new(self, &plan.table, transaction);
        let task = input.state.task_ctx();
        let stop = context.cancel.clone();
        let loaded = self
            .run(context, async move {
                let operators = input.physical(&stop).await?;
                load.run(operators, task).await
            })
            .await?;
        loaded.stage(transaction)
    }
}
