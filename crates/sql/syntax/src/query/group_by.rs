//! GROUP BY, with ROLLUP, CUBE and GROUPING SETS.

use sqlparser::ast::Expr;
use types::SqlResult;
use types::stack_limit::too_complex_error;

use super::Cursor;
use crate::lex::Token;

/// Maximum number of elements of a CUBE in GROUPING SETS, which is expanded into its sets; PostgreSQL has the same
/// limit.
const CUBE_COLUMNS_MAX: usize = 12;

impl Cursor<'_> {
    pub(super) fn group_by(&mut self) -> SqlResult<Vec<Expr>> {
        if self.next_is("distinct") && *self.peek_at(1) != Token::Symbol('.') {
            return Err(self.unsupported("GROUP BY DISTINCT"));
        }
        self.eat("all");
        let mut groups = self.list(Self::grouping)?;
        // `()` adds nothing to other groups; alone it is the grand total.
        let is_empty = |group: &Expr| matches!(group, Expr::Tuple(columns) if columns.is_empty());
        if groups.iter().all(is_empty) {
            return Ok(vec![Expr::GroupingSets(vec![Vec::new()])]);
        }
        groups.retain(|group| !is_empty(group));
        Ok(groups)
    }

    fn grouping(&mut self) -> SqlResult<Expr> {
        if self.is_symbol('(') && *self.peek_at(1) == Token::Symbol(')') {
            self.next_index += 2;
            return Ok(Expr::Tuple(Vec::new()));
        }
        if self.eat("grouping sets") {
            let sets = self.parenthesized(|cursor| cursor.parse_nested(Self::grouping))?;
            return Ok(Expr::GroupingSets(sets.into_iter().map(expand_sets).collect::<SqlResult<Vec<_>>>()?.concat()));
        }
        let opens = *self.peek_at(1) == Token::Symbol('(');
        if opens && self.eat("rollup") {
            return self.parenthesized(Self::grouping_element).map(Expr::Rollup);
        }
        if opens && self.eat("cube") {
            return self.parenthesized(Self::grouping_element).map(Expr::Cube);
        }
        self.expr()
    }

    fn grouping_element(&mut self) -> SqlResult<Vec<Expr>> {
        self.expr().map(split_columns)
    }
}

/// Expands one element of GROUPING SETS into its grouping sets.
fn expand_sets(element: Expr) -> SqlResult<Vec<Vec<Expr>>> {
    Ok(match element {
        Expr::GroupingSets(sets) => sets,
        Expr::Rollup(levels) => (0..=levels.len()).rev().map(|count| levels[..count].concat()).collect(),
        Expr::Cube(levels) if levels.len() > CUBE_COLUMNS_MAX => return Err(too_complex_error()),
        Expr::Cube(levels) => {
            let all = 1_usize << levels.len();
            let chosen = |subset: usize| {
                let kept = levels.iter().enumerate().filter(|(at, _)| subset & (1 << (levels.len() - 1 - at)) != 0);
                kept.flat_map(|(_, columns)| columns.clone()).collect()
            };
            (0..all).rev().map(chosen).collect()
        }
        other => vec![split_columns(other)],
    })
}

/// Splits a grouping element into columns: `(a, b)` has two, `(a)` one.
fn split_columns(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::Tuple(columns) => columns,
        Expr::Nested(inner) => vec![*inner],
        other => vec![other],
    }
}
