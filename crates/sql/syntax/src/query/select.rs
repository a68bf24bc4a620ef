//! SELECT: its select list and clauses.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Distinct, GroupByExpr, Ident, Select, SelectFlavor, SelectInto, SelectItem, SelectItemQualifiedWildcardKind,
    TableFactor, TableWithJoins, WildcardAdditionalOptions,
};
use types::{Condition, SqlError, SqlResult};

use super::Cursor;
use crate::keyword::is_bare_label;
use crate::lex::Token;

impl Cursor<'_> {
    pub(super) fn select(&mut self) -> SqlResult<Select> {
        self.expect("select")?;
        // INTO is only allowed in the first SELECT of a statement, not in later or nested ones.
        let may_select_into = std::mem::take(&mut self.may_select_into);
        let mut select = empty_select();
        let distinct = self.eat("distinct");
        if distinct {
            select.distinct =
                Some(if self.eat("on") { Distinct::On(self.parenthesized(Self::expr)?) } else { Distinct::Distinct });
        } else {
            self.eat("all");
        }
        // As in PostgreSQL, the select list may be empty.
        let ends = self.is_at_end() || self.is_symbol(')');
        let nothing =
            ends || matches!(self.next_word(), Some("from" | "where" | "into" | "union" | "except" | "intersect"));
        if distinct || !nothing {
            select.projection = self.list(Self::select_item)?;
        }
        select.into = self.select_into(may_select_into)?;
        if self.eat("from") {
            select.from = self.parse_from_items()?;
        }
        if self.eat("where") {
            select.selection = Some(self.expr()?);
        }
        if self.eat("group by") {
            select.group_by = GroupByExpr::Expressions(self.group_by()?, Vec::new());
        }
        if self.eat("having") {
            select.having = Some(self.expr()?);
        }
        if self.eat("window") {
            select.named_window = self.list(Self::named_window)?;
            select.window_before_qualify = true;
        }
        Ok(select)
    }

    /// Parses one item of a select list: `*`, `table.*`, or an expression with an optional alias.
    pub(crate) fn select_item(&mut self) -> SqlResult<SelectItem> {
        if self.eat_operator("*") {
            return Ok(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
        }
        if let Some(table) = self.table_wildcard()? {
            let kind = SelectItemQualifiedWildcardKind::ObjectName(table);
            return Ok(SelectItem::QualifiedWildcard(kind, WildcardAdditionalOptions::default()));
        }
        let expr = self.expr()?;
        Ok(match self.select_alias()? {
            Some(alias) => SelectItem::ExprWithAlias { expr, alias },
            None => SelectItem::UnnamedExpr(expr),
        })
    }

    fn select_alias(&mut self) -> SqlResult<Option<Ident>> {
        if self.eat("as") {
            return self.label().map(Some);
        }
        let bare = match self.peek() {
            Token::Quoted(_) => true,
            Token::Word(word) => is_bare_label(word),
            _ => false,
        };
        if bare { self.label().map(Some) } else { Ok(None) }
    }

    /// Parses the INTO clause of SELECT INTO.
    fn select_into(&mut self, allowed: bool) -> SqlResult<Option<SelectInto>> {
        if !self.eat("into") {
            return Ok(None);
        }
        if !allowed {
            let message = "SELECT ... INTO is not allowed here";
            return Err(self.with_next_position(SqlError::new(Condition::SyntaxError, message)));
        }
        let temporary = self.temporary()?;
        let unlogged = self.next_is("unlogged") && !matches!(self.peek_at(1), Token::Word(word) if word == "from");
        if unlogged {
            return Err(self.unsupported("an unlogged table"));
        }
        let table = self.eat("table");
        let name = self.object_name()?;
        Ok(Some(SelectInto { temporary, unlogged, table, name }))
    }
}

/// Builds `SELECT * FROM table`.
pub(super) fn select_all(table: TableFactor) -> Select {
    Select {
        projection: vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())],
        from: vec![TableWithJoins { relation: table, joins: Vec::new() }],
        ..empty_select()
    }
}

/// Builds a SELECT without a select list or clauses.
fn empty_select() -> Select {
    Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: Vec::new(),
        exclude: None,
        into: None,
        from: Vec::new(),
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }
}
