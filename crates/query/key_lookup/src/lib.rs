//! Primary-key fast path: runs SELECT, INSERT, UPDATE and DELETE over the few rows that an index finds, or over rows of
//! VALUES, without DataFusion operators and without query threads.
//!
//! Never changes rows: it returns the rows that a statement reads and computes their new values; locking and writing
//! are done by the caller.
//!
//! Start at [`PointProgram`] and [`PointRun`]. A statement's plan is compiled once into a program, and the program's
//! expressions once per combination of parameter types. Parameters are columns beside those of the rows, so that new
//! values need no new compilation. Whatever the fast path cannot run is run by the plan's operators.
//!
//! - `chain.rs`: the logical plan as one source of rows and a list of steps,
//! - `compiled.rs`: a chain with its expressions compiled for certain parameter types,
//! - `run.rs`, `at_once.rs`: runs of a compiled chain, the latter over unflushed rows alone and therefore without
//!   waiting,
//! - `source.rs`, `join.rs`, `written.rs`, `unnested.rs`: the sources of rows: index ranges, inner joins by index,
//!   VALUES, UNNEST,
//! - `steps.rs`, `expression.rs`: evaluation of the steps, on Arrow arrays,
//! - `row_by_row.rs`, `cell.rs`: evaluation of projections value by value, without arrays,
//! - `plain.rs`, `patch.rs`: SELECTs that return stored columns unchanged, and UPDATEs that replace columns of stored
//!   rows.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::RecordBatch;
use binder::{Planned, QueryPlan};
use catalog::Table;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as DfResult, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan};
use functions::Settled;
use parking_lot::Mutex;
use rowstore::Tuple;
use scan::{Found, KeyLookup};
use session_context::Session;
use txn::Transaction;
use types::{ColumnId, SqlError, SqlResult};

use self::chain::Chain;
use self::compiled::Compiled;

mod at_once;
mod cell;
mod chain;
mod compiled;
mod expression;
mod join;
mod patch;
mod plain;
mod row_by_row;
mod run;
mod source;
mod steps;
mod unnested;
mod written;

pub use plain::StoredRows;

/// Maximum number of rows that a run reads; a statement that needs more is run by its plan.
const ROWS_MAX: usize = 8192;

/// Statement compiled for the fast path.
#[derive(Debug)]
pub struct PointProgram {
    /// Plan of the statement, with its parameters as placeholders.
    pub planned: Planned,
    rows: Kept,
    /// ON CONFLICT DO UPDATE, over the existing rows, each beside the row that was to be inserted.
    update: Option<Kept>,
}

/// Chain with its compiled forms, one per combination of parameter types: the precision and scale of numeric parameters
/// differ from run to run.
#[derive(Debug)]
struct Kept {
    chain: Chain,
    /// Compiled forms in order of use, the most recently used one last.
    compiled: Mutex<Vec<Arc<Compiled>>>,
}

/// Maximum number of compiled forms cached for one chain.
const COMPILED_MAX: usize = 16;

/// Returns true if a plan calls a function whose result can be far larger than its arguments: such results are computed
/// on query threads, not on the threads that serve connections.
fn may_be_large(plan: &LogicalPlan) -> DfResult<bool> {
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

impl PointProgram {
    /// Compiles a SELECT, INSERT, UPDATE or DELETE; `None` for all other statements and for those that need operators.
    /// The program holds the plan and, with it, the snapshot of the rows that the plan was made for, if any.
    #[must_use]
    pub fn of(planned: &Planned) -> Option<Self> {
        let input = input(planned)?;
        if may_be_large(&input.plan).ok()? {
            return None;
        }
        let mut rows = Kept::of(input)?;
        if rows.chain.is_joined() && !matches!(planned, Planned::Query(plan) if plan.locks.is_empty()) {
            return None;
        }
        rows.chain.is_locking = matches!(planned, Planned::Query(plan) if plan.locks.len() == 1);
        rows.chain.is_patch = matches!(planned, Planned::Modify(plan) if patch::is_patch(plan));
        let update = match planned {
            Planned::Write(write) => write.conflict.as_ref().and_then(|conflict| conflict.update.as_ref()),
            _ => None,
        };
        let update = match update {
            Some(update) if may_be_large(&update.plan.plan).ok()? => return None,
            Some(update) => Some(Kept::of(&update.plan)?),
            None => None,
        };
        Some(Self { planned: planned.clone(), rows, update })
    }

    /// Returns true if each run needs the session of its statement.
    #[must_use]
    pub fn needs_session(&self) -> bool {
        self.rows.needs_session() || self.update.as_ref().is_some_and(Kept::needs_session)
    }

    /// Returns the indexes that find the rows, in the order in which they are read; empty if the rows come from no
    /// table or no index helps.
    pub fn indexes(&self) -> Vec<IndexUse> {
        self.rows.ready(&[], None).map(|ready| ready.compiled.described()).unwrap_or_default()
    }
}

impl Kept {
    fn of(query: &QueryPlan) -> Option<Self> {
        let chain = Chain::of(&query.plan)?.with_moments().ok()?;
        Some(Self { chain, compiled: Mutex::default() })
    }

    /// Returns true if expressions depend on the statement's session.
    fn needs_session(&self) -> bool {
        self.is_by_statement() || !self.chain.moments.is_empty()
    }

    fn is_by_statement(&self) -> bool {
        self.chain.settled == Settled::ByStatement
    }

    /// Returns the compiled chain for a statement together with its parameters.
    fn ready<'a>(&self, values: &'a [ScalarValue], session: Option<&Arc<Session>>) -> SqlResult<Ready<'a>> {
        let mut values = Cow::Borrowed(values);
        if !self.chain.moments.is_empty() {
            let moments = self.chain.moments.iter().map(|moment| expression::moment(moment, session));
            let moments = moments.collect::<SqlResult<Vec<_>>>()?;
            values.to_mut().splice(0..0, moments);
        }
        Ok(Ready { compiled: self.compiled(&values, session)?, values })
    }

    fn compiled(&self, values: &[ScalarValue], session: Option<&Arc<Session>>) -> SqlResult<Arc<Compiled>> {
        if let Some(session) = session.filter(|_| self.is_by_statement()) {
            return Compiled::of(&self.chain.for_statement(session)?, values).map(Arc::new);
        }
        let mut compiled = self.compiled.lock();
        if let Some(at) = compiled.iter().rposition(|compiled| compiled.takes(values)) {
            compiled[at..].rotate_left(1);
        } else {
            let fresh = Arc::new(Compiled::of(&self.chain, values)?);
            let surplus = (compiled.len() + 1).saturating_sub(COMPILED_MAX);
            compiled.drain(..surplus);
            compiled.push(fresh);
        }
        Ok(Arc::clone(compiled.last().expect("the matching compiled form was moved or pushed to the end")))
    }
}

/// Compiled chain and parameter values of one run.
struct Ready<'a> {
    compiled: Arc<Compiled>,
    values: Cow<'a, [ScalarValue]>,
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
fn input(planned: &Planned) -> Option<&QueryPlan> {
    match planned {
        Planned::Query(query) => Some(query),
        Planned::Write(write) if write.before.is_empty() => write.input.as_ref(),
        Planned::Modify(modify) if modify.tag != "MERGE" => Some(&modify.input),
        _ => None,
    }
}

/// One run of a compiled statement.
#[derive(Debug, Clone, Copy)]
pub struct PointRun<'a> {
    pub program: &'a PointProgram,
    /// Values of the parameters.
    pub values: &'a [ScalarValue],
    /// Session of the statement, if the program needs one.
    pub session: Option<&'a Arc<Session>>,
}

impl PointRun<'_> {
    /// Computes the new values of DO UPDATE; `met` has the columns of the scan in the plan of DO UPDATE.
    ///
    /// # Errors
    /// Errors of the statement's expressions.
    pub fn update(&self, met: &RecordBatch) -> SqlResult<RecordBatch> {
        let update = self.program.update.as_ref();
        let update = update.ok_or_else(|| SqlError::internal("key lookup: the statement has no DO UPDATE"))?;
        let Ready { compiled, values } = update.ready(self.values, self.session)?;
        compiled.run_over(met, &values)
    }
}

impl PointRun<'_> {
    /// Returns the rows of the plan, as the transaction sees them; `None` if the plan has to be run instead.
    ///
    /// # Errors
    /// Errors of the statement's expressions and of the storage.
    pub async fn rows(&self, lookup: &KeyLookup, transaction: &mut Transaction) -> SqlResult<Option<PointRows>> {
        let Ready { compiled, values } = self.program.rows.ready(self.values, self.session)?;
        let view = transaction.view();
        if let Some((rows, read)) = compiled.run_plain(lookup, &values, &view.state).await? {
            if let Some(read) = read {
                transaction.note_key_read(|| read.of_key());
            }
            return Ok(Some(PointRows::Stored(rows)));
        }
        let Some(made) = compiled.run(lookup, &values, &view.state).await? else { return Ok(None) };
        for read in made.read {
            transaction.note_key_read(|| read.of_key());
        }
        Ok(Some(PointRows::Batch(made.rows)))
    }

    /// Returns the rows that a query has to lock, if it returns them as they are stored; `None` if the plan has to be
    /// run instead.
    ///
    /// # Errors
    /// Errors of the statement's expressions and of the storage.
    pub async fn locking(
        &self,
        lookup: &KeyLookup,
        transaction: &mut Transaction,
    ) -> SqlResult<Option<(Vec<Found>, StoredRows)>> {
        let Ready { compiled, values } = self.program.rows.ready(self.values, self.session)?;
        let view = transaction.view();
        let locking = compiled.run_locking(lookup, &values, &view.state).await?;
        let Some((read, columns, asked)) = locking else { return Ok(None) };
        transaction.note_key_read(|| asked.of_key());
        Ok(Some((read.found, StoredRows { rows: read.tuples, columns })))
    }

    /// Computes the new versions of the rows that an UPDATE finds, without converting them to columns; `None` if the
    /// statement does more than that.
    ///
    /// # Errors
    /// Errors of the statement's expressions and of the storage.
    pub async fn patched(&self, lookup: &KeyLookup, transaction: &mut Transaction) -> SqlResult<Option<Patched>> {
        let Ready { compiled, values } = self.program.rows.ready(self.values, self.session)?;
        let view = transaction.view();
        let Some((patched, read)) = compiled.run_patch(lookup, &values, &view.state).await? else { return Ok(None) };
        transaction.note_key_read(|| read.of_key());
        Ok(Some(patched))
    }

    /// Returns the rows that an INSERT puts into `table` in their stored form; `None` if they have to be converted to
    /// columns first.
    ///
    /// # Errors
    /// Errors of the statement's expressions.
    pub fn written(&self, table: &Table) -> SqlResult<Option<Vec<Tuple>>> {
        let Ready { compiled, values } = self.program.rows.ready(self.values, self.session)?;
        compiled.written_rows(table, &values)
    }

    /// Returns the rows of the plan, like [`PointRun::rows`], as record batches.
    ///
    /// # Errors
    /// Errors of the statement's expressions and of the storage.
    pub async fn batches(
        &self,
        lookup: &KeyLookup,
        transaction: &mut Transaction,
    ) -> SqlResult<Option<Vec<RecordBatch>>> {
        let rows = self.rows(lookup, transaction).await?;
        rows.map(|rows| Ok(vec![rows.into_batch()?])).transpose()
    }
}

/// Rows that an UPDATE found, with their new versions.
#[derive(Debug)]
pub struct Patched {
    /// Locations of the rows, in the order of `rows`.
    pub found: Vec<Found>,
    /// New versions of the rows.
    pub rows: Vec<Tuple>,
    /// Columns that the UPDATE sets.
    pub columns: Arc<[ColumnId]>,
    /// Rows of RETURNING.
    pub returning: RecordBatch,
}

/// Result rows of a run.
#[derive(Debug)]
pub enum PointRows {
    Stored(StoredRows),
    Batch(RecordBatch),
}

impl PointRows {
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
