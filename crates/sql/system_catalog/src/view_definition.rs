//! `pg_get_viewdef`: a view's query with names as short as possible and one clause per line.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use catalog::View;
use datafusion::sql::sqlparser::ast::{
    DataType, Distinct, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, LimitClause, ObjectName, OrderByKind,
    Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor, TableWithJoins, VisitorMut,
};
use syntax::{Statement, Walk, sql_type};

use super::row_source::{Relation, RelationObject, VisibleRelations};
use super::sql_text::{is_visible, quote_ident};

/// Returns the view's query, ended by a semicolon; `None` if the relation is no view.
pub(super) fn view_definition(relations: VisibleRelations<'_>, relation: &Relation<'_>) -> Option<String> {
    let RelationObject::View(view) = relation.object else { return None };
    let parsed = syntax::parse(&view.definition).ok().and_then(|statements| statements.into_iter().next());
    // A definition that does not parse is displayed as it is.
    let Some(Statement::Query(mut query)) = parsed.map(|parsed| parsed.statement) else {
        return Some(format!(" {};", view.definition));
    };
    expand_order_by(&mut query);
    rename_output_columns(&mut query.body, view);
    let _: ControlFlow<()> = query.walk_mut(&mut NameShortener { relations });
    let mut text = " ".to_owned();
    write_query(&mut text, &query);
    text.push(';');
    Some(text)
}

/// Replaces names of output columns in ORDER BY by their expressions.
fn expand_order_by(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|order_by| &mut order_by.kind) else {
        return;
    };
    for key in keys {
        let Expr::Identifier(name) = &key.expr else { continue };
        let output = select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.value == name.value => Some(expr),
            _ => None,
        });
        match output {
            Some(column @ Expr::CompoundIdentifier(_)) => key.expr = column.clone(),
            Some(other) => key.expr = Expr::Nested(Box::new(other.clone())),
            None => {}
        }
    }
}

/// Renames the output columns to the view's column names.
fn rename_output_columns(body: &mut SetExpr, view: &View) {
    match body {
        SetExpr::Select(select) => {
            for (item, (name, _)) in select.projection.iter_mut().zip(&view.columns) {
                if let SelectItem::ExprWithAlias { alias, .. } = item {
                    *alias = Ident::with_quote('"', name);
                }
            }
        }
        SetExpr::SetOperation { left, .. } => rename_output_columns(left, view),
        SetExpr::Query(query) => rename_output_columns(&mut query.body, view),
        _ => {}
    }
}

/// Visitor that removes schemas that the search path finds, redundant aliases, and unnecessary quotes.
struct NameShortener<'a> {
    relations: VisibleRelations<'a>,
}

impl VisitorMut for NameShortener<'_> {
    type Break = ();

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                let bare = name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone());
                self.shorten(name);
                if let Some(written) = alias {
                    if Some(&written.name.value) == bare.as_ref() {
                        *alias = None;
                    } else {
                        written.explicit = false;
                        unquote(&mut written.name);
                    }
                }
            }
            TableFactor::Derived { alias: Some(alias), .. } => {
                alias.explicit = false;
                unquote(&mut alias.name);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            unquote(&mut cte.alias.name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for join in select.from.iter_mut().flat_map(|table| &mut table.joins) {
            shorten_join(&mut join.join_operator);
        }
        for item in &mut select.projection {
            let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
            if matches!(expr, Expr::CompoundIdentifier(parts) if parts.last().is_some_and(|it| it.value == alias.value))
            {
                *item = SelectItem::UnnamedExpr(expr.clone());
            } else {
                unquote(alias);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(unquote),
            Expr::Identifier(name) => unquote(name),
            Expr::Cast { data_type, .. } => rename_type(data_type),
            Expr::TypedString(typed) => rename_type(&mut typed.data_type),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl NameShortener<'_> {
    fn shorten(&self, name: &mut ObjectName) {
        let idents: Vec<String> = name.0.iter().filter_map(|part| Some(part.as_ident()?.value.clone())).collect();
        let shown = match idents.as_slice() {
            [schema, bare] => {
                let found = self.relations.find(schema, bare);
                match found {
                    Some(relation) if is_visible(self.relations, &relation) => vec![bare.clone()],
                    _ => idents,
                }
            }
            _ => idents,
        };
        let idents = shown.into_iter().map(|name| {
            let mut ident = Ident::with_quote('"', name);
            unquote(&mut ident);
            ident
        });
        *name = ObjectName::from(idents.collect::<Vec<_>>());
    }
}

/// Replaces a join type by its shortest form: JOIN, LEFT JOIN, RIGHT JOIN.
fn shorten_join(operator: &mut JoinOperator) {
    let none = || JoinConstraint::None;
    *operator = match operator {
        JoinOperator::Inner(constraint) => JoinOperator::Join(std::mem::replace(constraint, none())),
        JoinOperator::LeftOuter(constraint) => JoinOperator::Left(std::mem::replace(constraint, none())),
        JoinOperator::RightOuter(constraint) => JoinOperator::Right(std::mem::replace(constraint, none())),
        _ => return,
    };
}

fn unquote(ident: &mut Ident) {
    if quote_ident(&ident.value) == ident.value {
        ident.quote_style = None;
    }
}

/// Replaces a type by PostgreSQL's name for it.
fn rename_type(data_type: &mut DataType) {
    if let Ok(known) = sql_type(data_type) {
        *data_type = DataType::Custom(ObjectName::from(vec![Ident::new(known.to_string())]), Vec::new());
    }
}

fn write_query(text: &mut String, query: &Query) {
    if let Some(with) = &query.with {
        push_fmt(text, format_args!("{with}\n "));
    }
    write_set_expr(text, &query.body);
    if let Some(order_by) = &query.order_by {
        match &order_by.kind {
            OrderByKind::Expressions(keys) => push_fmt(text, format_args!("\n  ORDER BY {}", join_list(keys))),
            OrderByKind::All(_) => push_fmt(text, format_args!("\n  {order_by}")),
        }
    }
    if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
        if let Some(offset) = offset {
            push_fmt(text, format_args!("\n OFFSET {}", offset.value));
        }
        if let Some(limit) = limit {
            push_fmt(text, format_args!("\n LIMIT {limit}"));
        }
    }
}

fn write_set_expr(text: &mut String, body: &SetExpr) {
    match body {
        SetExpr::Select(select) => write_select(text, select),
        SetExpr::SetOperation { op, set_quantifier, left, right } => {
            write_set_expr(text, left);
            let op = match op {
                SetOperator::Union => "UNION",
                SetOperator::Except | SetOperator::Minus => "EXCEPT",
                SetOperator::Intersect => "INTERSECT",
            };
            let all = if matches!(set_quantifier, SetQuantifier::All) { " ALL" } else { "" };
            push_fmt(text, format_args!("\n{op}{all}\n "));
            write_set_expr(text, right);
        }
        other => push_fmt(text, format_args!("{other}")),
    }
}

fn write_select(text: &mut String, select: &Select) {
    text.push_str("SELECT ");
    match &select.distinct {
        Some(Distinct::Distinct) => text.push_str("DISTINCT "),
        Some(Distinct::On(keys)) => push_fmt(text, format_args!("DISTINCT ON ({}) ", join_list(keys))),
        Some(Distinct::All) | None => {}
    }
    let items: Vec<String> = select.projection.iter().map(ToString::to_string).collect();
    text.push_str(&items.join(",\n    "));
    if !select.from.is_empty() {
        let tables: Vec<String> = select.from.iter().map(from_item).collect();
        push_fmt(text, format_args!("\n   FROM {}", tables.join(",\n    ")));
    }
    if let Some(condition) = &select.selection {
        push_fmt(text, format_args!("\n  WHERE {condition}"));
    }
    match &select.group_by {
        GroupByExpr::Expressions(keys, _) if !keys.is_empty() => {
            push_fmt(text, format_args!("\n  GROUP BY {}", join_list(keys)));
        }
        _ => {}
    }
    if let Some(condition) = &select.having {
        push_fmt(text, format_args!("\n HAVING {condition}"));
    }
    if !select.named_window.is_empty() {
        push_fmt(text, format_args!("\n  WINDOW {}", join_list(&select.named_window)));
    }
}

fn from_item(table: &TableWithJoins) -> String {
    let joins = table.joins.iter().map(|join| format!("\n     {join}"));
    std::iter::once(table.relation.to_string()).chain(joins).collect()
}

fn join_list<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn push_fmt(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("writing to a String cannot fail");
}
