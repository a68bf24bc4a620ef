//! Service that runs EXPLAIN statements.

use std::sync::Arc;
use std::time::Duration;

use binder::{ExplainFormat, ExplainPlan, Planned, QueryPlan};
use dml::Dml;
use exchange::{Prepared, Purpose, Spread};
use executor::{Executor, RunContext};
use futures::TryStreamExt;
use futures::future::BoxFuture;
use row_locks::Attempt;
use txn::Transaction;
use types::{Clock, SqlError, SqlResult};

use crate::node::Node;
use crate::{by_key, json, text, tree};

/// Tree and timings of an explained statement.
#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) root: Node,
    pub(crate) planning: Duration,
    /// Execution time, with ANALYZE.
    pub(crate) execution: Option<Duration>,
    /// Peak memory of the statement in bytes, with ANALYZE.
    pub(crate) memory: Option<u64>,
    /// Location of the run, if the query may run in other processes.
    pub(crate) place: Option<Spread>,
}

/// Service that answers EXPLAIN.
#[derive(Debug)]
pub struct Explainer {
    pub(crate) executor: Arc<Executor>,
    pub(crate) dml: Arc<Dml>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Explainer {
    /// Creates the service over `executor`, which plans and runs queries, and `dml`, which changes rows.
    #[must_use]
    pub fn new(executor: Arc<Executor>, dml: Arc<Dml>, clock: Arc<dyn Clock>) -> Self {
        Self { executor, dml, clock }
    }

    /// Returns the lines of the answer; a JSON document is one line. With ANALYZE the statement is run; its changes are
    /// staged.
    ///
    /// # Errors
    /// Errors of the statement; `0A000` for a statement without a plan.
    pub fn explain<'a>(
        &'a self,
        plan: &'a ExplainPlan,
        transaction: &'a mut Transaction,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<Attempt<Vec<String>>>> {
        Box::pin(self.explain_unboxed(plan, transaction, context))
    }

    async fn explain_unboxed(
        &self,
        plan: &ExplainPlan,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Attempt<Vec<String>>> {
        let attempt = match plan.inner.as_ref() {
            Planned::Query(query) if !query.locks.is_empty() => {
                self.explain_locking(plan, query, transaction, context).await?
            }
            Planned::Query(query) => Attempt::Done(self.explain_query(plan, query, context).await?),
            Planned::CopyTo(copy) => Attempt::Done(self.explain_query(plan, &copy.query, context).await?),
            Planned::Write(write) => self.explain_write(plan, write, transaction, context).await?,
            Planned::Modify(modify) => self.explain_modify(plan, modify, transaction, context).await?,
            _ => return Err(SqlError::unsupported("EXPLAIN of this statement")),
        };
        let Attempt::Done(explained) = attempt else { return Ok(Attempt::Again) };
        Ok(Attempt::Done(match plan.format {
            ExplainFormat::Text => text::lines(&explained, plan),
            ExplainFormat::Json => vec![json::document(&explained, plan)],
        }))
    }

    async fn explain_query(&self, plan: &ExplainPlan, query: &QueryPlan, context: &RunContext) -> SqlResult<Explained> {
        let purpose = if plan.analyze { Purpose::Measure } else { Purpose::Show };
        let (prepared, planning) = self.operators(query, context, purpose).await?;
        let execution = match plan.analyze {
            true => {
                let start = self.clock.monotonic();
                let rows = self.executor.stream(Arc::clone(&prepared.operators), Arc::clone(&prepared.task), context);
                rows.try_for_each(async |_| Ok(())).await?;
                Some(self.clock.monotonic().saturating_sub(start))
            }
            false => None,
        };
        let root = tree::tree(&prepared, plan, &context.settings);
        let root = by_key::shown(root, &plan.inner, context, plan.analyze);
        let memory = plan.analyze.then(|| context.memory.used().most as u64);
        Ok(Explained { root, planning, execution, memory, place: prepared.spread() })
    }

    /// Plans the operators of a query, and returns them with the planning time.
    pub(crate) async fn operators(
        &self,
        query: &QueryPlan,
        context: &RunContext,
        purpose: Purpose,
    ) -> SqlResult<(Prepared, Duration)> {
        let start = self.clock.monotonic();
        let prepared = self.executor.prepared(query, context, purpose).await?;
        Ok((prepared, self.clock.monotonic().saturating_sub(start)))
    }
}
