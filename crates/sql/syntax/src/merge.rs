//! MERGE.

use sqlparser::ast::{Expr, Ident, TableWithJoins, With};
use types::{Condition, SqlError, SqlResult};

use super::insert::Overriding;
use super::token_cursor::Cursor;
use super::update::{Assignment, ModifiedTable, Returning};

/// `MERGE INTO table [AS alias] USING source ON condition WHEN … THEN … [RETURNING …]`.
#[derive(Debug, Clone)]
pub struct Merge {
    pub with: Option<With>,
    pub target: ModifiedTable,
    pub source: TableWithJoins,
    pub on: Expr,
    pub clauses: Vec<MergeClause>,
    pub returning: Option<Returning>,
}

/// `WHEN … [AND condition] THEN …`.
#[derive(Debug, Clone)]
pub struct MergeClause {
    pub when: MergeWhen,
    pub condition: Option<Expr>,
    pub action: MergeAction,
}

/// Rows of the join that a clause applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeWhen {
    Matched,
    /// Source rows without a matching target row.
    NotMatched,
    /// Target rows without a matching source row.
    NotMatchedBySource,
}

/// Action of a clause.
#[derive(Debug, Clone)]
pub enum MergeAction {
    Nothing,
    Delete,
    Update(Vec<Assignment>),
    /// `values` is `None` for DEFAULT VALUES. Among the values, DEFAULT is represented as
    /// [`super::statement::is_default`] recognizes it.
    Insert {
        columns: Vec<Ident>,
        overriding: Option<Overriding>,
        values: Option<Vec<Expr>>,
    },
}

impl Cursor<'_> {
    /// Parses MERGE, after its WITH.
    pub(super) fn merge(&mut self, with: Option<With>) -> SqlResult<Merge> {
        self.expect("merge into")?;
        let target = self.modified_table()?;
        self.expect("using")?;
        let source = self.table_with_joins()?;
        self.expect("on")?;
        let on = self.expr()?;
        let mut clauses = Vec::new();
        while self.next_is("when") {
            clauses.push(self.merge_clause()?);
        }
        if clauses.is_empty() {
            return Err(self.syntax_error());
        }
        check_reachable(&clauses)?;
        let returning = self.returning()?;
        Ok(Merge { with, target, source, on, clauses, returning })
    }

    fn merge_clause(&mut self) -> SqlResult<MergeClause> {
        self.expect("when")?;
        let when = if self.eat("not matched by source") {
            MergeWhen::NotMatchedBySource
        } else if self.eat("not matched") {
            if self.eat("by") {
                self.expect("target")?;
            }
            MergeWhen::NotMatched
        } else {
            self.expect("matched")?;
            MergeWhen::Matched
        };
        let condition = if self.eat("and") { Some(self.expr()?) } else { None };
        self.expect("then")?;
        let changes = when != MergeWhen::NotMatched;
        let action = if self.eat("do nothing") {
            MergeAction::Nothing
        } else if changes && self.eat("update set") {
            MergeAction::Update(self.list(Self::set_clause)?)
        } else if changes && self.eat("delete") {
            MergeAction::Delete
        } else if !changes && self.eat("insert") {
            self.merge_insert()?
        } else {
            return Err(self.syntax_error());
        };
        Ok(MergeClause { when, condition, action })
    }

    fn merge_insert(&mut self) -> SqlResult<MergeAction> {
        let columns = self.optional_names()?;
        let overriding = self.overriding()?;
        if overriding.is_none() && self.eat("default values") {
            return Ok(MergeAction::Insert { columns, overriding, values: None });
        }
        self.expect("values")?;
        let values = self.parenthesized(|cursor| cursor.row_value(true))?;
        Ok(MergeAction::Insert { columns, overriding, values: Some(values) })
    }
}

/// Checks that no clause follows an unconditional clause for the same rows.
fn check_reachable(clauses: &[MergeClause]) -> SqlResult<()> {
    let is_hidden = |(at, clause): (usize, &MergeClause)| {
        clauses[..at].iter().any(|earlier| earlier.when == clause.when && earlier.condition.is_none())
    };
    if clauses.iter().enumerate().any(is_hidden) {
        let message = "unreachable WHEN clause specified after unconditional WHEN clause";
        return Err(SqlError::new(Condition::SyntaxError, message));
    }
    Ok(())
}
