//! Rows into tables: a plan's rows become shards, side by side, and the transaction gets them staged. Nothing is visible
//! before it commits, and nothing stays of a load that fails.
//!
//! Start at `load.rs` for how streams of rows become shards; `order.rs` and `cluster.rs` put rows in a table's order first.

mod cluster;
mod conform;
mod gathered;
mod hilbert;
mod load;
mod order;
mod sample;
mod shards_of;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use catalog::Storage;
use planner::WritePlan;
use txn::Transaction;
use txn::locks::TableLock;
use types::SqlResult;

use crate::error::from_txn;
use crate::modify::{Attempt, Modified, Waits};
use crate::{Execution, RunContext};

pub(crate) use load::Load;
pub(crate) use order::ordered;
pub(crate) use shards_of::ShardsOf;

impl Execution {
    /// Runs a write and stages what it adds to the table; how many rows that is.
    ///
    /// # Errors
    /// What a row violates (`23502`, `23514`, …), what the query finds, `57014` when cancelled; the transaction then has to
    /// be rolled back to where it was.
    pub async fn write(
        &self,
        plan: &WritePlan,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Attempt<Modified>> {
        if plan.before.is_empty() {
            let waits = Waits::of(context);
            let locked = transaction.lock_table(plan.table.oid, TableLock::RowExclusive, waits.wait());
            if waits.interruptibly(locked).await?.waited {
                return Ok(Attempt::Again);
            }
        }
        transaction.stage(plan.before.clone()).map_err(from_txn)?;
        let Some(input) = plan.input.clone() else { return Ok(Attempt::Done(Modified::none())) };
        if gathered::is_gathered(plan) {
            return self.write_gathered(plan, &input, transaction, context).await;
        }
        let load = Load::new(self, &plan.table, transaction, fresh_rows_max(plan.table.storage, context));
        let task = input.state.task_ctx();
        let stop = context.cancel.clone();
        let (clock, ran) = (Arc::clone(&self.clock), Arc::clone(&context.ran));
        let loaded = self
            .run(context, async move {
                let start = clock.monotonic();
                let operators = input.physical(&stop).await?;
                ran.note(&operators, clock.monotonic().saturating_sub(start));
                load.run(operators, task).await
            })
            .await?;
        let rows = loaded.stage(transaction)?;
        Ok(Attempt::Done(Modified { rows, returning: Vec::new() }))
    }
}

/// How many rows one statement may add as fresh ones; more become shards at once.
fn fresh_rows_max(storage: Storage, context: &RunContext) -> usize {
    match storage {
        Storage::Row => usize::MAX,
        Storage::Column => 0,
        Storage::Hybrid => context.settings.direct_load_rows(),
    }
}
