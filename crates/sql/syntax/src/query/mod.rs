//! Queries: WITH, set operations, VALUES, ORDER BY and LIMIT.
//!
//! - `select.rs`: SELECT lists and the clauses of SELECT; `from_clause.rs`: FROM; `group_by.rs`: GROUP BY,
//! - `union_chain.rs`: chains of UNION as balanced trees,
//! - `locking_clause.rs`: FOR UPDATE and FOR SHARE.

mod from_clause;
mod group_by;
pub(super) mod locking_clause;
mod select;
mod union_chain;

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Cte, CteAsMaterialized, Expr, Fetch, Ident, LimitClause, Offset, OffsetRows, OrderBy, OrderByExpr, OrderByKind,
    OrderByOptions, Parens, Query, SetExpr, SetOperator, SetQuantifier, TableAlias, TableAliasColumnDef, TableFactor,
    Value, Values, With,
};
use types::{Condition, SqlError, SqlResult};

pub use self::union_chain::UNION_BALANCED_MIN;
use self::union_chain::UnionChain;
use super::lex::Token;
use super::token_cursor::Cursor;

impl Cursor<'_> {
    /// Whether a query without parentheses comes next.
    pub(super) fn begins_query(&self) -> bool {
        self.begins_query_at(0)
    }

    fn begins_query_at(&self, ahead: usize) -> bool {
        match self.word_at(ahead) {
            Some("select" | "with" | "table") => true,
            Some("values") => *self.peek_at(ahead + 1) == Token::Symbol('('),
            _ => false,
        }
    }

    /// Whether opening parentheses and then a query come next.
    pub(super) fn begins_query_in_parentheses(&self) -> bool {
        let mut ahead = 0;
        while *self.peek_at(ahead) == Token::Symbol('(') {
            ahead += 1;
        }
        self.begins_query_at(ahead)
    }

    /// Whether the next word continues a query that was in parentheses: a set operator or a clause after the rows.
    pub(super) fn continues_query(&self) -> bool {
        matches!(
            self.next_word(),
            Some("union" | "intersect" | "except" | "order" | "limit" | "offset" | "fetch" | "for")
        )
    }

    /// Parses a query.
    pub(super) fn query(&mut self) -> SqlResult<Box<Query>> {
        self.parse_nested(|cursor| {
            let with = cursor.with()?;
            if let Some(word) = cursor.eat_one_of(&["insert", "update", "delete", "merge"]) {
                if with.is_none() {
                    cursor.next_index -= 1;
                    return Err(cursor.syntax_error());
                }
                return Err(SqlError::unsupported(format_args!("{} in a query", word.to_uppercase())));
            }
            cursor.query_after_with(with)
        })
    }

    /// Parses a query whose WITH is parsed already.
    pub(super) fn query_after_with(&mut self, with: Option<With>) -> SqlResult<Box<Query>> {
        let body = self.set_expr(0)?;
        self.finish_query(with, body)
    }

    /// Parses the remainder of a query that begins with a parenthesized query.
    pub(super) fn continue_query(&mut self, first: Box<Query>) -> SqlResult<Box<Query>> {
        if !self.continues_query() {
            return Ok(first);
        }
        let body = self.set_operations(SetExpr::Query(first), 0)?;
        self.finish_query(None, body)
    }

    /// Parses an optional WITH clause.
    pub(super) fn with(&mut self) -> SqlResult<Option<With>> {
        if !self.eat("with") {
            return Ok(None);
        }
        let recursive = self.eat("recursive");
        let cte_tables = self.list(Self::cte)?;
        Ok(Some(With { with_token: AttachedToken::empty(), recursive, cte_tables }))
    }

    fn cte(&mut self) -> SqlResult<Cte> {
        let name = self.name()?;
        let columns = self.optional_names()?.into_iter().map(column_alias).collect();
        self.expect("as")?;
        let materialized = if self.eat("not materialized") {
            Some(CteAsMaterialized::NotMaterialized)
        } else if self.eat("materialized") {
            Some(CteAsMaterialized::Materialized)
        } else {
            None
        };
        self.expect_symbol('(')?;
        if matches!(self.next_word(), Some("insert" | "update" | "delete" | "merge")) {
            return Err(self.unsupported("a data-modifying statement in WITH"));
        }
        let query = self.query()?;
        self.expect_symbol(')')?;
        if self.next_is("search") || self.next_is("cycle") {
            return Err(self.unsupported("SEARCH and CYCLE"));
        }
        let alias = TableAlias { explicit: false, name, columns, at: None };
        Ok(Cte { alias, query, from: None, materialized, closing_paren_token: AttachedToken::empty() })
    }

    fn set_expr(&mut self, least: u8) -> SqlResult<SetExpr> {
        let first = self.set_operand()?;
        self.set_operations(first, least)
    }

    /// Parses the set operators after `left` that bind tighter than `least`; INTERSECT binds tighter than UNION and
    /// EXCEPT.
    fn set_operations(&mut self, mut left: SetExpr, least: u8) -> SqlResult<SetExpr> {
        loop {
            let (op, level) = match self.next_word() {
                Some("union") => (SetOperator::Union, 1),
                Some("except") => (SetOperator::Except, 1),
                Some("intersect") => (SetOperator::Intersect, 2),
                _ => return Ok(left),
            };
            if level <= least {
                return Ok(left);
            }
            left = if op == SetOperator::Union {
                self.union_chain(left)?
            } else {
                self.advance();
                self.add_tree_level()?;
                let set_quantifier = self.set_quantifier();
                let right = Box::new(self.set_expr(level)?);
                SetExpr::SetOperation { op, set_quantifier, left: Box::new(left), right }
            };
        }
    }

    fn set_quantifier(&mut self) -> SetQuantifier {
        match self.eat_one_of(&["all", "distinct"]) {
            Some("all") => SetQuantifier::All,
            Some(_) => SetQuantifier::Distinct,
            None => SetQuantifier::None,
        }
    }

    /// Parses `first UNION … UNION …`, up to another operator.
    fn union_chain(&mut self, first: SetExpr) -> SqlResult<SetExpr> {
        let mut chain = UnionChain::new(first);
        while self.eat("union") {
            let quantifier = self.set_quantifier();
            chain.push(quantifier, self.set_expr(1)?);
        }
        for _ in 0..chain.height() {
            self.add_tree_level()?;
        }
        Ok(chain.into_tree())
    }

    fn set_operand(&mut self) -> SqlResult<SetExpr> {
        match self.next_word() {
            Some("select") => self.select().map(|select| SetExpr::Select(Box::new(select))),
            Some("values") => self.values(false).map(SetExpr::Values),
            Some("table") => {
                self.advance();
                let table = self.relation()?;
                if let TableFactor::Table { name, .. } = &table {
                    self.record_read(name, None);
                }
                Ok(SetExpr::Select(Box::new(select::select_all(table))))
            }
            _ if self.eat_symbol('(') => {
                let query = self.query()?;
                self.expect_symbol(')')?;
                Ok(SetExpr::Query(query))
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// Parses VALUES; `defaults` says whether DEFAULT is allowed as a value.
    pub(super) fn values(&mut self, defaults: bool) -> SqlResult<Values> {
        self.expect("values")?;
        let mut width = None;
        let rows = self.list(|cursor| {
            let place = cursor.next_index;
            let content = cursor.parenthesized(|cursor| cursor.row_value(defaults))?;
            if *width.get_or_insert(content.len()) != content.len() {
                cursor.next_index = place + 1;
                let message = "VALUES lists must all be the same length";
                return Err(cursor.with_next_position(SqlError::new(Condition::SyntaxError, message)));
            }
            Ok(Parens { opening_token: AttachedToken::empty(), content, closing_token: AttachedToken::empty() })
        })?;
        Ok(Values { explicit_row: false, value_keyword: false, rows })
    }

    /// Parses one value of a row; `defaults` says whether it may be DEFAULT.
    pub(crate) fn row_value(&mut self, defaults: bool) -> SqlResult<Expr> {
        if !self.next_is("default") {
            return self.expr();
        }
        if !defaults {
            let message = "DEFAULT is not allowed in this context";
            return Err(self.with_next_position(SqlError::new(Condition::SyntaxError, message)));
        }
        self.label().map(Expr::Identifier)
    }

    /// Parses ORDER BY, LIMIT, OFFSET, FETCH and FOR, and builds the query.
    pub(super) fn finish_query(&mut self, with: Option<With>, body: SetExpr) -> SqlResult<Box<Query>> {
        let order_by = if self.eat("order by") {
            let kind = OrderByKind::Expressions(self.list(Self::order_by_expr)?);
            Some(OrderBy { kind, interpolate: None })
        } else {
            None
        };
        // LIMIT and FOR may be in either order.
        let mut locks = self.lock_clauses()?;
        let (limit_clause, fetch) = self.limit()?;
        locks.extend(self.lock_clauses()?);
        Ok(Box::new(Query {
            with,
            body: Box::new(body),
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause: None,
            settings: None,
            format_clause: None,
            pipe_operators: Vec::new(),
        }))
    }

    /// Parses LIMIT and OFFSET in either order; FETCH is a synonym of LIMIT, except for WITH TIES.
    fn limit(&mut self) -> SqlResult<(Option<LimitClause>, Option<Fetch>)> {
        let mut ties = None;
        let mut limit = None;
        let mut limited = false;
        let mut offset = None;
        loop {
            if !limited && self.eat("limit") {
                limited = true;
                limit = if self.eat("all") { None } else { Some(self.expr()?) };
                if self.is_symbol(',') {
                    let message = "LIMIT #,# syntax is not supported";
                    let error = SqlError::new(Condition::SyntaxError, message);
                    return Err(self.with_next_position(error.with_hint("Use separate LIMIT and OFFSET clauses.")));
                }
            } else if !limited && self.eat("fetch") {
                limited = true;
                let fetch = self.fetch()?;
                if fetch.with_ties {
                    ties = Some(fetch);
                } else {
                    limit = fetch.quantity;
                }
            } else if offset.is_none() && self.eat("offset") {
                let value = self.expr()?;
                let rows = match self.eat_one_of(&["row", "rows"]) {
                    Some("row") => OffsetRows::Row,
                    Some(_) => OffsetRows::Rows,
                    None => OffsetRows::None,
                };
                offset = Some(Offset { value, rows });
            } else {
                break;
            }
        }
        let limit = limit.filter(|limit| !is_null(limit));
        let offset = offset.filter(|offset| !is_null(&offset.value));
        if limit.is_none() && offset.is_none() {
            return Ok((None, ties));
        }
        Ok((Some(LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() }), ties))
    }

    /// Parses `FETCH FIRST n ROWS ONLY` or `WITH TIES`, after FETCH.
    fn fetch(&mut self) -> SqlResult<Fetch> {
        if self.eat_one_of(&["first", "next"]).is_none() {
            return Err(self.syntax_error());
        }
        let count = if self.next_is("row") || self.next_is("rows") {
            Expr::Value(Value::Number("1".to_owned(), false).into())
        } else {
            self.primary()?
        };
        if self.eat_one_of(&["row", "rows"]).is_none() {
            return Err(self.syntax_error());
        }
        let with_ties = self.eat("with ties");
        if !with_ties {
            self.expect("only")?;
        }
        Ok(Fetch { with_ties, percent: false, quantity: Some(count) })
    }

    /// Parses `expr [ASC | DESC] [NULLS FIRST | LAST]`.
    pub(super) fn order_by_expr(&mut self) -> SqlResult<OrderByExpr> {
        let expr = self.expr()?;
        let mut asc = match self.eat_one_of(&["asc", "desc"]) {
            Some("asc") => Some(true),
            Some(_) => Some(false),
            None => None,
        };
        if asc.is_none() && self.eat("using") {
            asc = match self.operator() {
                Some("<") => Some(true),
                Some(">") => Some(false),
                Some(_) => return Err(self.unsupported("an order by another operator than < and >")),
                None => return Err(self.syntax_error()),
            };
            self.advance();
        }
        let nulls_first = if self.eat("nulls first") {
            Some(true)
        } else if self.eat("nulls last") {
            Some(false)
        } else {
            None
        };
        Ok(OrderByExpr { expr, options: OrderByOptions { asc, nulls_first }, with_fill: None })
    }
}

/// Builds a column alias without a type.
fn column_alias(name: Ident) -> TableAliasColumnDef {
    TableAliasColumnDef { name, data_type: None }
}

/// Whether a LIMIT or OFFSET is NULL, which means none.
fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value == Value::Null)
}
