//! CREATE VIEW, CREATE SCHEMA, and the choice between the kinds of CREATE; tables are in `create_table.rs`, roles in
//! `role.rs`.

use sqlparser::ast::{Ident, ObjectName, Query};
use types::{SqlError, SqlResult};

use super::role::RoleSpec;
use super::statement::Statement;
use super::token_cursor::Cursor;

/// `CREATE [OR REPLACE] VIEW name [(columns)] AS query`.
#[derive(Debug, Clone)]
pub struct CreateView {
    pub or_replace: bool,
    pub temporary: bool,
    pub name: ObjectName,
    /// Names for the first columns of the query; may be empty.
    pub columns: Vec<Ident>,
    pub query: Box<Query>,
}

/// `CREATE SCHEMA [IF NOT EXISTS] [name] [AUTHORIZATION role]`; the default name is the role's.
#[derive(Debug, Clone)]
pub struct CreateSchema {
    pub name: Option<Ident>,
    pub if_not_exists: bool,
    pub owner: Option<RoleSpec>,
}

/// Kinds of objects that PostgreSQL can create, alter and drop and Kiln cannot; `index` stands for ALTER INDEX.
pub(super) const UNSUPPORTED_KINDS: [&str; 29] = [
    "access method",
    "aggregate",
    "cast",
    "collation",
    "constraint trigger",
    "conversion",
    "default conversion",
    "domain",
    "event trigger",
    "extension",
    "foreign data wrapper",
    "foreign table",
    "function",
    "index",
    "language",
    "materialized view",
    "operator",
    "policy",
    "procedure",
    "publication",
    "routine",
    "rule",
    "server",
    "statistics",
    "subscription",
    "tablespace",
    "text search",
    "trigger",
    "type",
];

impl Cursor<'_> {
    /// Parses a CREATE statement of any kind.
    pub(super) fn create(&mut self) -> SqlResult<Statement> {
        let start = self.next_index;
        self.expect("create")?;
        let or_replace = self.eat("or replace");
        if self.eat("unlogged") {
            let known = matches!(self.next_word(), Some("table" | "sequence"));
            return Err(if known { SqlError::unsupported("an unlogged table") } else { self.syntax_error() });
        }
        let temporary = self.temporary()?;
        if temporary && !matches!(self.next_word(), Some("table" | "view" | "sequence" | "recursive")) {
            return Err(self.syntax_error());
        }
        match self.next_word() {
            Some("table") if !or_replace => self.create_table(temporary).map(|it| Statement::CreateTable(Box::new(it))),
            Some("external") if !or_replace => {
                self.create_external_table().map(|it| Statement::CreateExternalTable(Box::new(it)))
            }
            Some("view") => self.create_view(or_replace, temporary),
            Some("index") if !or_replace => self.create_index().map(|it| Statement::CreateIndex(Box::new(it))),
            Some("unique") if !or_replace && self.next_is("unique index") => {
                self.create_index().map(|it| Statement::CreateIndex(Box::new(it)))
            }
            Some("recursive") if self.next_is("recursive view") => Err(self.unsupported("CREATE RECURSIVE VIEW")),
            Some("cluster") if !temporary => self.create_cluster(or_replace),
            Some("schema") if !or_replace => self.create_schema(),
            Some("sequence") if !or_replace => {
                self.create_sequence(temporary).map(|it| Statement::CreateSequence(Box::new(it)))
            }
            Some("role" | "user" | "group") if !or_replace && !self.next_is("user mapping") => {
                self.create_role().map(|it| Statement::CreateRole(Box::new(it)))
            }
            _ => Err(self.unsupported_kind(start, "CREATE")),
        }
    }

    /// Returns `0A000` for a kind of object that PostgreSQL has and Kiln does not have, else a syntax error.
    pub(super) fn unsupported_kind(&mut self, start: usize, verb: &str) -> SqlError {
        let modifiers = ["unique", "trusted", "procedural", "concurrently"];
        while self.eat_one_of(&modifiers).is_some() {}
        let also =
            ["database", "user mapping", "default privileges", "large object", "system", "transform", "owned", "group"];
        let kind = UNSUPPORTED_KINDS.iter().chain(&also).find(|kind| self.next_is(kind));
        match kind {
            Some(kind) => {
                self.next_index = start;
                self.unsupported(&format!("{verb} {}", kind.to_uppercase()))
            }
            None => self.syntax_error(),
        }
    }

    /// Takes `[LOCAL | GLOBAL] TEMPORARY` or `TEMP`; returns whether it was there.
    pub(super) fn temporary(&mut self) -> SqlResult<bool> {
        let scope =
            matches!(self.word_at(1), Some("temporary" | "temp")) && self.eat_one_of(&["local", "global"]).is_some();
        let temporary = self.eat_one_of(&["temporary", "temp"]).is_some();
        if scope && !temporary { Err(self.syntax_error()) } else { Ok(temporary) }
    }

    fn create_view(&mut self, or_replace: bool, temporary: bool) -> SqlResult<Statement> {
        self.expect("view")?;
        let name = self.object_name()?;
        let columns = self.optional_names()?;
        if self.next_is("with") {
            return Err(self.unsupported("an option of a view"));
        }
        self.expect("as")?;
        let query = self.query()?;
        if self.next_is("with") {
            return Err(self.unsupported("WITH CHECK OPTION"));
        }
        Ok(Statement::CreateView(Box::new(CreateView { or_replace, temporary, name, columns, query })))
    }

    fn create_schema(&mut self) -> SqlResult<Statement> {
        self.expect("schema")?;
        let if_not_exists = self.eat("if not exists");
        let name = if self.next_is("authorization") { None } else { Some(self.name()?) };
        let owner = if self.eat("authorization") { Some(self.role_spec()?) } else { None };
        if name.is_none() && owner.is_none() {
            return Err(self.syntax_error());
        }
        if !self.is_at_end() && matches!(self.next_word(), Some("create" | "grant")) {
            return Err(self.unsupported("CREATE SCHEMA with the objects in it"));
        }
        Ok(Statement::CreateSchema(CreateSchema { name, if_not_exists, owner }))
    }
}
