//! INSERT.

use sqlparser::ast::{Expr, Ident, ObjectName, Query, SetExpr, With};
use types::SqlResult;

use super::token_cursor::Cursor;
use super::update::{Assignment, Returning};

/// `INSERT INTO table [AS alias] [(columns)] source`.
#[derive(Debug, Clone)]
pub struct Insert {
    pub table: ObjectName,
    pub alias: Option<Ident>,
    /// Columns that receive values; if empty, the first columns of the table, as many as the source has.
    pub columns: Vec<Ident>,
    pub overriding: Option<Overriding>,
    pub source: InsertSource,
    pub on_conflict: Option<OnConflict>,
    pub returning: Option<Returning>,
}

/// `OVERRIDING … VALUE`: treatment of values supplied for identity columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overriding {
    /// Supplied values are stored, even into GENERATED ALWAYS columns.
    System,
    /// Supplied values are ignored.
    User,
}

/// Source of the rows of an INSERT.
#[derive(Debug, Clone)]
pub enum InsertSource {
    DefaultValues,
    /// A query; a WITH before INSERT is part of it. In VALUES, DEFAULT is represented as
    /// [`super::statement::is_default`] recognizes it.
    Query(Box<Query>),
}

/// `ON CONFLICT` clause.
#[derive(Debug, Clone)]
pub struct OnConflict {
    pub target: Option<ConflictTarget>,
    /// `DO UPDATE`; `None` is DO NOTHING.
    pub update: Option<ConflictUpdate>,
}

/// `DO UPDATE SET … [WHERE …]`.
#[derive(Debug, Clone)]
pub struct ConflictUpdate {
    pub assignments: Vec<Assignment>,
    pub condition: Option<Expr>,
}

/// Constraint whose violation counts as the conflict, by columns or by name.
#[derive(Debug, Clone)]
pub enum ConflictTarget {
    Columns(Vec<Ident>),
    Constraint(Ident),
}

impl Cursor<'_> {
    /// Parses INSERT, after its WITH.
    pub(super) fn insert(&mut self, with: Option<With>) -> SqlResult<Insert> {
        self.expect("insert into")?;
        let table = self.object_name()?;
        let alias = if self.eat("as") { Some(self.name()?) } else { None };
        let columns = if self.is_symbol('(') && !self.begins_query_in_parentheses() {
            self.parenthesized(Self::inserted_column)?
        } else {
            Vec::new()
        };
        let overriding = self.overriding()?;
        let source = self.insert_source(with)?;
        let on_conflict = if self.eat("on conflict") { Some(self.on_conflict()?) } else { None };
        let returning = self.returning()?;
        Ok(Insert { table, alias, columns, overriding, source, on_conflict, returning })
    }

    pub(super) fn overriding(&mut self) -> SqlResult<Option<Overriding>> {
        if !self.eat("overriding") {
            return Ok(None);
        }
        let overriding = if self.eat("system") {
            Overriding::System
        } else {
            self.expect("user")?;
            Overriding::User
        };
        self.expect("value")?;
        Ok(Some(overriding))
    }

    fn inserted_column(&mut self) -> SqlResult<Ident> {
        let column = self.name()?;
        if self.is_symbol('.') || self.is_symbol('[') {
            return Err(self.unsupported("INSERT into a part of a column"));
        }
        Ok(column)
    }

    fn insert_source(&mut self, with: Option<With>) -> SqlResult<InsertSource> {
        if with.is_none() && self.eat("default values") {
            return Ok(InsertSource::DefaultValues);
        }
        if self.next_is("values") {
            let values = self.values(true)?;
            return self.finish_query(with, SetExpr::Values(values)).map(InsertSource::Query);
        }
        let query = self.query()?;
        let Some(with) = with else { return Ok(InsertSource::Query(query)) };
        // Names of the query's own WITH hide those of the statement's WITH.
        self.finish_query(Some(with), SetExpr::Query(query)).map(InsertSource::Query)
    }

    fn on_conflict(&mut self) -> SqlResult<OnConflict> {
        let target = if self.eat("on constraint") {
            Some(ConflictTarget::Constraint(self.name()?))
        } else if self.is_symbol('(') {
            let columns = self.parenthesized(Self::conflict_column)?;
            if self.next_is("where") {
                return Err(self.unsupported("WHERE of a conflict target"));
            }
            Some(ConflictTarget::Columns(columns))
        } else {
            None
        };
        self.expect("do")?;
        if self.eat("nothing") {
            return Ok(OnConflict { target, update: None });
        }
        self.expect("update set")?;
        let assignments = self.list(Self::set_clause)?;
        let condition = if self.eat("where") { Some(self.expr()?) } else { None };
        Ok(OnConflict { target, update: Some(ConflictUpdate { assignments, condition }) })
    }

    fn conflict_column(&mut self) -> SqlResult<Ident> {
        if !self.is_symbol('(') {
            let column = self.label()?;
            if self.is_symbol(',') || self.is_symbol(')') {
                return Ok(column);
            }
        }
        Err(self.unsupported("an expression in a conflict target"))
    }
}
