//! Renames the columns of a union's inputs to the union's names.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Union};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::datafusion_rules::RuleKind;

/// Optimizer rule that renames the columns of a union's inputs to the union's names.
///
/// A union matches columns by position, but DataFusion's rules look them up by name when they push a node below a
/// union, or replace a union by its only nonempty input.
#[derive(Debug)]
pub(super) struct UnionInputNames;

impl OptimizerRule for UnionInputNames {
    fn name(&self) -> &'static str {
        RuleKind::UnionNames.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Union(union) = plan else { return Ok(Transformed::no(plan)) };
        let columns = union.schema.columns();
        if union.inputs.iter().all(|input| input.schema().columns() == columns) {
            return Ok(Transformed::no(LogicalPlan::Union(union)));
        }
        let Union { inputs, schema } = union;
        let inputs = inputs.into_iter().map(|input| rename_columns(input, &schema)).collect::<Result<_>>()?;
        Ok(Transformed::yes(LogicalPlan::Union(Union { inputs, schema })))
    }
}

fn rename_columns(input: Arc<LogicalPlan>, schema: &DFSchema) -> Result<Arc<LogicalPlan>> {
    let columns = input.schema().columns();
    if columns == schema.columns() {
        return Ok(input);
    }
    let named = columns.into_iter().zip(schema.iter());
    let named = named
        .map(|(column, (relation, field))| Expr::Column(column).alias_qualified(relation.cloned(), field.name()))
        .collect();
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(named, input)?)))
}
