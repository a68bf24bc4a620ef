//! Primary-key fast path: runs SELECT, INSERT, UPDATE and DELETE over the few rows that an index finds, or over rows of
//! VALUES, without DataFusion operators and without query threads.
//!
//! Never changes rows: it returns the rows that a statement reads and computes their new values; locking and writing
//! are done by the caller.
//!
//! Start at [`CompiledKeyLookup`] and [`KeyLookupRun`]. A statement's plan is compiled once into a program, and the
//! program's expressions once per combination of parameter types. Parameters are columns beside those of the rows, so
//! that new values need no new compilation. Whatever the fast path cannot run is run by the plan's operators.
//!
//! - `lookup_chain.rs`: the logical plan as one source of rows and a list of steps,
//! - `compiled_chain.rs`: a chain with its expressions compiled for certain parameter types,
//! - `run_lookup.rs`, `nonblocking.rs`: runs of a compiled chain, the latter over unflushed rows alone and therefore
//!   without waiting,
//! - `index_range.rs`, `index_join.rs`, `values_source.rs`, `unnest.rs`: the sources of rows: index ranges, inner joins
//!   by index, VALUES, UNNEST,
//! - `compiled_steps.rs`, `vectorized_expression.rs`: evaluation of the steps, on Arrow arrays,
//! - `row_projection.rs`, `value_expression.rs`: evaluation of projections value by value, without arrays,
//! - `stored_columns.rs`, `row_update.rs`: SELECTs that return stored columns unchanged, and UPDATEs that replace
//!   columns of stored rows.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::RecordBatch;
use binder::{QueryPlan, StatementPlan};
use catalog::Table;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as DfResult, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan};
use functions::ValueLifetime;
use parking_lot::Mutex;
use rowstore::Tuple;
use scan::{KeyLookup, LocatedRow};
use session_context::EvaluationContext;
use txn::Transaction;
use types::{ColumnId, SqlError, SqlResult};

use self::compiled_chain::CompiledChain;
use self::lookup_chain::Chain;

mod compiled_chain;
mod compiled_steps;
mod index_join;
mod index_range;
mod lookup_chain;
mod nonblocking;
mod row_projection;
mod row_update;
mod run_lookup;
mod stored_columns;
mod unnest;
mod value_expression;
mod values_source;
mod vectorized_expression;

pub use stored_columns::StoredRows;

/// Maximum number of rows that a run reads; a statement that needs more is run by its plan.
const ROWS_MAX: usize = 8192;

/// Statement compiled for the fast path.
#[derive(Debug)]
pub struct CompiledKeyLookup {
    /// Plan of the statement, with its parameters as placeholders.
    pub planned: StatementPlan,
    chain: ChainCache,
    /// ON CONFLICT DO UPDATE, over the existing rows, each beside the row that was to be inserted.
    conflict_update: Option<ChainCache>,
}

/// Chain with its compiled forms, one per combination of parameter types: the precision and scale of numeric parameters
/// differ from run to run.
#[derive(Debug)]
struct ChainCache {
    chain: Chain,
    /// Compiled forms in order of use, the most recently used one last.
    compiled: Mutex<Vec<Arc<CompiledChain>>>,
}

/// Maximum number of compiled forms cached for one chain.
const COMPILED_CHAINS_MAX: usize = 16;

/// Returns true if a plan calls a function whose result can be far larger than its arguments: such results are computed
/// on query threads, not on the threads that serve connections.
fn may_return_large_values(plan: &LogicalPlan) -> DfResult<bool> {
    let is_large = |expr: &Expr| {
        let names =
            ["repeat", "lpad", "rpad", "format", "replace", "regexp_replace", "array_to_string", "jsonb_pretty"];
        Ok(matches!(expr, Expr::ScalarFunction(call) if names.contains(&call.name())))
    };
    plan.exists(|node| {
        let mut found = false;
        node.apply_expressions(|expr| {
            found |= expr.exists(is_large)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(found)
    })
}

impl CompiledKeyLookup {
    /// Compiles a SELECT, INSERT, UPDATE or DELETE; `None` for all other statements and for those that need operators.
    /// The program holds the plan and, with it, the snapshot of the rows that the plan was made for, if any.
    #[must_use]
    pub fn compile(planned: &StatementPlan) -> Option<Self> {
        let input = rows_query(planned)?;
        if may_return_large_values(&input.plan).ok()? {
            return None;
        }
        let mut rows = ChainCache::compile(input)?;
        if rows.chain.is_joined() && !matches!(planned, StatementPlan::Query(plan) if plan.locks.is_empty()) {
            return None;
        }
        rows.chain.locks_rows = matches!(planned, StatementPlan::Query(plan) if plan.locks.len() == 1);
        rows.chain.is_update = matches!(planned, StatementPlan::Modify(plan) if row_update::is_plain_update(plan));
        let update = match planned {
            StatementPlan::Write(write) => write.conflict.as_ref().and_then(|conflict| conflict.update.as_ref()),
            _ => None,
        };
        let update = match update {
            Some(update) if may_return_large_values(&update.plan.plan).ok()? => return None,
            Some(update) => Some(ChainCache::compile(&update.plan)?),
            None => None,
        };
        Some(Self { planned: planned.clone(), chain: rows, conflict_update: update })
    }

    /// Returns true if each run needs the session of its statement.
    #[must_use]
    pub fn needs_session(&self) -> bool {
        self.chain.needs_session() || self.conflict_update.as_ref().is_some_and(ChainCache::needs_session)
    }

    /// Returns the indexes that find the rows, in the order in which they are read; empty if the rows come from no
    /// table or no index helps.
    pub fn indexes(&self) -> Vec<IndexUse> {
        self.chain.prepare(&[], None).map(|ready| ready.compiled.index_uses()).unwrap_or_default()
    }
}

impl ChainCache {
    fn compile(query: &QueryPlan) -> Option<Self> {
        let chain = Chain::try_from_plan(&query.plan)?.with_statement_constants().ok()?;
        Some(Self { chain, compiled: Mutex::default() })
    }

    /// Returns true if expressions depend on the statement's session.
    fn needs_session(&self) -> bool {
        self.depends_on_statement() || !self.chain.statement_constants.is_empty()
    }

    fn depends_on_statement(&self) -> bool {
        self.chain.value_lifetime == ValueLifetime::Statement
    }

    /// Returns the compiled chain for a statement together with its parameters.
    fn prepare<'a>(
        &self,
        values: &'a [ScalarValue],
        session: Option<&Arc<EvaluationContext>>,
    ) -> SqlResult<PreparedRun<'a>> {
        let mut values = Cow::Borrowed(values);
        if !self.chain.statement_constants.is_empty() {
            let moments = self
                .chain
                .statement_constants
                .iter()
                .map(|moment| vectorized_expression::evaluate_statement_constant(moment, session));
            let moments = moments.collect::<SqlResult<Vec<_>>>()?;
            values.to_mut().splice(0..0, moments);
        }
        Ok(PreparedRun { compiled: self.get_or_compile(&values, session)?, parameters: values })
    }

    fn get_or_compile(
        &self,
        values: &[ScalarValue],
        session: Option<&Arc<EvaluationContext>>,
    ) -> SqlResult<Arc<CompiledChain>> {
        if let Some(session) = session.filter(|_| self.depends_on_statement()) {
            return CompiledChain::compile(&self.chain.for_statement(session)?, values).map(Arc::new);
        }
        let mut compiled = self.compiled.lock();
        if let Some(at) = compiled.iter().rposition(|compiled| compiled.matches_types(values)) {
            compiled[at..].rotate_left(1);
        } else {
            let fresh = Arc::new(CompiledChain::compile(&self.chain, values)?);
            let surplus = (compiled.len() + 1).saturating_sub(COMPILED_CHAINS_MAX);
            compiled.drain(..surplus);
            compiled.push(fresh);
        }
        Ok(Arc::clone(compiled.last().expect("the matching compiled form was moved or pushed to the end")))
    }
}

/// Compiled chain and parameter values of one run.
struct PreparedRun<'a> {
    compiled: Arc<CompiledChain>,
    parameters: Cow<'a, [ScalarValue]>,
}

/// Index that a statement reads, with the range of its keys.
#[derive(Debug)]
pub struct IndexUse {
    /// Table and index name, as stored in the catalog.
    pub table: String,
    pub index: String,
    /// Condition on the key columns, as SQL.
    pub condition: String,
    /// True if the index returns the rows in the order of the plan's first sort.
    pub is_ordered: bool,
}

/// Returns the query that produces a statement's rows.
fn rows_query(planned: &StatementPlan) -> Option<&QueryPlan> {
    match planned {
        StatementPlan::Query(query) => Some(query),
        StatementPlan::Write(write) if write.changes_before.is_empty() => write.input.as_ref(),
        StatementPlan::Modify(modify) if modify.command_tag != "MERGE" => Some(&modify.input),
        _ => None,
    }
}

/// One run of a compiled statement.
#[derive(Debug, Clone, Copy)]
pub struct KeyLookupRun<'a> {
    pub lookup: &'a CompiledKeyLookup,
    /// Values of the parameters.
    pub parameters: &'a [ScalarValue],
    /// Session of the statement, if the program needs one.
    pub session: Option<&'a Arc<EvaluationContext>>,
}

impl KeyLookupRun<'_> {
    /// Computes the new values of DO UPDATE; `met` has the columns of the scan in the plan of DO UPDATE.
    ///
    /// # Errors
    /// Errors of the statement's expressions.
    pub fn compute_conflict_update(&self, conflicting_rows: &RecordBatch) -> SqlResult<RecordBatch> {
        let update = self.lookup.conflict_update.as_ref();
        let update = update.ok_or_else(|| {
            SqlError::internal("key lookup: an INSERT without ON CONFLICT DO UPDATE was asked for its update")
        })?;
        let PreparedRun { compiled, parameters: values } = update.prepare(self.parameters, self.session)?;
        compiled.run_on_batch(conflicting_rows, &values)
    }
}

impl KeyLookupRun<'_> {
    /// Returns the rows of the plan, as the transaction sees them; `None` if the plan has to be run instead.
    ///
    /// # Errors
    /// Errors of the statement's expressions and of the storage.
    pub async fn read_rows(
        &self,
        lookup: &KeyLookup,
        transaction: &mut Transaction,
    ) -> SqlResult<Option<KeyLookupRows>> {
        let PreparedRun { compiled, parameters: values } = self.lookup.chain.prepare(self.parameters, self.session)?;
        let view = transaction.view();
        if let Some((rows, read)) = compiled.run_on_stored_rows(lookup, &values, &view.state).await? {
            if let Some(read) = read {
                transaction.record_key_read(|| read.into_key_read());
            }
            return Ok(Some(KeyLookupRows::Stored(rows)));
        }
        let Some(made) = compiled.run(lookup, &values, &view.state).await? else { return Ok(None) };
        for read in made.key_ranges {
            transaction.record_key_read(|| read.into_key_read());
        }
        Ok(Some(KeyLookupRows::Batch(made.rows)))
    }

    /// Returns the rows that a query has to lock, if it returns them as they are stored; `None` if the plan has to be
    /// run instead.
    ///
    /// # Errors
    /// Errors of the statement's expressions and of the storage.
    pub async fn read_rows_to_lock(
        &self,
        lookup: &KeyLookup,
        transaction: &mut Transaction,
    ) -> SqlResult<Option<(Vec<LocatedRow>, StoredRows)>> {
        let PreparedRun { compiled, parameters: values } = self.lookup.chain.prepare(self.parameters, self.session)?;
        let view = transaction.view();
        let locking = compiled.run_locking(lookup, &values, &view.state).await?;
        let Some((read, columns, asked)) = locking else { return Ok(None) };
        transaction.record_key_read(|| asked.into_key_read());
        Ok(Some((read.found, StoredRows { rows: read.tuples, columns })))
    }

    /// Computes the new versions of the rows that an UPDATE finds, without converting them to columns; `None` if the
    /// statement does more than that.
    ///
    /// # Errors
    /// Errors of the statement's expressions and of the storage.
    pub async fn compute_updated_rows(
        &self,
        lookup: &KeyLookup,
        transaction: &mut Transaction,
    ) -> SqlResult<Option<UpdatedRows>> {
        let PreparedRun { compiled, parameters: values } = self.lookup.chain.prepare(self.parameters, self.session)?;
        let view = transaction.view();
        let Some((patched, read)) = compiled.run_update(lookup, &values, &view.state).await? else { return Ok(None) };
        transaction.record_key_read(|| read.into_key_read());
        Ok(Some(patched))
    }

    /// Returns the rows that an INSERT puts into `table` in their stored form; `None` if they have to be converted to
    /// columns first.
    ///
    /// # Errors
    /// Errors of the statement's expressions.
    pub fn compute_inserted_rows(&self, table: &Table) -> SqlResult<Option<Vec<Tuple>>> {
        let PreparedRun { compiled, parameters: values } = self.lookup.chain.prepare(self.parameters, self.session)?;
        compiled.compute_inserted_rows(table, &values)
    }

    /// Returns the rows of the plan, like [`KeyLookupRun::read_rows`], as record batches.
    ///
    /// # Errors
    /// Errors of the statement's expressions and of the storage.
    pub async fn read_batches(
        &self,
        lookup: &KeyLookup,
        transaction: &mut Transaction,
    ) -> SqlResult<Option<Vec<RecordBatch>>> {
        let rows = self.read_rows(lookup, transaction).await?;
        rows.map(|rows| Ok(vec![rows.into_batch()?])).transpose()
    }
}

/// Rows that an UPDATE found, with their new versions.
#[derive(Debug)]
pub struct UpdatedRows {
    /// Locations of the rows, in the order of `rows`.
    pub locations: Vec<LocatedRow>,
    /// New versions of the rows.
    pub rows: Vec<Tuple>,
    /// Columns that the UPDATE sets.
    pub columns: Arc<[ColumnId]>,
    /// Rows of RETURNING.
    pub returning: RecordBatch,
}

/// Result rows of a run.
#[derive(Debug)]
pub enum KeyLookupRows {
    Stored(StoredRows),
    Batch(RecordBatch),
}

impl KeyLookupRows {
    /// Returns all rows as one record batch.
    ///
    /// # Errors
    /// A stored value that does not have its column's type.
    pub fn into_batch(self) -> SqlResult<RecordBatch> {
        match self {
            Self::Stored(rows) => rows.to_batch(),
            Self::Batch(batch) => Ok(batch),
        }
    }
}
