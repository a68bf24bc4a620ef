//! Outer columns of a subquery's plan, and the parameter functions that replace them while it runs.

use std::cell::OnceCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result as DfResult, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Values, Volatility,
};
use parking_lot::Mutex;

/// Returns the distinct outer columns that a subquery's plan uses, including those used by nested subqueries.
pub(super) fn outer_references(plan: &LogicalPlan) -> DfResult<Vec<(FieldRef, Column)>> {
    let mut found = Vec::new();
    collect_outer_columns(plan, None, &mut found)?;
    Ok(found)
}

/// Linked list of the schemas of the queries that enclose a subquery within the examined plan, innermost first.
#[derive(Clone, Copy)]
struct EnclosingQuery<'a> {
    schema: &'a DFSchema,
    outer: Option<&'a EnclosingQuery<'a>>,
}

impl EnclosingQuery<'_> {
    fn has_column(&self, column: &Column) -> bool {
        let mut schemas = std::iter::successors(Some(self), |nearer| nearer.outer);
        schemas.any(|query| query.schema.has_column(column))
    }
}

/// Collects the outer columns of `plan` into `found`. A column that a query in `nearer` has belongs to that query and
/// is not collected.
fn collect_outer_columns(
    plan: &LogicalPlan,
    nearer: Option<&EnclosingQuery<'_>>,
    found: &mut Vec<(FieldRef, Column)>,
) -> DfResult<()> {
    plan.apply(|node| {
        let schema = OnceCell::new();
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::OuterReferenceColumn(field, column) = expr
                    && !nearer.is_some_and(|nearer| nearer.has_column(column))
                    && !found.iter().any(|(_, known)| known == column)
                {
                    found.push((Arc::clone(field), column.clone()));
                }
                if let Some(subplan) = subplan_of(expr) {
                    let schema = schema.get_or_init(|| merge_schema(&node.inputs()));
                    collect_outer_columns(subplan, Some(&EnclosingQuery { schema, outer: nearer }), found)?;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

fn subplan_of(expr: &Expr) -> Option<&Arc<LogicalPlan>> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(&subquery.subquery),
        Expr::Exists(exists) => Some(&exists.subquery.subquery),
        Expr::InSubquery(within) => Some(&within.subquery.subquery),
        _ => None,
    }
}

/// Values of the outer columns, set before each run.
pub type OuterValues = Arc<Mutex<Vec<ScalarValue>>>;

/// Replaces the outer columns of `plan` by functions that read them from `slots`, in the order of `outer`.
///
/// # Errors
/// None that well-formed plans meet.
pub fn parameterize(plan: LogicalPlan, outer: &[Column], slots: &OuterValues) -> DfResult<LogicalPlan> {
    replace_outer_columns(plan, None, outer, slots)
}

fn replace_outer_columns(
    plan: LogicalPlan,
    nearer: Option<&EnclosingQuery<'_>>,
    outer: &[Column],
    slots: &OuterValues,
) -> DfResult<LogicalPlan> {
    let replaced = plan.transform_up(|node| {
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let expr = expr.transform_up(|expr| replace_outer_columns_in_expr(expr, nearer, &schema, outer, slots))?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })?;
        match node.data {
            LogicalPlan::Values(values) if node.transformed => values_to_union(values).map(Transformed::yes),
            _ if node.transformed => node.map_data(LogicalPlan::recompute_schema),
            _ => Ok(node),
        }
    })?;
    Ok(replaced.data)
}

/// Returns VALUES as a union of one projection per row. DataFusion's operator for VALUES computes its rows once, at
/// planning time, with the slots' contents at that time.
pub(super) fn values_to_union(values: Values) -> DfResult<LogicalPlan> {
    let names: Vec<String> = values.schema.fields().iter().map(|field| field.name().clone()).collect();
    let row = |exprs: Vec<Expr>| {
        let named = exprs.into_iter().zip(&names).map(|(expr, name)| expr.alias(name));
        LogicalPlanBuilder::empty(true).project(named)
    };
    let mut rows = values.values.into_iter();
    let Some(first) = rows.next() else { return internal_err!("a VALUES node has no rows") };
    rows.try_fold(row(first)?, |plan, exprs| plan.union(row(exprs)?.build()?))?.build()
}

fn replace_outer_columns_in_expr(
    expr: Expr,
    nearer: Option<&EnclosingQuery<'_>>,
    schema: &DFSchema,
    outer: &[Column],
    slots: &OuterValues,
) -> DfResult<Transformed<Expr>> {
    let inside = |plan: &Arc<LogicalPlan>| -> DfResult<Arc<LogicalPlan>> {
        let nearer = EnclosingQuery { schema, outer: nearer };
        replace_outer_columns(plan.as_ref().clone(), Some(&nearer), outer, slots).map(Arc::new)
    };
    Ok(match expr {
        Expr::OuterReferenceColumn(field, column) => {
            let at = outer.iter().position(|known| *known == column);
            match at.filter(|_| !nearer.is_some_and(|nearer| nearer.has_column(&column))) {
                Some(at) => {
                    let function = ScalarUDF::from(Parameter::new(at, field, slots));
                    Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), Vec::new())))
                }
                None => Transformed::no(Expr::OuterReferenceColumn(field, column)),
            }
        }
        Expr::ScalarSubquery(mut subquery) => {
            subquery.subquery = inside(&subquery.subquery)?;
            subquery.outer_ref_columns = subquery.subquery.all_out_ref_exprs();
            Transformed::yes(Expr::ScalarSubquery(subquery))
        }
        Expr::Exists(mut exists) => {
            exists.subquery.subquery = inside(&exists.subquery.subquery)?;
            exists.subquery.outer_ref_columns = exists.subquery.subquery.all_out_ref_exprs();
            Transformed::yes(Expr::Exists(exists))
        }
        Expr::InSubquery(mut within) => {
            within.subquery.subquery = inside(&within.subquery.subquery)?;
            within.subquery.outer_ref_columns = within.subquery.subquery.all_out_ref_exprs();
            Transformed::yes(Expr::InSubquery(within))
        }
        other => Transformed::no(other),
    })
}

/// Function without arguments that returns the value of one slot.
#[derive(Debug)]
struct Parameter {
    at: usize,
    name: String,
    field: FieldRef,
    slots: OuterValues,
    signature: Signature,
}

impl Parameter {
    fn new(at: usize, field: FieldRef, slots: &OuterValues) -> Self {
        // Volatile, so that the optimizer does not fold one run's value into the plan.
        let signature = Signature::nullary(Volatility::Volatile);
        Self { at, name: format!("outer_value_{at}"), field, slots: Arc::clone(slots), signature }
    }
}

impl ScalarUDFImpl for Parameter {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        Ok(Arc::new(self.field.as_ref().clone().with_name(&self.name).with_nullable(true)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.slots.lock()[self.at].clone()))
    }
}

impl PartialEq for Parameter {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at && Arc::ptr_eq(&self.slots, &other.slots)
    }
}

impl Eq for Parameter {}

impl Hash for Parameter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.at.hash(state);
    }
}
