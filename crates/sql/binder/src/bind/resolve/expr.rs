//! Resolution of names within expressions: every column reference becomes the column it refers to.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart,
    Query, SetExpr, Value, Values, VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Span;
use syntax::Walk;
use types::{SqlError, SqlResult};

use super::row_in_subquery::{NullHandling, is_row_membership};
use super::{Output, Resolver, from, scope};

impl Resolver<'_> {
    /// Resolves an expression, including its subqueries, at the current levels.
    pub(super) fn resolve_expr(&mut self, expr: &mut Expr) -> SqlResult<()> {
        self.resolve_within(expr)
    }

    /// Resolves the expressions within any syntax node.
    pub(super) fn resolve_within(&mut self, part: &mut impl Walk) -> SqlResult<()> {
        let mut visitor =
            Visitor { resolver: self, subqueries: Vec::new(), outputs: Vec::new(), row_memberships: Vec::new() };
        match part.walk_mut(&mut visitor) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(*error),
        }
    }

    fn reference(&self, expr: &mut Expr) -> SqlResult<()> {
        let span = match expr {
            Expr::Identifier(name) => name.span,
            Expr::CompoundIdentifier(parts) => parts.first().map_or_else(Span::empty, |part| part.span),
            Expr::Function(function) if is_merge_action(function) => {
                if let Some(column) = &self.merge_action {
                    *expr = column.clone();
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.column(expr).map_err(|error| self.text.with_span(error, span))
    }

    fn column(&self, expr: &mut Expr) -> SqlResult<()> {
        let resolved = match expr {
            Expr::Identifier(name) => match scope::resolve_unqualified(&self.scopes, &name.value) {
                Err(_) if is_call_without_parentheses(name) => call_without_parentheses(name.clone()),
                found => found?,
            },
            Expr::CompoundIdentifier(parts) => {
                let parts: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
                match parts.as_slice() {
                    [relation, column] => scope::resolve_qualified(&self.scopes, None, relation, column)?,
                    [schema, relation, column] => {
                        scope::resolve_qualified(&self.scopes, Some(schema), relation, column)?
                    }
                    [database, schema, relation, column] if *database == self.context.database => {
                        scope::resolve_qualified(&self.scopes, Some(schema), relation, column)?
                    }
                    _ => {
                        let message = format!("cross-database references are not implemented: {}", parts.join("."));
                        return Err(SqlError::new(types::Condition::FeatureNotSupported, message));
                    }
                }
            }
            _ => return Ok(()),
        };
        *expr = resolved;
        Ok(())
    }
}

struct Visitor<'r, 'a> {
    resolver: &'r mut Resolver<'a>,
    /// Subqueries that are resolved already, with their outputs; removed from the tree to hide them from the visitor.
    subqueries: Vec<(Query, Vec<Output>)>,
    /// Outputs of the subquery that was left last.
    outputs: Vec<Output>,
    /// Enclosing tests `row IN (query)`, innermost last.
    row_memberships: Vec<RowMembership>,
}

/// Test `row IN (query)` that the visitor has entered.
struct RowMembership {
    nulls: NullHandling,
    /// Number of volatile WITH queries read before the test.
    volatile_ctes_read: usize,
}

impl Visitor<'_, '_> {
    fn enter_row_membership(&mut self, nulls: NullHandling) {
        self.row_memberships.push(RowMembership { nulls, volatile_ctes_read: self.resolver.volatile_ctes_read() });
    }

    /// Expands `row IN (query)`, whose parts are resolved.
    fn expand_row_membership(&mut self, expr: &mut Expr) -> SqlResult<()> {
        if !is_row_membership(expr) {
            return Ok(());
        }
        let Some(RowMembership { nulls, volatile_ctes_read }) = self.row_memberships.pop() else {
            return Err(SqlError::internal("the visitor left a test `row IN (query)` that it had not entered"));
        };
        // The query is evaluated twice to distinguish NULL from false.
        if nulls == NullHandling::Distinguish && volatile_ctes_read < self.resolver.volatile_ctes_read() {
            return Err(from::volatile_reread_error());
        }
        let Expr::InSubquery { expr: value, subquery, negated } = &*expr else { return Ok(()) };
        let Expr::Tuple(fields) = value.as_ref() else { return Ok(()) };
        *expr = self.resolver.build_row_membership(fields, subquery, &self.outputs, *negated, nulls)?;
        Ok(())
    }
}

impl VisitorMut for Visitor<'_, '_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<SqlError>> {
        let outputs = match self.resolver.query(query) {
            Ok(outputs) => outputs,
            Err(error) => return ControlFlow::Break(Box::new(error)),
        };
        self.subqueries.push((std::mem::replace(query, empty_query()), outputs));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<SqlError>> {
        if let Some((resolved, outputs)) = self.subqueries.pop() {
            *query = resolved;
            self.outputs = outputs;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<SqlError>> {
        if let Expr::IsTrue(test) = expr
            && matches!(test.as_ref(), Expr::InSubquery { negated: false, .. })
            && is_row_membership(test)
        {
            *expr = std::mem::replace(test.as_mut(), Expr::Value(Value::Null.into()));
            self.enter_row_membership(NullHandling::CountAsFalse);
        } else if is_row_membership(expr) {
            self.enter_row_membership(NullHandling::Distinguish);
        }
        match field_access(expr).and_then(|()| whole_rows(expr)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<SqlError>> {
        match self.resolver.reference(expr).and_then(|()| self.expand_row_membership(expr)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

/// Moves the qualifiers before a subscript into the column reference.
fn field_access(expr: &mut Expr) -> SqlResult<()> {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return Ok(()) };
    if let Expr::Identifier(first) = root.as_ref() {
        let names = access_chain.iter().map_while(|access| match access {
            AccessExpr::Dot(Expr::Identifier(name)) => Some(name.clone()),
            _ => None,
        });
        let path: Vec<Ident> = std::iter::once(first.clone()).chain(names).collect();
        if path.len() > 1 {
            access_chain.drain(..path.len() - 1);
            **root = Expr::CompoundIdentifier(path);
        }
    }
    if access_chain.iter().any(|access| matches!(access, AccessExpr::Dot(_))) {
        return Err(SqlError::unsupported("a field of a composite value"));
    }
    Ok(())
}

fn whole_rows(expr: &Expr) -> SqlResult<()> {
    let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = expr else { return Ok(()) };
    let is_row = |arg: &FunctionArg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)));
    if list.args.iter().any(is_row) {
        return Err(SqlError::unsupported("a whole-row reference"));
    }
    Ok(())
}

/// Returns whether a call is `merge_action()`.
fn is_merge_action(function: &Function) -> bool {
    matches!(function.name.0.as_slice(), [ObjectNamePart::Identifier(name)] if name.value == "merge_action")
        && matches!(&function.args, FunctionArguments::List(list) if list.args.is_empty())
}

/// Returns whether the name is a SQL function that is called without parentheses.
fn is_call_without_parentheses(name: &Ident) -> bool {
    name.quote_style.is_none()
        && matches!(
            name.value.as_str(),
            "current_catalog"
                | "current_date"
                | "current_role"
                | "current_schema"
                | "current_time"
                | "current_timestamp"
                | "current_user"
                | "localtime"
                | "localtimestamp"
                | "session_user"
                | "user"
        )
}

fn call_without_parentheses(name: Ident) -> Expr {
    Expr::Function(Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::None,
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Builds an empty query.
pub(super) fn empty_query() -> Query {
    Query {
        with: None,
        body: Box::new(SetExpr::Values(Values { explicit_row: false, value_keyword: false, rows: Vec::new() })),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}
