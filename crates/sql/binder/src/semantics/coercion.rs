//! DataFusion's type coercion, limited to nodes in which it may change something.
//!
//! Resolved nodes already have PostgreSQL's types, so most nodes do not change; to visit all expressions and
//! recompute the schemas would take as long as resolving them.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, JoinType, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, Signature, TypeSignature,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;
use optimizer::with_stack;

use super::expr_type::field_of;

/// Analyzer rule that coerces nodes without final types.
#[derive(Debug)]
pub(super) struct LimitedTypeCoercion;

impl AnalyzerRule for LimitedTypeCoercion {
    fn name(&self) -> &'static str {
        "type_coercion"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        // Nodes above a changed one must recompute their schemas.
        let mut has_other_columns = false;
        plan.transform_up_with_subqueries(|node| {
            if is_coerced(&node) {
                let node = if has_other_columns { node.recompute_schema()? } else { node };
                return Ok(Transformed::no(node));
            }
            let before = Arc::clone(node.schema());
            let node = coerce_node(node)?;
            has_other_columns |= before != *node.schema();
            Ok(Transformed::yes(node))
        })
        .data()
    }
}

/// Coerces a node with DataFusion's rules.
fn coerce_node(node: LogicalPlan) -> Result<LogicalPlan> {
    let mut schema = merge_schema(&node.inputs());
    if let LogicalPlan::TableScan(scan) = &node {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let node = match node {
        LogicalPlan::Filter(mut filter) => {
            filter.predicate = filter.predicate.cast_to(&DataType::Boolean, &schema)?;
            LogicalPlan::Filter(filter)
        }
        node => node,
    };
    let names = NamePreserver::new(&node);
    let mut coercion = TypeCoercionRewriter::new(&schema);
    let node = node.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(expr.rewrite(&mut coercion)?.update_data(|expr| name.restore(expr)))
    })?;
    coercion.coerce_plan(node.data)?.recompute_schema()
}

/// Returns whether coercion would change nothing in the node.
fn is_coerced(node: &LogicalPlan) -> bool {
    let all = |exprs: &[Expr], input: &LogicalPlan| exprs.iter().all(|expr| is_typed(expr, input.schema()));
    match node {
        LogicalPlan::TableScan(scan) => scan.filters.is_empty(),
        LogicalPlan::EmptyRelation(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => true,
        LogicalPlan::Projection(projection) => all(&projection.expr, &projection.input),
        LogicalPlan::Filter(filter) => is_condition(&filter.predicate, filter.input.schema()),
        LogicalPlan::Sort(sort) => sort.expr.iter().all(|key| is_typed(&key.expr, sort.input.schema())),
        LogicalPlan::Aggregate(aggregate) => {
            all(&aggregate.group_expr, &aggregate.input) && all(&aggregate.aggr_expr, &aggregate.input)
        }
        LogicalPlan::Limit(limit) => {
            let is_count = |count: &Expr| matches!(count, Expr::Literal(ScalarValue::Int64(_), _));
            limit.skip.iter().chain(&limit.fetch).all(|count| is_count(count))
        }
        LogicalPlan::Join(join) => {
            let (left, right) = (join.left.schema(), join.right.schema());
            let are_alike = |(a, b): &(Expr, Expr)| {
                is_typed(a, left) && is_typed(b, right) && same_types(type_in(a, left), type_in(b, right))
            };
            let has_all = matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full);
            join.on.iter().all(are_alike)
                && join.filter.as_ref().is_none_or(|filter| has_all && is_condition(filter, &join.schema))
        }
        _ => false,
    }
}

/// Returns whether coercion would change nothing in a boolean expression.
fn is_condition(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            with_stack(|| is_condition(left, schema)) && is_condition(right, schema)
        }
        Expr::Not(inner) => is_condition(inner, schema),
        Expr::BinaryExpr(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::InList(_)
        | Expr::Exists(_)
        | Expr::InSubquery(_) => is_typed(expr, schema),
        Expr::Literal(..) | Expr::Column(_) | Expr::ScalarFunction(_) => {
            is_typed(expr, schema) && type_in(expr, schema).is_ok_and(|found| found == DataType::Boolean)
        }
        _ => false,
    }
}

/// Returns whether coercion would change nothing in an expression.
fn is_typed(expr: &Expr, schema: &DFSchema) -> bool {
    let all = |args: &[Expr]| args.iter().all(|arg| is_typed(arg, schema));
    match expr {
        Expr::Column(_) | Expr::Literal(..) | Expr::OuterReferenceColumn(..) => true,
        Expr::Alias(alias) => is_typed(&alias.expr, schema),
        Expr::Cast(cast) => is_typed(&cast.expr, schema),
        Expr::IsNull(inner) | Expr::IsNotNull(inner) => is_typed(inner, schema),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And | Operator::Or => is_condition(expr, schema),
            Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom => {
                is_typed(left, schema)
                    && is_typed(right, schema)
                    && same_types(type_in(left, schema), type_in(right, schema))
            }
            _ => false,
        },
        Expr::Not(_) => is_condition(expr, schema),
        Expr::InList(list) => {
            let sought = type_in(&list.expr, schema);
            let is_like_it = |item: &Expr| match (item, &sought) {
                (Expr::Literal(value, _), Ok(sought)) => value.data_type() == *sought,
                _ => false,
            };
            is_typed(&list.expr, schema) && list.list.iter().all(is_like_it)
        }
        // The traversal of the plan has coerced the plans of its subqueries already.
        Expr::ScalarSubquery(_) | Expr::Exists(_) => true,
        Expr::InSubquery(within) => {
            let member = within.subquery.subquery.schema().field(0).data_type();
            is_typed(&within.expr, schema) && type_in(&within.expr, schema).is_ok_and(|sought| sought == *member)
        }
        Expr::Case(case) => {
            let gives = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
            let mut types = gives.clone().map(|given| type_in(given, schema));
            let Some(Ok(first)) = types.next() else { return false };
            types.all(|other| other.is_ok_and(|other| other == first))
                && gives.into_iter().all(|given| is_typed(given, schema))
                && match &case.expr {
                    None => case.when_then_expr.iter().all(|(when, _)| is_condition(when, schema)),
                    Some(operand) => {
                        let compared = type_in(operand, schema).ok();
                        let is_alike = |when: &Expr| type_in(when, schema).ok() == compared && is_typed(when, schema);
                        is_typed(operand, schema) && case.when_then_expr.iter().all(|(when, _)| is_alike(when))
                    }
                }
        }
        Expr::ScalarFunction(call) => takes_any(call.func.signature()) && all(&call.args),
        Expr::AggregateFunction(call) => {
            let params = &call.params;
            takes_any(call.func.signature())
                && all(&params.args)
                && params.filter.as_ref().is_none_or(|filter| is_condition(filter, schema))
                && params.order_by.iter().all(|key| is_typed(&key.expr, schema))
        }
        _ => false,
    }
}

fn type_in(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    field_of(expr, schema).map(|field| field.data_type().clone())
}

fn same_types(left: Result<DataType>, right: Result<DataType>) -> bool {
    left.is_ok_and(|left| right.is_ok_and(|right| left == right))
}

fn takes_any(signature: &Signature) -> bool {
    matches!(signature.type_signature, TypeSignature::Any(_) | TypeSignature::VariadicAny | TypeSignature::Nullary)
}
