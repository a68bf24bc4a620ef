//! Syntax trees of statements, and the choice of a statement's grammar by its first keywords.
//!
//! Queries and expressions are `sqlparser`'s; the structs of other statements are Kiln's own, because PostgreSQL's
//! statement grammar is smaller than `sqlparser`'s and every field here is honoured by a consumer. Names are folded to
//! lower case and truncated as in PostgreSQL: a name's `value` is the name itself, quoted or not.

use sqlparser::ast::{Expr, ObjectName, Query, Select, SetExpr};
use types::{SqlError, SqlResult};

use super::token_cursor::Cursor;

pub use super::alter::{
    AlterAction, AlterDatabase, AlterRole, AlterRoleAction, AlterSchema, AlterSchemaAction, AlterTable,
};
pub use super::cluster::{AlterClusterAction, ClusterStatement, GranteeSpec};
pub use super::copy::{Copy, CopyDirection, CopyEndpoint, CopySubject};
pub use super::create::{CreateSchema, CreateView};
pub use super::create_index::{CreateIndex, IndexColumn};
pub use super::create_table::{
    ColumnConstraint, ColumnConstraintKind, ColumnDefinition, CreateTable, DistributionClause, LikeTable, OrderClause,
    References, SortKey, TableConstraint, TableConstraintKind, TableSource,
};
pub use super::delete::Delete;
pub use super::drop::{Comment, CommentTarget, Drop, DropKind, Truncate};
pub use super::explain::Explain;
pub use super::external_table::CreateExternalTable;
pub use super::insert::{ConflictTarget, ConflictUpdate, Insert, InsertSource, OnConflict, Overriding};
pub use super::merge::{Merge, MergeAction, MergeClause, MergeWhen};
pub use super::query::locking_clause::{LockedRelation, lock_mode_keywords};
pub use super::role::{CreateRole, RoleOption, RoleSpec};
pub use super::sequence::{AlterSequence, AlterSequenceAction, CreateSequence, IdentityDefinition, SequenceOption};
pub use super::session_statement::{DeclareCursor, Discard, FetchDirection, SessionStatement};
pub use super::statement_option::{OptionValue, StatementOption};

pub use super::transaction::{IsolationLevel, TransactionModes};
pub use super::update::column_count_mismatch;
pub use super::update::{AssignedValue, Assignment, ModifiedTable, Returning, Update};

/// Statement as written.
#[derive(Debug, Clone)]
pub enum Statement {
    /// SELECT, VALUES or TABLE, with its WITH clause.
    Query(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
    Copy(Box<Copy>),
    Explain(Box<Explain>),
    /// CREATE TABLE, and CREATE TABLE AS.
    CreateTable(Box<CreateTable>),
    CreateExternalTable(Box<CreateExternalTable>),
    CreateView(Box<CreateView>),
    CreateIndex(Box<CreateIndex>),
    CreateSchema(CreateSchema),
    CreateSequence(Box<CreateSequence>),
    CreateRole(Box<CreateRole>),
    /// ALTER TABLE and ALTER VIEW.
    AlterTable(Box<AlterTable>),
    AlterSequence(Box<AlterSequence>),
    AlterSchema(AlterSchema),
    AlterRole(Box<AlterRole>),
    AlterDatabase(AlterDatabase),
    Drop(Drop),
    Truncate(Truncate),
    /// `UNDROP TABLE name`.
    Undrop(ObjectName),
    Comment(Comment),
    /// CREATE, ALTER, DROP and USE CLUSTER, and GRANT and REVOKE of the use of clusters.
    Cluster(Box<ClusterStatement>),
    /// Statement that concerns only the session or its transaction.
    Session(Box<SessionStatement>),
    /// Statement that PostgreSQL has and Kiln does not have: the error that executing it returns.
    Unsupported(Box<SqlError>),
}

impl Cursor<'_> {
    /// Parses a statement and checks that nothing follows it.
    pub(super) fn statement_to_end(&mut self) -> SqlResult<Statement> {
        let statement = self.statement()?;
        if self.is_at_end() { Ok(statement) } else { Err(self.syntax_error()) }
    }

    /// Parses a statement, chosen by its first keywords.
    pub(super) fn statement(&mut self) -> SqlResult<Statement> {
        if self.is_symbol('(') {
            return self.query_statement();
        }
        match self.next_word() {
            Some("select" | "values" | "table") => self.query_statement(),
            Some("with") => {
                let with = self.with()?;
                match self.next_word() {
                    Some("insert") => self.insert(with).map(|it| Statement::Insert(Box::new(it))),
                    Some("update") => self.update(with).map(|it| Statement::Update(Box::new(it))),
                    Some("delete") => self.delete(with).map(|it| Statement::Delete(Box::new(it))),
                    Some("merge") => self.merge(with).map(|it| Statement::Merge(Box::new(it))),
                    _ => {
                        self.may_select_into = true;
                        query_or_create_table(self.query_after_with(with)?)
                    }
                }
            }
            Some("insert") => self.insert(None).map(|it| Statement::Insert(Box::new(it))),
            Some("update") => self.update(None).map(|it| Statement::Update(Box::new(it))),
            Some("delete") => self.delete(None).map(|it| Statement::Delete(Box::new(it))),
            Some("merge") => self.merge(None).map(|it| Statement::Merge(Box::new(it))),
            Some("copy") => self.copy().map(|it| Statement::Copy(Box::new(it))),
            Some("explain") => self.explain(),
            Some("create") => self.create(),
            Some("alter") => self.alter(),
            Some("drop") if self.next_is("drop cluster") => {
                self.expect("drop")?;
                self.drop_cluster()
            }
            Some("drop") => self.drop().map(Statement::Drop),
            Some("truncate") => self.truncate().map(Statement::Truncate),
            Some("undrop") => {
                self.expect("undrop table")?;
                self.object_name().map(Statement::Undrop)
            }
            Some("comment") => self.comment().map(Statement::Comment),
            Some("grant" | "revoke") => self.grant(),
            Some("use") if self.next_is("use cluster") => self.use_cluster(),
            Some(word) => match self.session_statement()? {
                Some(command) => Ok(Statement::Session(Box::new(command))),
                None if UNSUPPORTED_STATEMENTS.contains(&word) => Err(self.unsupported(&word.to_uppercase())),
                None => Err(self.syntax_error()),
            },
            None => Err(self.syntax_error()),
        }
    }

    fn query_statement(&mut self) -> SqlResult<Statement> {
        self.may_select_into = true;
        query_or_create_table(self.query()?)
    }
}

/// First keywords of statements that PostgreSQL has and Kiln does not have.
const UNSUPPORTED_STATEMENTS: [&str; 12] = [
    "call", "cluster", "do", "import", "listen", "load", "lock", "notify", "reassign", "refresh", "reindex", "security",
];

/// Converts SELECT INTO to CREATE TABLE AS; other queries stay queries.
fn query_or_create_table(mut query: Box<Query>) -> SqlResult<Statement> {
    let Some(into) = first_select(&mut query).and_then(|select| select.into.take()) else {
        return Ok(Statement::Query(query));
    };
    Ok(Statement::CreateTable(Box::new(CreateTable {
        name: into.name,
        if_not_exists: false,
        source: TableSource::Query { column_names: Vec::new(), query, with_data: true },
        distribution: None,
        order: None,
        parameters: Vec::new(),
        temporary: into.temporary,
        on_commit: None,
    })))
}

/// Returns the leftmost SELECT, whose INTO counts.
fn first_select(query: &mut Query) -> Option<&mut Select> {
    let mut body = query.body.as_mut();
    loop {
        match body {
            SetExpr::Select(select) => return Some(select),
            SetExpr::SetOperation { left, .. } => body = left,
            _ => return None,
        }
    }
}

impl Statement {
    /// Whether the statement ends a transaction block or rolls back to a savepoint: the only statements that a failed
    /// block accepts.
    #[must_use]
    pub fn ends_transaction(&self) -> bool {
        matches!(self, Self::Session(command)
            if matches!(command.as_ref(), SessionStatement::Commit { .. } | SessionStatement::Rollback { .. } | SessionStatement::RollbackTo(_)))
    }
}

/// Whether an expression in a VALUES list of INSERT is the keyword DEFAULT.
#[must_use]
pub fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value == "default")
}
