//! Tests of the lazy CASE of conditions.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, col, lit};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

use super::{LazyPurpose, as_lazy_condition, branch_condition, lazy_condition, planned_lazy_case};

fn batch() -> RecordBatch {
    let a = BooleanArray::from(vec![Some(true), Some(false), None]);
    let b = BooleanArray::from(vec![None, Some(true), Some(true)]);
    RecordBatch::try_from_iter_with_nullable([("a", Arc::new(a) as ArrayRef, true), ("b", Arc::new(b), true)]).unwrap()
}

fn planned(expr: &Expr) -> Arc<dyn PhysicalExpr> {
    let schema = DFSchema::try_from(batch().schema()).unwrap();
    create_physical_expr(expr, &schema, &ExecutionProps::new(), &PhysicalPlanningContext::default()).unwrap()
}

fn values(expression: &Arc<dyn PhysicalExpr>) -> Vec<Option<bool>> {
    let array = expression.evaluate(&batch()).unwrap().into_array(3).unwrap();
    array.as_any().downcast_ref::<BooleanArray>().unwrap().iter().collect()
}

#[test]
fn a_lazy_case_has_the_values_of_its_branches() {
    let branches = vec![(Box::new(col("a")), Box::new(col("b")))];
    let expr = lazy_condition(Case::new(None, branches, Some(Box::new(lit(false)))), LazyPurpose::Guard).unwrap();
    let (purpose, case) = as_lazy_condition(&expr).unwrap();
    assert_eq!(purpose, LazyPurpose::Guard);
    assert_eq!(branch_condition(&case.when_then_expr[0].1), Some(&col("b")));
    let lazy = planned(&expr);
    assert_eq!(values(&lazy), [None, Some(false), Some(false)]);
    let shown: Arc<dyn PhysicalExpr> = Arc::new(planned_lazy_case(&lazy).unwrap());
    assert_eq!(values(&shown), [None, Some(false), Some(false)]);
    assert_eq!(as_lazy_condition(&col("a")), None);
    assert!(planned_lazy_case(&planned(&lit(ScalarValue::Int16(Some(1))))).is_none());
}
