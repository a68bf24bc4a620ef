//! Plans of statements, with all that execution needs and every name resolved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalog::{Change, Column, Table};
use datafusion::common::ScalarValue;
use plan::StreamTable;
use session_context::SnapshotPin;
use types::{ColumnId, Oid, SqlError, SqlResult, SqlType};

use crate::bind::{depends_on_digits, is_valid_for_digits};
use crate::planning_timings::PlanningTimings;
use crate::query_plan::{OutputColumn, QueryPlan};
use crate::session_command::{SessionCommand, check_storage_columns};
use crate::write::CopyOptions;

/// Statement planned against one snapshot.
#[derive(Debug, Clone)]
pub enum StatementPlan {
    /// Query with rows for the client.
    Query(QueryPlan),
    /// INSERT or CREATE TABLE AS: rows to be added to a table.
    Write(WritePlan),
    /// UPDATE, DELETE or MERGE.
    Modify(ModifyPlan),
    /// DDL: changes of the catalog.
    Define(DefinePlan),
    CopyFrom(CopyFromPlan),
    CopyTo(CopyToPlan),
    Explain(ExplainPlan),
    /// Command that concerns the session or its transaction only.
    Session(SessionCommand),
}

/// Plan of rows to be added to a table.
#[derive(Debug, Clone)]
pub struct WritePlan {
    pub table: Arc<Table>,
    /// Catalog changes to stage before the rows are written: for CREATE TABLE AS, the table.
    pub changes_before: Vec<Change>,
    /// Query of all columns of the table in order and with exactly their types; it applies defaults and tests NOT
    /// NULL and CHECK. The columns of RETURNING follow. `None` if there are no rows to write (WITH NO DATA).
    pub input: Option<QueryPlan>,
    /// First word of the command tag: `INSERT` or `SELECT`.
    pub command_tag: &'static str,
    pub notices: Vec<SqlError>,
    /// Columns of RETURNING; `None` without it.
    pub returning: Option<Vec<OutputColumn>>,
    /// Plan of ON CONFLICT.
    pub conflict: Option<Box<ConflictPlan>>,
}

/// Plan of ON CONFLICT: the action of an INSERT for rows whose key exists already.
#[derive(Debug, Clone)]
pub struct ConflictPlan {
    /// Keys whose violation is a conflict: OIDs of enforced primary and unique keys and of unique indexes; all of the
    /// table's if the statement names none.
    pub arbiters: Vec<Oid>,
    /// DO UPDATE; `None` means DO NOTHING.
    pub update: Option<ConflictUpdate>,
    /// Referential actions for rows that refer to keys changed by DO UPDATE.
    pub references: ReferencePlans,
}

/// Plan of `ON CONFLICT … DO UPDATE`.
#[derive(Debug, Clone)]
pub struct ConflictUpdate {
    /// Query over `input`, with the columns of [`ModifyPlan::input`] for [`Action::Update`]. Rows that fail the WHERE
    /// condition are absent.
    pub plan: QueryPlan,
    /// Leaf of `plan`: `__row_id`, `__place`, the columns of the existing row, then those of the row proposed for
    /// insertion.
    pub input: Arc<StreamTable>,
    /// Columns whose old values `plan` returns, as in [`ModifyPlan::old_columns`].
    pub old_columns: Vec<ColumnId>,
}

/// Referential actions of one foreign key, for rows that refer to a key that is deleted or changed. Each is like
/// [`ConflictUpdate`], with the referenced row and its new key in place of the row proposed for insertion. `None` if
/// the action deletes the referring rows or rejects the change.
#[derive(Debug, Clone)]
pub struct ReferencePlan {
    pub delete: Option<ConflictUpdate>,
    pub update: Option<ConflictUpdate>,
}

/// Referential actions by the OIDs of foreign keys.
pub type ReferencePlans = Arc<BTreeMap<Oid, ReferencePlan>>;

/// Plan of an UPDATE, DELETE or MERGE of one table.
#[derive(Debug, Clone)]
pub struct ModifyPlan {
    pub table: Arc<Table>,
    /// Query of the affected rows. Its columns in order: the action (an [`Action`], Arrow's Int8), `__row_id` and
    /// `__place` (both NULL for an insert), all columns of the table (new values, cast, with defaults, NOT NULL and
    /// CHECK tested; NULLs for a delete), the old values of `old`, the columns of RETURNING.
    pub input: QueryPlan,
    /// Columns whose old values are needed: those that an enforced foreign key refers to and that the statement may
    /// change.
    pub old_columns: Vec<ColumnId>,
    /// Referential actions for rows that refer to those columns.
    pub references: ReferencePlans,
    /// Columns of RETURNING; `None` without it.
    pub returning: Option<Vec<OutputColumn>>,
    /// First word of the command tag: `UPDATE`, `DELETE` or `MERGE`.
    pub command_tag: &'static str,
    pub notices: Vec<SqlError>,
}

/// Action for a row of a [`ModifyPlan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum Action {
    Nothing = 0,
    Insert = 1,
    Update = 2,
    Delete = 3,
}

impl Action {
    /// Decodes a value of the action's column.
    #[must_use]
    pub fn from_value(value: i8) -> Option<Self> {
        [Self::Nothing, Self::Insert, Self::Update, Self::Delete].into_iter().find(|action| *action as i8 == value)
    }
}

/// Plan of a DDL statement: catalog changes that are applied atomically.
#[derive(Debug, Clone, Default)]
pub struct DefinePlan {
    /// Catalog changes, staged in this order.
    pub changes: Vec<Change>,
    /// Command tag, such as `CREATE TABLE`.
    pub command_tag: String,
    pub notices: Vec<SqlError>,
    /// Checks to run before the changes are staged: existing rows must fulfil a new constraint.
    pub checks: Vec<NoRowCheck>,
    /// Passwords to hash into verifiers of the roles in `changes`.
    pub passwords: Vec<Password>,
    /// Update to run after the changes are staged: gives existing rows their values of new columns.
    pub backfill: Option<Box<ModifyPlan>>,
    /// Name for the error message if the statement cannot run in a transaction block.
    pub forbidden_in_transaction_block: Option<&'static str>,
    /// Pins on the historical snapshots whose rows `changes` copy.
    pub snapshot_pins: Vec<SnapshotPin>,
    /// Table whose current rows `changes` copy.
    pub copied_table: Option<Oid>,
}

/// Query that must return no row.
#[derive(Debug, Clone)]
pub struct NoRowCheck {
    /// Query of the violating rows, limited to one.
    pub query: QueryPlan,
    /// Error to raise if it returns a row.
    pub violation: SqlError,
}

/// `PASSWORD 'text'` of CREATE ROLE or ALTER ROLE; `None` removes the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Password {
    pub role: Oid,
    pub text: Option<String>,
}

/// Omits the password, to keep it out of logs.
impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Password").field("role", &self.role).finish_non_exhaustive()
    }
}

/// Plan of `COPY table FROM`.
#[derive(Debug, Clone)]
pub struct CopyFromPlan {
    pub table: Arc<Table>,
    /// Columns filled by a record, in the record's order.
    pub columns: Vec<Column>,
    pub source: CopySource,
    pub options: CopyOptions,
    /// Write that reads `input`, applies defaults and tests constraints.
    pub write: WritePlan,
    /// Leaf of `write`, which is fed with batches of `columns` in their Arrow types.
    pub input: Arc<StreamTable>,
}

/// Source of COPY FROM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopySource {
    Stdin,
    /// Path on the server, which may contain `*`.
    File(String),
    /// URL: `s3://…`, `gs://…`, `az://…` or `file://…`.
    Url(String),
}

/// Plan of `COPY … TO`.
#[derive(Debug, Clone)]
pub struct CopyToPlan {
    pub query: QueryPlan,
    pub target: CopyTarget,
    pub options: CopyOptions,
}

/// Target of COPY TO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyTarget {
    Stdout,
    File(String),
    Url(String),
}

/// Plan of EXPLAIN.
#[derive(Debug, Clone)]
pub struct ExplainPlan {
    /// Explained statement: a query, a write or a COPY.
    pub inner: Box<StatementPlan>,
    /// ANALYZE: run the statement and report measurements.
    pub analyze: bool,
    /// VERBOSE: print every expression of every operator.
    pub verbose: bool,
    /// COSTS: print estimates of rows and costs.
    pub costs: bool,
    /// TIMING: print times per operator, with ANALYZE.
    pub timing: bool,
    /// SUMMARY: print planning and execution time at the end.
    pub summary: bool,
    pub format: ExplainFormat,
}

impl ExplainPlan {
    /// Returns the timings of planning the explained query.
    #[must_use]
    pub fn phases(&self) -> Option<&PlanningTimings> {
        self.inner.planning_timings()
    }
}

/// Output format of EXPLAIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExplainFormat {
    #[default]
    Text,
    Json,
}

impl StatementPlan {
    /// Returns the result columns; `None` if the statement returns no rows.
    #[must_use]
    pub fn columns(&self) -> Option<Vec<OutputColumn>> {
        match self {
            StatementPlan::Query(query) => Some(query.columns.clone()),
            StatementPlan::Explain(explain) => Some(vec![explain.column()]),
            StatementPlan::Session(SessionCommand::CheckStorage) => Some(check_storage_columns()),
            StatementPlan::Session(SessionCommand::Show(query)) => Some(query.columns.clone()),
            StatementPlan::Write(write) => write.returning.clone(),
            StatementPlan::Modify(modify) => modify.returning.clone(),
            _ => None,
        }
    }

    /// Returns the tables whose rows the statement reads, including those read by its subqueries and views.
    #[must_use]
    pub fn tables_read(&self) -> BTreeSet<Oid> {
        match self {
            StatementPlan::Query(query) => query.tables_read(),
            StatementPlan::Write(write) => {
                let update = write.conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
                let plans = write.input.iter().chain(update.map(|update| &update.plan));
                plans.flat_map(QueryPlan::tables_read).collect()
            }
            StatementPlan::Modify(modify) => modify.input.tables_read(),
            StatementPlan::CopyTo(copy) => copy.query.tables_read(),
            StatementPlan::Define(define) => define.copied_table.into_iter().collect(),
            StatementPlan::Explain(explain) => explain.inner.tables_read(),
            StatementPlan::Session(SessionCommand::Declare { query, .. }) => query.tables_read(),
            StatementPlan::Session(_) | StatementPlan::CopyFrom(_) => BTreeSet::new(),
        }
    }

    /// Returns whether the statement must run on a worker. A statement that reads only system tables, or nothing,
    /// runs beside the session.
    #[must_use]
    pub fn needs_worker(&self) -> bool {
        match self {
            StatementPlan::Query(query) => query.needs_worker(),
            StatementPlan::Write(write) => write.input.is_some(),
            StatementPlan::Modify(_) | StatementPlan::CopyFrom(_) => true,
            StatementPlan::CopyTo(copy) => copy.query.needs_worker(),
            StatementPlan::Define(define) => !define.checks.is_empty() || define.backfill.is_some(),
            StatementPlan::Explain(explain) => explain.analyze && explain.inner.needs_worker(),
            StatementPlan::Session(SessionCommand::Declare { query, .. }) => query.needs_worker(),
            StatementPlan::Session(_) => false,
        }
    }

    /// Returns whether the plan depends on the digits of numeric parameters, which have no values yet: such a plan is
    /// made once per combination of digits.
    #[must_use]
    pub fn depends_on_digits(&self) -> bool {
        self.row_plans().into_iter().any(|query| depends_on_digits(&query.plan))
    }

    /// Returns whether the plan, made for certain digits of numeric parameters, is valid for all values with these
    /// digits.
    #[must_use]
    pub fn is_valid_for_digits(&self) -> bool {
        self.row_plans().into_iter().all(|query| is_valid_for_digits(&query.plan))
    }

    /// Returns whether the plan contains a value that depends on the time of planning, such as `'today'`.
    #[must_use]
    pub fn depends_on_time(&self) -> bool {
        self.row_plans().into_iter().any(|query| query.depends_on_time)
    }

    /// Returns the plans of rows that the statement returns, writes or changes.
    fn row_plans(&self) -> Vec<&QueryPlan> {
        match self {
            StatementPlan::Query(query) => vec![query],
            StatementPlan::Write(write) => {
                let update = write.conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
                write.input.iter().chain(update.map(|update| &update.plan)).collect()
            }
            StatementPlan::Modify(modify) => vec![&modify.input],
            _ => Vec::new(),
        }
    }

    /// Returns the timings of planning its query, if it has one.
    #[must_use]
    pub fn planning_timings(&self) -> Option<&PlanningTimings> {
        match self {
            StatementPlan::Query(query) => Some(&query.planning_timings),
            StatementPlan::CopyTo(copy) => Some(&copy.query.planning_timings),
            StatementPlan::Write(write) => write.input.as_ref().map(|input| &input.planning_timings),
            StatementPlan::Modify(modify) => Some(&modify.input.planning_timings),
            StatementPlan::Session(SessionCommand::Declare { query, .. }) => Some(&query.planning_timings),
            _ => None,
        }
    }

    /// Returns the types of `$1`, `$2`, …
    #[must_use]
    pub fn parameters(&self) -> Vec<SqlType> {
        match self {
            StatementPlan::Query(query) => query.parameters.clone(),
            StatementPlan::Write(write) => write.input.as_ref().map_or_else(Vec::new, |input| input.parameters.clone()),
            StatementPlan::Modify(modify) => modify.input.parameters.clone(),
            StatementPlan::CopyTo(copy) => copy.query.parameters.clone(),
            StatementPlan::Explain(explain) => explain.inner.parameters(),
            StatementPlan::Session(SessionCommand::Declare { query, .. }) => query.parameters.clone(),
            StatementPlan::Session(_) | StatementPlan::Define(_) | StatementPlan::CopyFrom(_) => Vec::new(),
        }
    }

    /// Binds values to all parameters, each of its parameter's Arrow type.
    ///
    /// # Errors
    /// Those of [`QueryPlan::with_parameters`].
    pub fn with_parameters(self, values: Vec<ScalarValue>) -> SqlResult<StatementPlan> {
        Ok(match self {
            StatementPlan::Query(query) => StatementPlan::Query(query.with_parameters(values)?),
            StatementPlan::Write(mut write) => {
                if let Some(update) = write.conflict.as_mut().and_then(|conflict| conflict.update.as_mut()) {
                    update.plan = update.plan.clone().with_parameters(values.clone())?;
                }
                write.input = write.input.map(|input| input.with_parameters(values)).transpose()?;
                StatementPlan::Write(write)
            }
            StatementPlan::Modify(mut modify) => {
                modify.input = modify.input.with_parameters(values)?;
                StatementPlan::Modify(modify)
            }
            StatementPlan::CopyTo(mut copy) => {
                copy.query = copy.query.with_parameters(values)?;
                StatementPlan::CopyTo(copy)
            }
            StatementPlan::Explain(mut explain) => {
                explain.inner = Box::new(explain.inner.with_parameters(values)?);
                StatementPlan::Explain(explain)
            }
            StatementPlan::Session(SessionCommand::Declare { name, query, hold, scroll, binary }) => {
                let query = Box::new(query.with_parameters(values)?);
                StatementPlan::Session(SessionCommand::Declare { name, query, hold, scroll, binary })
            }
            other => other,
        })
    }
}

impl ExplainPlan {
    /// Returns the only result column.
    #[must_use]
    pub fn column(&self) -> OutputColumn {
        let sql_type = match self.format {
            ExplainFormat::Text => SqlType::Text,
            ExplainFormat::Json => SqlType::Json,
        };
        OutputColumn { name: "QUERY PLAN".to_owned(), sql_type, table: None, column: None }
    }
}
