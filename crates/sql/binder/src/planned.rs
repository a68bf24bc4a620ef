//! The plan of a statement: all that its execution needs, with nothing left to look up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalog::{Change, Column, Table};
use datafusion::common::ScalarValue;
use plan::StreamTable;
use session_context::Pin;
use types::{ColumnId, Oid, SqlError, SqlResult, SqlType};

use crate::bind::{depends_on_digits, holds_for_digits};
use crate::phases::Phases;
use crate::query_plan::{OutputColumn, QueryPlan};
use crate::session_command::{SessionCommand, check_storage_columns};
use crate::write::CopyOptions;

/// A statement, planned against one snapshot.
#[derive(Debug, Clone)]
pub enum Planned {
    /// Rows for the client.
    Query(QueryPlan),
    /// Rows for a table.
    Write(WritePlan),
    /// Rows of a table that change, go or come.
    Modify(ModifyPlan),
    /// Changes of the catalog.
    Define(DefinePlan),
    CopyFrom(CopyFromPlan),
    CopyTo(CopyToPlan),
    Explain(ExplainPlan),
    /// What concerns the session or its transaction alone.
    Session(SessionCommand),
}

/// Rows to be added to a table.
#[derive(Debug, Clone)]
pub struct WritePlan {
    pub table: Arc<Table>,
    /// To be staged before the rows are written: for CREATE TABLE AS, the table.
    pub before: Vec<Change>,
    /// All columns of the table in order, of exactly their types; defaults, NOT NULL and CHECK are inside. Those of RETURNING follow.
    /// `None` when there are no rows to write (WITH NO DATA).
    pub input: Option<QueryPlan>,
    /// First word of the command tag: `INSERT` or `SELECT`.
    pub tag: &'static str,
    pub notices: Vec<SqlError>,
    /// The columns that RETURNING gives; `None` without one.
    pub returning: Option<Vec<OutputColumn>>,
    /// ON CONFLICT.
    pub conflict: Option<Box<ConflictPlan>>,
}

/// What an INSERT does about rows whose key is taken.
#[derive(Debug, Clone)]
pub struct ConflictPlan {
    /// Keys whose violation is a conflict: ids of enforced primary and unique keys and of unique indexes, all of the table's if none is named.
    pub arbiters: Vec<Oid>,
    /// DO UPDATE; `None` is DO NOTHING.
    pub update: Option<ConflictUpdate>,
    /// For rows that refer to what DO UPDATE changes.
    pub references: ReferencePlans,
}

/// `ON CONFLICT … DO UPDATE`.
#[derive(Debug, Clone)]
pub struct ConflictUpdate {
    /// Reads `input`; its columns are those of [`ModifyPlan::input`] with [`Action::Update`]. Rows for which WHERE does not hold are absent.
    pub plan: QueryPlan,
    /// The leaf of `plan`: `__row_id`, `__place`, the columns of the row that is there, then those of the row that was to be inserted.
    pub input: Arc<StreamTable>,
    /// Columns whose old values `plan` gives, as [`ModifyPlan::old`].
    pub old: Vec<ColumnId>,
}

/// What becomes of rows that refer to a row whose key goes or changes: as [`ConflictUpdate`], where in the place of the row that was to be
/// inserted stands the row with its new key. Nothing where the rows are deleted, or must not be there.
#[derive(Debug, Clone)]
pub struct ReferencePlan {
    pub delete: Option<ConflictUpdate>,
    pub update: Option<ConflictUpdate>,
}

/// By the ids of foreign keys.
pub type ReferencePlans = Arc<BTreeMap<Oid, ReferencePlan>>;

/// UPDATE, DELETE, MERGE: rows of one table that change, go or come.
#[derive(Debug, Clone)]
pub struct ModifyPlan {
    pub table: Arc<Table>,
    /// In order: `__action` (an [`Action`], Arrow's Int8), `__row_id` and `__place` (both NULL for an insert), all columns of the table (new
    /// values, cast, with defaults, NOT NULL and CHECK asked; NULLs for a delete), the old values of `old`, the columns of RETURNING.
    pub input: QueryPlan,
    /// Columns whose old values are needed: those that an enforced foreign key refers to and that the statement may change.
    pub old: Vec<ColumnId>,
    /// For rows that refer to those.
    pub references: ReferencePlans,
    /// The columns that RETURNING gives; `None` without one.
    pub returning: Option<Vec<OutputColumn>>,
    /// First word of the command tag: `UPDATE`, `DELETE` or `MERGE`.
    pub tag: &'static str,
    pub notices: Vec<SqlError>,
}

/// What happens to a row of a [`ModifyPlan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum Action {
    Nothing = 0,
    Insert = 1,
    Update = 2,
    Delete = 3,
}

impl Action {
    /// The action that a value of the column `__action` means.
    #[must_use]
    pub fn of(value: i8) -> Option<Self> {
        [Self::Nothing, Self::Insert, Self::Update, Self::Delete].into_iter().find(|action| *action as i8 == value)
    }
}

/// Changes of the catalog, all or nothing.
#[derive(Debug, Clone, Default)]
pub struct DefinePlan {
    /// To be staged in this order.
    pub changes: Vec<Change>,
    /// The whole command tag: `CREATE TABLE`.
    pub tag: String,
    pub notices: Vec<SqlError>,
    /// To be asked before the changes are staged: a constraint must hold for the rows that are there.
    pub checks: Vec<RowCheck>,
    /// Passwords to be turned into verifiers of the roles that `changes` puts.
    pub passwords: Vec<Password>,
    /// To be run once the changes are staged: rows that are there get values of their own in new columns.
    pub fill: Option<Box<ModifyPlan>>,
    /// What cannot run in a transaction block, by its name in the error.
    pub outside_block: Option<&'static str>,
    /// What keeps the rows of the past that `changes` copy.
    pub pins: Vec<Pin>,
    /// The table whose present rows `changes` copy.
    pub copied: Option<Oid>,
}

/// A query that must give no row.
#[derive(Debug, Clone)]
pub struct RowCheck {
    /// At most one row.
    pub query: QueryPlan,
    /// What to say if it gives one.
    pub violation: SqlError,
}

/// `PASSWORD 'text'` of CREATE ROLE or ALTER ROLE; `None` takes the password away.
#[derive(Clone, PartialEq, Eq)]
pub struct Password {
    pub role: Oid,
    pub text: Option<String>,
}

/// Passwords stay out of logs.
impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Password").field("role", &self.role).finish_non_exhaustive()
    }
}

/// `COPY table FROM`.
#[derive(Debug, Clone)]
pub struct CopyFromPlan {
    pub table: Arc<Table>,
    /// The columns that a record fills, in the record's order.
    pub columns: Vec<Column>,
    pub source: CopySource,
    pub options: CopyOptions,
    /// Reads `input`, adds defaults, checks constraints.
    pub write: WritePlan,
    /// The leaf of `write`: fed with batches of `columns`, each of its column's Arrow type.
    pub input: Arc<StreamTable>,
}

/// Where COPY FROM reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopySource {
    Stdin,
    /// A path on the server; may contain `*`.
    File(String),
    /// `s3://…`, `gs://…`, `az://…`, `file://…`
    Url(String),
}

/// `COPY … TO`.
#[derive(Debug, Clone)]
pub struct CopyToPlan {
    pub query: QueryPlan,
    pub target: CopyTarget,
    pub options: CopyOptions,
}

/// Where COPY TO writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyTarget {
    Stdout,
    File(String),
    Url(String),
}

/// `EXPLAIN`.
#[derive(Debug, Clone)]
pub struct ExplainPlan {
    /// A query, a write or a COPY.
    pub inner: Box<Planned>,
    /// Run it and report what happened.
    pub analyze: bool,
    /// Every expression of every operator.
    pub verbose: bool,
    /// Estimates of rows and costs.
    pub costs: bool,
    /// Times per operator, with ANALYZE.
    pub timing: bool,
    /// Planning and execution time at the end.
    pub summary: bool,
    pub format: ExplainFormat,
}

impl ExplainPlan {
    /// What planning the query in it takes.
    #[must_use]
    pub fn phases(&self) -> Option<&Phases> {
        self.inner.phases()
    }
}

/// What EXPLAIN prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExplainFormat {
    #[default]
    Text,
    Json,
}

impl Planned {
    /// The columns of the rows that the statement answers with; `None` if it answers with none.
    #[must_use]
    pub fn columns(&self) -> Option<Vec<OutputColumn>> {
        match self {
            Planned::Query(query) => Some(query.columns.clone()),
            Planned::Explain(explain) => Some(vec![explain.column()]),
            Planned::Session(SessionCommand::CheckStorage) => Some(check_storage_columns()),
            Planned::Session(SessionCommand::Show(query)) => Some(query.columns.clone()),
            Planned::Write(write) => write.returning.clone(),
            Planned::Modify(modify) => modify.returning.clone(),
            _ => None,
        }
    }

    /// The tables whose rows the statement reads, itself or by its subqueries and views.
    #[must_use]
    pub fn tables_read(&self) -> BTreeSet<Oid> {
        match self {
            Planned::Query(query) => query.tables_read(),
            Planned::Write(write) => {
                let update = write.conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
                let plans = write.input.iter().chain(update.map(|update| &update.plan));
                plans.flat_map(QueryPlan::tables_read).collect()
            }
            Planned::Modify(modify) => modify.input.tables_read(),
            Planned::CopyTo(copy) => copy.query.tables_read(),
            Planned::Define(define) => define.copied.into_iter().collect(),
            Planned::Explain(explain) => explain.inner.tables_read(),
            Planned::Session(SessionCommand::Declare { query, .. }) => query.tables_read(),
            Planned::Session(_) | Planned::CopyFrom(_) => BTreeSet::new(),
        }
    }

    /// Whether a worker has to run it. What reads system tables alone, or nothing, runs beside the session.
    #[must_use]
    pub fn needs_worker(&self) -> bool {
        match self {
            Planned::Query(query) => query.needs_worker(),
            Planned::Write(write) => write.input.is_some(),
            Planned::Modify(_) | Planned::CopyFrom(_) => true,
            Planned::CopyTo(copy) => copy.query.needs_worker(),
            Planned::Define(define) => !define.checks.is_empty() || define.fill.is_some(),
            Planned::Explain(explain) => explain.analyze && explain.inner.needs_worker(),
            Planned::Session(SessionCommand::Declare { query, .. }) => query.needs_worker(),
            Planned::Session(_) => false,
        }
    }

    /// Whether the digits of numeric parameters, which have no values yet, decide what the plan is: such a plan is made for each digits.
    #[must_use]
    pub fn depends_on_digits(&self) -> bool {
        self.row_plans().into_iter().any(|query| depends_on_digits(&query.plan))
    }

    /// Whether the plan, which was made for the digits of numeric parameters, holds for all values of these digits.
    #[must_use]
    pub fn holds_for_digits(&self) -> bool {
        self.row_plans().into_iter().all(|query| holds_for_digits(&query.plan))
    }

    /// Whether something in it was read that means something else at another time: `'today'`.
    #[must_use]
    pub fn has_read_now(&self) -> bool {
        self.row_plans().into_iter().any(|query| query.has_read_now)
    }

    /// The plans of the rows that a query gives, or that are written or changed.
    fn row_plans(&self) -> Vec<&QueryPlan> {
        match self {
            Planned::Query(query) => vec![query],
            Planned::Write(write) => {
                let update = write.conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
                write.input.iter().chain(update.map(|update| &update.plan)).collect()
            }
            Planned::Modify(modify) => vec![&modify.input],
            _ => Vec::new(),
        }
    }

    /// What planning its query takes, where it has one.
    #[must_use]
    pub fn phases(&self) -> Option<&Phases> {
        match self {
            Planned::Query(query) => Some(&query.phases),
            Planned::CopyTo(copy) => Some(&copy.query.phases),
            Planned::Write(write) => write.input.as_ref().map(|input| &input.phases),
            Planned::Modify(modify) => Some(&modify.input.phases),
            Planned::Session(SessionCommand::Declare { query, .. }) => Some(&query.phases),
            _ => None,
        }
    }

    /// The types of `$1`, `$2`, …
    #[must_use]
    pub fn parameters(&self) -> Vec<SqlType> {
        match self {
            Planned::Query(query) => query.parameters.clone(),
            Planned::Write(write) => write.input.as_ref().map_or_else(Vec::new, |input| input.parameters.clone()),
            Planned::Modify(modify) => modify.input.parameters.clone(),
            Planned::CopyTo(copy) => copy.query.parameters.clone(),
            Planned::Explain(explain) => explain.inner.parameters(),
            Planned::Session(SessionCommand::Declare { query, .. }) => query.parameters.clone(),
            Planned::Session(_) | Planned::Define(_) | Planned::CopyFrom(_) => Vec::new(),
        }
    }

    /// The statement with values for all of its parameters, each of its parameter's Arrow type.
    ///
    /// # Errors
    /// As [`QueryPlan::with_parameters`].
    pub fn with_parameters(self, values: Vec<ScalarValue>) -> SqlResult<Planned> {
        Ok(match self {
            Planned::Query(query) => Planned::Query(query.with_parameters(values)?),
            Planned::Write(mut write) => {
                if let Some(update) = write.conflict.as_mut().and_then(|conflict| conflict.update.as_mut()) {
                    update.plan = update.plan.clone().with_parameters(values.clone())?;
                }
                write.input = write.input.map(|input| input.with_parameters(values)).transpose()?;
                Planned::Write(write)
            }
            Planned::Modify(mut modify) => {
                modify.input = modify.input.with_parameters(values)?;
                Planned::Modify(modify)
            }
            Planned::CopyTo(mut copy) => {
                copy.query = copy.query.with_parameters(values)?;
                Planned::CopyTo(copy)
            }
            Planned::Explain(mut explain) => {
                explain.inner = Box::new(explain.inner.with_parameters(values)?);
                Planned::Explain(explain)
            }
            Planned::Session(SessionCommand::Declare { name, query, hold, scroll, binary }) => {
                let query = Box::new(query.with_parameters(values)?);
                Planned::Session(SessionCommand::Declare { name, query, hold, scroll, binary })
            }
            other => other,
        })
    }
}

impl ExplainPlan {
    /// The one column of the answer.
    #[must_use]
    pub fn column(&self) -> OutputColumn {
        let sql_type = match self.format {
            ExplainFormat::Text => SqlType::Text,
            ExplainFormat::Json => SqlType::Json,
        };
        OutputColumn { name: "QUERY PLAN".to_owned(), sql_type, table: None, column: None }
    }
}
