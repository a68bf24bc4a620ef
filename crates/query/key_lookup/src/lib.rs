//! Statements over the few rows that an index finds, or over rows written out: run step by step, without operators and query threads.
//!
//! Never changes rows: it says which rows a statement reads and what it makes of them; locks and writes are others'.
//!
//! Start at [`PointProgram`] and [`PointRun`]. A program is made of a statement's plan once (`chain.rs`), and of its expressions once for the types of its parameters
//! (`compiled.rs`); a run (`run.rs`) reads the rows (`source.rs`, `written.rs`, `unnested.rs`) and takes the steps (`steps.rs`).
//! Parameters are columns beside those of the rows, so that nothing is compiled for their values (`expression.rs`). Where a chain only
//! computes columns, each row is made by itself, value by value (`row_by_row.rs`, `cell.rs`), and no arrays are. Tables that are joined
//! are one source of rows (`join.rs`). What turns out to be no case for it is run by the plan.

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

/// Rows that a run reads at most; more are a case for the plan.
const ROWS_MAX: usize = 8192;

/// A statement that can be run so.
#[derive(Debug)]
pub struct PointProgram {
    /// With parameters as they are written.
    pub planned: Planned,
    rows: Kept,
    /// ON CONFLICT DO UPDATE: over rows that are there, each beside the one that was to be inserted.
    update: Option<Kept>,
}

/// A chain, compiled for the types that parameters had: numerics differ in their digits from run to run.
#[derive(Debug)]
struct Kept {
    chain: Chain,
    /// The last used comes last.
    compiled: Mutex<Vec<Arc<Compiled>>>,
}

/// Forms of one chain that are kept.
const COMPILED_MAX: usize = 16;

/// Whether a plan calls a function whose value can be far larger than its arguments: such values are computed on query threads, not where connections
/// are served.
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
    /// The program of a SELECT, INSERT, UPDATE or DELETE; `None` for all others, and those that need operators. It keeps the plan, and
    /// with it the rows that the plan was made for, if any.
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

    /// Whether each statement has to give its session.
    #[must_use]
    pub fn needs_session(&self) -> bool {
        self.rows.needs_session() || self.update.as_ref().is_some_and(Kept::needs_session)
    }

    /// The indexes that find its rows, in the order in which they are asked; none where it is no table's rows, or an index is of no help.
    pub fn indexes(&self) -> Vec<IndexUse> {
        self.rows.ready(&[], None).map(|ready| ready.compiled.described()).unwrap_or_default()
    }
}

impl Kept {
    fn of(query: &QueryPlan) -> Option<Self> {
        let chain = Chain::of(&query.plan)?.with_moments().ok()?;
        Some(Self { chain, compiled: Mutex::default() })
    }

    /// Whether it needs to know the statement's session.
    fn needs_session(&self) -> bool {
        self.is_by_statement() || !self.chain.moments.is_empty()
    }

    fn is_by_statement(&self) -> bool {
        self.chain.settled == Settled::ByStatement
    }

    /// The chain for a statement, and its parameters.
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
        Ok(Arc::clone(compiled.last().expect("one was found or put there")))
    }
}

/// What a run takes.
struct Ready<'a> {
    compiled: Arc<Compiled>,
    values: Cow<'a, [ScalarValue]>,
}

/// An index and the part of it that is meant.
#[derive(Debug)]
pub struct IndexUse {
    /// Names, as they are written.
    pub table: String,
    pub index: String,
    /// As SQL.
    pub condition: String,
    /// Rows come as the first sort wants them.
    pub is_ordered: bool,
}

/// The query that gives a statement's rows.
fn input(planned: &Planned) -> Option<&QueryPlan> {
    match planned {
        Planned::Query(query) => Some(query),
        Planned::Write(write) if write.before.is_empty() => write.input.as_ref(),
        Planned::Modify(modify) if modify.tag != "MERGE" => Some(&modify.input),
        _ => None,
    }
}

/// One run of a program.
#[derive(Debug, Clone, Copy)]
pub struct PointRun<'a> {
    pub program: &'a PointProgram,
    /// Of the parameters.
    pub values: &'a [ScalarValue],
    /// The statement's, where the program needs one.
    pub session: Option<&'a Arc<Session>>,
}

impl PointRun<'_> {
    /// What DO UPDATE makes of rows in the columns of its plan's leaf.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn update(&self, met: &RecordBatch) -> SqlResult<RecordBatch> {
        let update = self.program.update.as_ref();
        let update = update.ok_or_else(|| SqlError::internal("a program without DO UPDATE"))?;
        let Ready { compiled, values } = update.ready(self.values, self.session)?;
        compiled.run_over(met, &values)
    }
}

impl PointRun<'_> {
    /// The rows of the program's plan, as the transaction sees them; `None` where the plan has to be run.
    ///
    /// # Errors
    /// Those of the plan.
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

    /// The rows that a query is to lock, where it gives them as they are stored; `None` where the plan has to be run.
    ///
    /// # Errors
    /// Those of the plan.
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

    /// What an UPDATE makes of the rows that its program finds, without columns in between; `None` where that is not all it does.
    ///
    /// # Errors
    /// Those of the plan.
    pub async fn patched(&self, lookup: &KeyLookup, transaction: &mut Transaction) -> SqlResult<Option<Patched>> {
        let Ready { compiled, values } = self.program.rows.ready(self.values, self.session)?;
        let view = transaction.view();
        let Some((patched, read)) = compiled.run_patch(lookup, &values, &view.state).await? else { return Ok(None) };
        transaction.note_key_read(|| read.of_key());
        Ok(Some(patched))
    }

    /// The rows that an INSERT's program puts into `table`, as they are stored; `None` where they have to be columns first.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn written(&self, table: &Table) -> SqlResult<Option<Vec<Tuple>>> {
        let Ready { compiled, values } = self.program.rows.ready(self.values, self.session)?;
        compiled.written_rows(table, &values)
    }

    /// As [`PointRun::rows`], as columns.
    ///
    /// # Errors
    /// Those of the plan.
    pub async fn batches(
        &self,
        lookup: &KeyLookup,
        transaction: &mut Transaction,
    ) -> SqlResult<Option<Vec<RecordBatch>>> {
        let rows = self.rows(lookup, transaction).await?;
        rows.map(|rows| Ok(vec![rows.into_batch()?])).transpose()
    }
}

/// Rows and what becomes of them.
#[derive(Debug)]
pub struct Patched {
    /// Their places, in the order of `rows`.
    pub found: Vec<Found>,
    /// As they become.
    pub rows: Vec<Tuple>,
    /// The columns that are set.
    pub columns: Arc<[ColumnId]>,
    /// What RETURNING gives.
    pub returning: RecordBatch,
}

/// What a run gives.
#[derive(Debug)]
pub enum PointRows {
    Stored(StoredRows),
    Batch(RecordBatch),
}

impl PointRows {
    /// All rows as columns.
    ///
    /// # Errors
    /// For values that are not of their column's type.
    pub fn into_batch(self) -> SqlResult<RecordBatch> {
        match self {
            Self::Stored(rows) => rows.to_batch(),
            Self::Batch(batch) => Ok(batch),
        }
    }
}
