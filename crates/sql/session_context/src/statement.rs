//! What one statement is planned with: the catalog as it sees it, who asks, and when.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use catalog::{CatalogState, Role, Schema};
use datafusion::scalar::ScalarValue;
use parking_lot::Mutex;
use settings::Settings;
use types::{Clock, CommitTs, Condition, Oid, QueryId, Random, SqlError, SqlResult};

use crate::activity::Activity;
use crate::inputs::FetchedInputs;
use crate::past::Past;
use crate::sequences::SequenceNumbers;

/// The surroundings of one statement.
#[derive(Clone)]
pub struct StatementContext {
    /// The catalog with the transaction's own changes.
    pub snapshot: Arc<CatalogState>,
    /// Whether the snapshot has the rows of tables. A statement is prepared without.
    pub has_rows: bool,
    /// The newest commit that it has.
    pub commit: CommitTs,
    /// Earlier commits.
    pub past: Arc<dyn Past>,
    pub settings: Arc<Settings>,
    /// Whose privileges count: `current_user`.
    pub role: Arc<Role>,
    /// Who logged in: `session_user`.
    pub session_role: Arc<Role>,
    pub database: String,
    pub query_id: QueryId,
    /// When the statement arrived: microseconds since 1970 UTC.
    pub statement_us: i64,
    /// When its transaction began: `now()`.
    pub transaction_us: i64,
    pub backend_pid: i32,
    /// Gives ids for new objects.
    pub new_oid: Arc<dyn Fn() -> Oid + Send + Sync>,
    /// What the server is doing, for the system tables.
    pub activity: Arc<dyn Activity>,
    pub random: Arc<dyn Random>,
    pub clock: Arc<dyn Clock>,
    /// States of the past and files of external tables: all that the statement needs of them.
    pub inputs: Arc<FetchedInputs>,
    /// Gives the numbers of sequences.
    pub sequences: Arc<dyn SequenceNumbers>,
    /// The values of its parameters, of their types; none where they are not given yet.
    pub arguments: Arc<[ScalarValue]>,
    /// What functions of the statement want set once it has succeeded.
    pub assignments: Arc<Assignments>,
}

/// Settings that `set_config` gave new values, in order: the session takes them over after the statement.
#[derive(Debug, Default)]
pub struct Assignments(Mutex<Vec<Assignment>>);

/// One setting's new value, known to be valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub name: String,
    pub value: String,
    /// For the transaction only.
    pub local: bool,
}

impl Assignments {
    /// Adds a setting's new value, which takes effect after those before it.
    pub fn push(&self, assignment: Assignment) {
        self.0.lock().push(assignment);
    }

    /// Everything so far; nothing is left behind.
    #[must_use]
    pub fn take(&self) -> Vec<Assignment> {
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
    /// Whether functions that read the catalog, the role or the settings give the same in both.
    pub(crate) fn means_as(&self, other: &Self) -> bool {
        self.commit == other.commit
            && self.role.oid == other.role.oid
            && self.session_role.oid == other.session_role.oid
            && (Arc::ptr_eq(&self.settings, &other.settings) || self.settings == other.settings)
    }

    /// The schemas of `search_path` that exist, in order, `$user` and `pg_temp` resolved; before them the session's temporary objects
    /// and `pg_catalog`, unless they are named.
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

    /// The schemas of `search_path` that exist, in order, `$user` and `pg_temp` resolved.
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

    /// The name of the schema that holds the session's temporary objects; it is made for the first of them.
    #[must_use]
    pub fn temp_schema_name(&self) -> String {
        format!("{}{}", Schema::TEMPORARY_PREFIX, self.backend_pid)
    }

    /// The schema that a statement calls by this name: `pg_temp` is the session's own.
    #[must_use]
    pub fn schema_name<'n>(&self, written: &'n str) -> Cow<'n, str> {
        if written == "pg_temp" { Cow::Owned(self.temp_schema_name()) } else { Cow::Borrowed(written) }
    }

    /// `0A000` for what another session made for itself.
    ///
    /// # Errors
    /// That.
    pub fn refuse_temporary_of_others(&self, schema: Oid) -> SqlResult<()> {
        let found = self.snapshot.schema(schema);
        if found.is_some_and(|schema| schema.is_temporary() && schema.name != self.temp_schema_name()) {
            let message = "cannot access temporary tables of other sessions";
            return Err(SqlError::new(Condition::FeatureNotSupported, message));
        }
        Ok(())
    }

    /// Whether the role owns what belongs to `owner`, or may do everything.
    #[must_use]
    pub fn owns(&self, owner: Oid) -> bool {
        self.role.superuser || self.role.oid == owner
    }
}
