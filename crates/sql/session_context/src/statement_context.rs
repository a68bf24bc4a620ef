//! The context that one statement is planned with.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use catalog::{CatalogState, Role, Schema};
use datafusion::scalar::ScalarValue;
use parking_lot::Mutex;
use settings::Settings;
use types::{Clock, CommitTs, Condition, Oid, QueryId, Random, SqlError, SqlResult};

use crate::planning_inputs::FetchedInputs;
use crate::sequence_numbers::SequenceNumbers;
use crate::server_activity::Activity;
use crate::time_travel::TimeTravel;

/// Context of one statement: catalog snapshot, roles, settings, time, and services that planning and functions use.
#[derive(Clone)]
pub struct StatementContext {
    /// Catalog snapshot, with the transaction's own changes.
    pub snapshot: Arc<CatalogState>,
    /// True if the snapshot has the rows of tables; statements are prepared without them.
    pub has_rows: bool,
    /// Newest commit in the snapshot.
    pub commit: CommitTs,
    /// Source of information about earlier commits.
    pub time_travel: Arc<dyn TimeTravel>,
    pub settings: Arc<Settings>,
    /// Role whose privileges apply: `current_user`.
    pub role: Arc<Role>,
    /// Role that logged in: `session_user`.
    pub session_role: Arc<Role>,
    pub database: String,
    pub query_id: QueryId,
    /// Arrival of the statement, in microseconds since 1970 UTC.
    pub statement_us: i64,
    /// Start of the transaction (`now()`), in microseconds since 1970 UTC.
    pub transaction_us: i64,
    pub backend_pid: i32,
    /// Allocator of ids for new objects.
    pub new_oid: Arc<dyn Fn() -> Oid + Send + Sync>,
    /// Activity of the server, for the system tables.
    pub activity: Arc<dyn Activity>,
    pub random: Arc<dyn Random>,
    pub clock: Arc<dyn Clock>,
    /// Earlier catalog states and files of external tables that were fetched for the statement.
    pub inputs: Arc<FetchedInputs>,
    /// Source of sequence numbers.
    pub sequences: Arc<dyn SequenceNumbers>,
    /// Values of the parameters, cast to their types; empty before they are bound.
    pub arguments: Arc<[ScalarValue]>,
    /// Settings that the statement's functions change once it has succeeded.
    pub assignments: Arc<SettingAssignments>,
}

/// New values of settings from `set_config`, in order; the session applies them after the statement.
#[derive(Debug, Default)]
pub struct SettingAssignments(Mutex<Vec<SettingAssignment>>);

/// New value of one setting, already validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingAssignment {
    pub name: String,
    pub value: String,
    /// True if the value applies to the transaction only.
    pub local: bool,
}

impl SettingAssignments {
    /// Adds a setting's new value, which takes effect after those before it.
    pub fn push(&self, assignment: SettingAssignment) {
        self.0.lock().push(assignment);
    }

    /// Removes and returns all assignments.
    #[must_use]
    pub fn take(&self) -> Vec<SettingAssignment> {
        std::mem::take(&mut self.0.lock())
    }
}

impl fmt::Debug for StatementContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatementContext")
            .field("query_id", &self.query_id)
            .field("role", &self.role.name)
            .field("statement_us", &self.statement_us)
            .finish_non_exhaustive()
    }
}

impl StatementContext {
    /// Returns whether functions that read the catalog, the role or the settings give the same results in both.
    pub(crate) fn has_same_meaning(&self, other: &Self) -> bool {
        self.commit == other.commit
            && self.role.oid == other.role.oid
            && self.session_role.oid == other.session_role.oid
            && (Arc::ptr_eq(&self.settings, &other.settings) || self.settings == other.settings)
    }

    /// Returns the effective search path: existing schemas of `search_path` in order, with `$user` and `pg_temp`
    /// resolved, preceded by the session's temporary schema and `pg_catalog` unless they are named.
    #[must_use]
    pub fn search_path(&self) -> Vec<String> {
        let mut path = self.explicit_search_path();
        if !path.iter().any(|name| name == "pg_catalog") {
            path.insert(0, "pg_catalog".to_owned());
        }
        let temporary = self.temp_schema_name();
        if !path.contains(&temporary) && self.snapshot.schema_by_name(&temporary).is_some() {
            path.insert(0, temporary);
        }
        path
    }

    /// Returns the existing schemas of `search_path`, in order, with `$user` and `pg_temp` resolved.
    #[must_use]
    pub fn explicit_search_path(&self) -> Vec<String> {
        let mut path: Vec<String> = Vec::new();
        for name in self.settings.search_path() {
            let name = if name == "$user" { self.role.name.clone() } else { self.schema_name(&name).into_owned() };
            if self.snapshot.schema_by_name(&name).is_some() && !path.contains(&name) {
                path.push(name);
            }
        }
        path
    }

    /// Returns the name of the session's temporary schema, which exists from its first temporary object on.
    #[must_use]
    pub fn temp_schema_name(&self) -> String {
        format!("{}{}", Schema::TEMPORARY_PREFIX, self.backend_pid)
    }

    /// Resolves a schema name as written: `pg_temp` is the session's temporary schema.
    #[must_use]
    pub fn schema_name<'n>(&self, written: &'n str) -> Cow<'n, str> {
        if written == "pg_temp" { Cow::Owned(self.temp_schema_name()) } else { Cow::Borrowed(written) }
    }

    /// Checks that a schema is not the temporary one of another session.
    ///
    /// # Errors
    /// `0A000` if it is.
    pub fn check_not_foreign_temporary(&self, schema: Oid) -> SqlResult<()> {
        let found = self.snapshot.schema(schema);
        if found.is_some_and(|schema| schema.is_temporary() && schema.name != self.temp_schema_name()) {
            let message = "cannot access temporary tables of other sessions";
            return Err(SqlError::new(Condition::FeatureNotSupported, message));
        }
        Ok(())
    }

    /// Returns whether the current role is `owner` or a superuser.
    #[must_use]
    pub fn owns(&self, owner: Oid) -> bool {
        self.role.superuser || self.role.oid == owner
    }
}
