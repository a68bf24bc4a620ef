//! Fixture: a catalog that statements change, as in sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use binder::{DefinePlan, StatementPlan};
use catalog::{CatalogState, Change, Constraint, ConstraintKind, Role, Table, View};
use session_context::{NoActivity, StatementContext};
use settings::Settings;
use shards::{ColumnStats, Hll, RowGroupMeta, ShardMeta};
use types::random::SeededRandom;
use types::{Oid, QueryId, ShardId, SqlError};

use crate::Planner;
use crate::tests::fixture::planner_without_rows;

/// Catalog without readable rows, with a planner.
pub(super) struct Database {
    planner: Planner,
    pub(super) state: CatalogState,
    pub(super) settings: Settings,
    role: String,
    next_oid: Arc<AtomicU32>,
}

impl Database {
    pub(super) fn new() -> Self {
        Self {
            planner: planner_without_rows(),
            state: CatalogState::new_warehouse(),
            settings: Settings::default(),
            role: "kiln".to_owned(),
            next_oid: Arc::new(AtomicU32::new(Oid::FIRST_USER.0)),
        }
    }

    /// Creates a catalog and runs these statements.
    pub(super) fn with(statements: &[&str]) -> Self {
        let mut database = Self::new();
        for sql in statements {
            database.run(sql);
        }
        database
    }

    /// Runs further statements as this role.
    pub(super) fn set_role(&mut self, role: &str) {
        role.clone_into(&mut self.role);
    }

    pub(super) fn context(&self) -> Arc<StatementContext> {
        let role = Arc::clone(self.state.role_by_name(&self.role).expect("the role is there"));
        let next_oid = Arc::clone(&self.next_oid);
        Arc::new(StatementContext {
            has_rows: true,
            snapshot: Arc::new(self.state.clone()),
            settings: Arc::new(self.settings.clone()),
            session_role: Arc::clone(&role),
            role,
            database: "kiln".to_owned(),
            query_id: QueryId(1),
            statement_us: 1_800_000_000_000_000,
            transaction_us: 1_800_000_000_000_000,
            backend_pid: 1,
            new_oid: Arc::new(move || Oid(next_oid.fetch_add(1, Ordering::Relaxed))),
            activity: Arc::new(NoActivity),
            random: Arc::new(SeededRandom::new(1)),
            clock: Arc::new(types::SystemClock::new()),
            commit: types::CommitTs(1),
            time_travel: Arc::new(session_context::NoTimeTravel),
            inputs: Arc::default(),
            arguments: Arc::default(),
            assignments: Arc::default(),
            sequences: Arc::new(session_context::NoSequenceNumbers),
        })
    }

    /// Plans one DDL statement, and applies its changes.
    pub(super) fn try_run(&mut self, sql: &str) -> Result<DefinePlan, SqlError> {
        let parsed = self.planner.parse(sql)?;
        let [statement] = parsed.as_slice() else { panic!("one statement: {sql}") };
        let StatementPlan::Define(plan) = self.planner.plan(statement, &[], &self.context())? else {
            panic!("a definition: {sql}")
        };
        for change in &plan.changes {
            self.state = self.state.apply(change).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        Ok(plan)
    }

    pub(super) fn run(&mut self, sql: &str) -> DefinePlan {
        self.try_run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
    }

    /// Returns the message of a statement that fails.
    pub(super) fn refusal(&mut self, sql: &str) -> SqlError {
        let before = self.state.clone();
        let error = self.try_run(sql).err().unwrap_or_else(|| panic!("refused: {sql}"));
        assert!(self.state == before, "a refused statement changes nothing");
        error
    }

    /// Returns the notices of a statement that succeeds.
    pub(super) fn notices(&mut self, sql: &str) -> Vec<String> {
        self.run(sql).notices.into_iter().map(|notice| notice.message).collect()
    }

    pub(super) fn table(&self, name: &str) -> Arc<Table> {
        Arc::clone(self.state.tables().find(|table| table.name == name).expect("the table is there"))
    }

    pub(super) fn view(&self, name: &str) -> Arc<View> {
        Arc::clone(self.state.views().find(|view| view.name == name).expect("the view is there"))
    }

    pub(super) fn role(&self, name: &str) -> Arc<Role> {
        Arc::clone(self.state.role_by_name(name).expect("the role is there"))
    }

    /// Returns the names of a table's constraints, in order.
    pub(super) fn constraints(&self, table: &str) -> Vec<String> {
        self.table(table).constraints.iter().map(|constraint| constraint.name.clone()).collect()
    }

    /// Adds three rows to the table, of which `nulls` have NULL in every column.
    pub(super) fn load(&mut self, table: &str, nulls: u64) {
        let table = self.table(table);
        let columns = table.columns.iter().map(|column| ColumnStats {
            column: column.id,
            nulls,
            nulls_guessed: false,
            min: None,
            max: None,
            bounds_exact: false,
            distinct: Hll::default(),
            ascending: false,
            strictly_ascending: false,
            average_run: 1.0,
            heavy_hitters: Vec::new(),
            bytes: 8,
        });
        let shard = ShardMeta {
            id: ShardId(uuid::Uuid::from_u128(1)),
            object: "tables/1/1.parquet".to_owned(),
            rows: 3,
            bytes: 100,
            tail_bytes: 8,
            tail_checksum: 7,
            columns: columns.collect(),
            row_groups: vec![RowGroupMeta { rows: 3, bytes: 100 }],
            row_ids: shards::RowIds::None,
            buckets: None,
        };
        let added = Change::AddShards { table: table.oid, shards: vec![Arc::new(shard)], sample: None };
        self.state = self.state.apply(&added).expect("rows can be added");
    }
}

/// Returns the text of a CHECK constraint.
pub(super) fn check_text(constraint: &Constraint) -> &str {
    match &constraint.kind {
        ConstraintKind::Check { expression, .. } => expression,
        other => panic!("a check, not {other:?}"),
    }
}
