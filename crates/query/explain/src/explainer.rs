//! Service that runs EXPLAIN statements.

use std::sync::Arc;
use std::time::Duration;

use binder::{ExplainFormat, ExplainPlan, QueryPlan, StatementPlan};
use dml::DmlExecutor;
use exchange::{PreparedQuery, Purpose, RunLocation};
use executor::{Executor, RunContext};
use futures::TryStreamExt;
use futures::future::BoxFuture;
use row_locks::AttemptOutcome;
use txn::Transaction;
use types::{Clock, SqlError, SqlResult};

use crate::plan_node::Node;
use crate::{json, key_lookup_tree, text, tree};

/// Tree and timings of an explained statement.
#[derive(Debug)]
pub(crate) struct Explanation {
    pub(crate) root: Node,
    pub(crate) planning_time: Duration,
    /// Execution time, with ANALYZE.
    pub(crate) execution_time: Option<Duration>,
    /// Peak memory of the statement in bytes, with ANALYZE.
    pub(crate) peak_memory_bytes: Option<u64>,
    /// Location of the run, if the query may run in other processes.
    pub(crate) location: Option<RunLocation>,
}

/// Service that answers EXPLAIN.
#[derive(Debug)]
pub struct Explainer {
    pub(crate) executor: Arc<Executor>,
    pub(crate) dml: Arc<DmlExecutor>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Explainer {
    /// Creates the service over `executor`, which plans and runs queries, and `dml`, which changes rows.
    #[must_use]
    pub fn new(executor: Arc<Executor>, dml: Arc<DmlExecutor>, clock: Arc<dyn Clock>) -> Self {
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
    ) -> BoxFuture<'a, SqlResult<AttemptOutcome<Vec<String>>>> {
        Box::pin(self.explain_unboxed(plan, transaction, context))
    }

    async fn explain_unboxed(
        &self,
        plan: &ExplainPlan,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<AttemptOutcome<Vec<String>>> {
        let attempt = match plan.inner.as_ref() {
            StatementPlan::Query(query) if !query.locks.is_empty() => {
                self.explain_locking(plan, query, transaction, context).await?
            }
            StatementPlan::Query(query) => AttemptOutcome::Done(self.explain_query(plan, query, context).await?),
            StatementPlan::CopyTo(copy) => AttemptOutcome::Done(self.explain_query(plan, &copy.query, context).await?),
            StatementPlan::Write(write) => self.explain_write(plan, write, transaction, context).await?,
            StatementPlan::Modify(modify) => self.explain_modify(plan, modify, transaction, context).await?,
            _ => return Err(SqlError::unsupported("EXPLAIN of this statement")),
        };
        let AttemptOutcome::Done(explained) = attempt else { return Ok(AttemptOutcome::Conflict) };
        Ok(AttemptOutcome::Done(match plan.format {
            ExplainFormat::Text => text::to_lines(&explained, plan),
            ExplainFormat::Json => vec![json::to_document(&explained, plan)],
        }))
    }

    async fn explain_query(
        &self,
        plan: &ExplainPlan,
        query: &QueryPlan,
        context: &RunContext,
    ) -> SqlResult<Explanation> {
        let purpose = if plan.analyze { Purpose::Analyze } else { Purpose::Explain };
        let (prepared, planning) = self.plan_operators(query, context, purpose).await?;
        let execution = match plan.analyze {
            true => {
                let start = self.clock.monotonic();
                let rows =
                    self.executor.start_stream(Arc::clone(&prepared.operators), Arc::clone(&prepared.task), context);
                rows.try_for_each(async |_| Ok(())).await?;
                Some(self.clock.monotonic().saturating_sub(start))
            }
            false => None,
        };
        let root = tree::build_tree(&prepared, plan, &context.settings);
        let root = key_lookup_tree::show_index_scans(root, &plan.inner, context, plan.analyze);
        let memory = plan.analyze.then(|| context.memory.used().peak as u64);
        Ok(Explanation {
            root,
            planning_time: planning,
            execution_time: execution,
            peak_memory_bytes: memory,
            location: prepared.location(),
        })
    }

    /// Plans the operators of a query, and returns them with the planning time.
    pub(crate) async fn plan_operators(
        &self,
        query: &QueryPlan,
        context: &RunContext,
        purpose: Purpose,
    ) -> SqlResult<(PreparedQuery, Duration)> {
        let start = self.clock.monotonic();
        let prepared = self.executor.prepare(query, context, purpose).await?;
        Ok((prepared, self.clock.monotonic().saturating_sub(start)))
    }
}
