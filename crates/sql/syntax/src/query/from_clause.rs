//! FROM: tables, functions, subqueries, and how they are joined.

use sqlparser::ast::{
    FunctionArg, FunctionArgExpr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, TableAlias,
    TableAliasColumnDef, TableFactor, TableFunctionArgs, TableWithJoins,
};
use types::SqlResult;
use types::stack_limit::too_complex_error;

use super::Cursor;
use crate::keyword::{KeywordCategory, category};
use crate::lex::Token;

/// Maximum number of joins in a row.
const JOINS_MAX: usize = 500;

/// Kind of a join, before its condition is parsed.
enum JoinKind {
    Cross,
    Natural(fn(JoinConstraint) -> JoinOperator),
    Qualified(fn(JoinConstraint) -> JoinOperator),
}

impl Cursor<'_> {
    /// Parses the items of FROM, separated by commas; a plan joins each to those before it.
    pub(crate) fn parse_from_items(&mut self) -> SqlResult<Vec<TableWithJoins>> {
        let mut items = vec![self.table_with_joins()?];
        while self.eat_symbol(',') {
            self.add_tree_level()?;
            items.push(self.table_with_joins()?);
        }
        Ok(items)
    }

    /// Parses a table and the joins that follow it.
    pub(crate) fn table_with_joins(&mut self) -> SqlResult<TableWithJoins> {
        let relation = self.table_factor()?;
        let mut joined = TableWithJoins { relation, joins: Vec::new() };
        while let Some(kind) = self.join_kind()? {
            self.join(&mut joined, kind)?;
        }
        Ok(joined)
    }

    /// Parses one join, including its condition.
    fn join(&mut self, joined: &mut TableWithJoins, kind: JoinKind) -> SqlResult<()> {
        if joined.joins.len() >= JOINS_MAX {
            return Err(too_complex_error());
        }
        self.add_tree_level()?;
        let relation = self.table_factor()?;
        let (relation, join_operator) = match kind {
            JoinKind::Cross => (relation, JoinOperator::CrossJoin(JoinConstraint::None)),
            JoinKind::Natural(operator) => (relation, operator(JoinConstraint::Natural)),
            JoinKind::Qualified(operator) => {
                // In `a JOIN b JOIN c ON x ON y` the second operand is a join itself.
                let relation = self.parse_nested(|cursor| cursor.join_operand(relation))?;
                (relation, operator(self.join_condition()?))
            }
        };
        joined.joins.push(Join { relation, global: false, join_operator });
        Ok(())
    }

    fn join_operand(&mut self, relation: TableFactor) -> SqlResult<TableFactor> {
        let mut inner = TableWithJoins { relation, joins: Vec::new() };
        while !matches!(self.next_word(), Some("on" | "using")) {
            let Some(kind) = self.join_kind()? else { break };
            self.join(&mut inner, kind)?;
        }
        Ok(if inner.joins.is_empty() {
            inner.relation
        } else {
            TableFactor::NestedJoin { table_with_joins: Box::new(inner), alias: None }
        })
    }

    /// Parses the keywords of a join; `None` if no join comes next.
    fn join_kind(&mut self) -> SqlResult<Option<JoinKind>> {
        if self.eat("cross") {
            self.expect("join")?;
            return Ok(Some(JoinKind::Cross));
        }
        let natural = self.eat("natural");
        let operator: fn(JoinConstraint) -> JoinOperator =
            match self.eat_one_of(&["inner", "left", "right", "full", "join"]) {
                Some("join") => return Ok(Some(new_join_kind(natural, JoinOperator::Inner))),
                Some("inner") => JoinOperator::Inner,
                Some("left") => JoinOperator::LeftOuter,
                Some("right") => JoinOperator::RightOuter,
                Some(_) => JoinOperator::FullOuter,
                None if natural => return Err(self.syntax_error()),
                None => return Ok(None),
            };
        if self.word_at(0) == Some("outer") && self.previous_lexeme().token != Token::Word("inner".to_owned()) {
            self.advance();
        }
        self.expect("join")?;
        Ok(Some(new_join_kind(natural, operator)))
    }

    fn join_condition(&mut self) -> SqlResult<JoinConstraint> {
        if self.eat("on") {
            return self.expr().map(JoinConstraint::On);
        }
        self.expect("using")?;
        let columns = self.parenthesized(Self::name)?;
        if self.next_is("as") {
            return Err(self.unsupported("a name for the columns of USING"));
        }
        Ok(JoinConstraint::Using(columns.into_iter().map(|column| ObjectName::from(vec![column])).collect()))
    }

    fn table_factor(&mut self) -> SqlResult<TableFactor> {
        let lateral = self.eat("lateral");
        if self.is_symbol('(') {
            return self.parse_nested(|cursor| cursor.factor_in_parentheses(lateral));
        }
        if self.next_is("rows from") {
            return Err(self.unsupported("ROWS FROM"));
        }
        if self.next_is("xmltable") || self.next_is("json_table") && *self.peek_at(1) == Token::Symbol('(') {
            return Err(self.unsupported("XMLTABLE and JSON_TABLE"));
        }
        let is_function = self.begins_function_call();
        if is_function {
            return self.function_in_from(lateral);
        }
        if lateral {
            return Err(self.syntax_error());
        }
        let mut table = self.relation()?;
        if let TableFactor::Table { name, alias, version, .. } = &mut table {
            *version = self.as_of()?;
            self.record_read(name, version.as_ref());
            *alias = self.table_alias()?;
        }
        if self.next_is("tablesample") {
            return Err(self.unsupported("TABLESAMPLE"));
        }
        Ok(table)
    }

    /// Parses `[ONLY] name [*]`; without inheritance, ONLY has no effect.
    pub(super) fn relation(&mut self) -> SqlResult<TableFactor> {
        let only = self.eat("only");
        let in_parentheses = only && self.eat_symbol('(');
        let name = self.object_name()?;
        if in_parentheses {
            self.expect_symbol(')')?;
        } else if !only {
            self.eat_operator("*");
        }
        Ok(new_table_factor(name, None, false))
    }

    /// Whether a function name and `(` come next.
    fn begins_function_call(&self) -> bool {
        let mut ahead = 0;
        while matches!(self.peek_at(ahead), Token::Word(_) | Token::Quoted(_)) {
            match self.peek_at(ahead + 1) {
                Token::Symbol('(') => {
                    let reserved = self.word_at(0).and_then(category) == Some(KeywordCategory::Reserved);
                    return !reserved;
                }
                Token::Symbol('.') => ahead += 2,
                _ => return false,
            }
        }
        false
    }

    fn function_in_from(&mut self, lateral: bool) -> SqlResult<TableFactor> {
        let first = self.label()?;
        let name = self.qualified_name(first)?;
        self.expect_symbol('(')?;
        let args = if self.is_symbol(')') { Vec::new() } else { self.list(Self::argument)? };
        self.expect_symbol(')')?;
        let with_ordinality = self.eat("with ordinality");
        let alias = self.table_alias()?;
        if lateral {
            return Ok(TableFactor::Function { lateral, name, args, with_ordinality, alias });
        }
        let is_unnest = name.0.len() == 1 && name.0[0].as_ident().is_some_and(|name| name.value == "unnest");
        if is_unnest {
            let plain = |arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
                _ => Err(self.unsupported("this argument of unnest")),
            };
            let array_exprs = args.into_iter().map(plain).collect::<SqlResult<Vec<_>>>()?;
            return Ok(TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality,
            });
        }
        let mut function = new_table_factor(name, Some(TableFunctionArgs { args, settings: None }), with_ordinality);
        if let TableFactor::Table { alias: place, .. } = &mut function {
            *place = alias;
        }
        Ok(function)
    }

    /// Parses `(query) alias` or `(a JOIN b) alias`.
    fn factor_in_parentheses(&mut self, lateral: bool) -> SqlResult<TableFactor> {
        let start = self.next_index;
        self.expect_symbol('(')?;
        let is_query =
            self.begins_query() || (self.begins_query_in_parentheses() && self.parentheses_hold_query(start));
        if is_query {
            let subquery = self.query()?;
            self.expect_symbol(')')?;
            let alias = self.table_alias()?;
            return Ok(TableFactor::Derived { lateral, subquery, alias, sample: None });
        }
        if lateral {
            return Err(self.syntax_error());
        }
        let inner = self.table_with_joins()?;
        // Parentheses around a single table are no grammar; around a parenthesized join they are.
        if inner.joins.is_empty() && !matches!(inner.relation, TableFactor::NestedJoin { .. }) {
            return Err(self.syntax_error());
        }
        self.expect_symbol(')')?;
        let alias = self.table_alias()?;
        Ok(TableFactor::NestedJoin { table_with_joins: Box::new(inner), alias })
    }

    /// Whether the parentheses at `start` contain only a query, unlike those of `((SELECT 1) a JOIN b …)`.
    fn parentheses_hold_query(&mut self, start: usize) -> bool {
        // Behind the first inner pair of parentheses, a query must end or continue.
        let place = self.next_index;
        self.next_index = start + 1;
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Token::Symbol('(') => depth += 1,
                Token::Symbol(')') => depth = depth.saturating_sub(1),
                Token::End => break,
                _ => {}
            }
            self.next_index += 1;
            if depth == 0 {
                break;
            }
        }
        let closes = self.is_symbol(')') || self.continues_query();
        self.next_index = place;
        closes
    }

    /// Parses an optional `[AS] name [(columns)]`.
    pub(super) fn table_alias(&mut self) -> SqlResult<Option<TableAlias>> {
        let explicit = self.eat("as");
        if explicit && self.is_symbol('(') {
            return Err(self.unsupported("a column definition list without a name"));
        }
        if !explicit && !self.begins_alias() {
            return Ok(None);
        }
        let name = self.name()?;
        let columns = if self.is_symbol('(') { self.parenthesized(Self::alias_column)? } else { Vec::new() };
        Ok(Some(TableAlias { explicit, name, columns, at: None }))
    }

    fn begins_alias(&self) -> bool {
        match self.peek() {
            Token::Quoted(_) => true,
            Token::Word(word) => {
                let clause = self.clauses_follow_query && self.begins_table_clause();
                !clause && !matches!(category(word), Some(KeywordCategory::Reserved | KeywordCategory::FunctionOrType))
            }
            _ => false,
        }
    }

    fn alias_column(&mut self) -> SqlResult<TableAliasColumnDef> {
        let name: Ident = self.name()?;
        let typed = !self.is_symbol(',') && !self.is_symbol(')');
        let data_type = if typed { Some(self.data_type()?) } else { None };
        Ok(TableAliasColumnDef { name, data_type })
    }
}

fn new_join_kind(natural: bool, operator: fn(JoinConstraint) -> JoinOperator) -> JoinKind {
    if natural { JoinKind::Natural(operator) } else { JoinKind::Qualified(operator) }
}

fn new_table_factor(name: ObjectName, args: Option<TableFunctionArgs>, with_ordinality: bool) -> TableFactor {
    TableFactor::Table {
        name,
        alias: None,
        args,
        with_hints: Vec::new(),
        version: None,
        with_ordinality,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}
