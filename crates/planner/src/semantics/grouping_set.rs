//! Columns of GROUPING SETS are not the columns they group by: in the rows of the other sets they are NULL.
//!
//! DataFusion's aggregate hands on what is known of its input's columns (constant because of a filter, sorted) as if they
//! were, and a sort above leaves such keys out. A function that nothing is known of stands in between.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{
    Aggregate, ColumnarValue, Expr, LogicalPlan, Projection, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

/// Runs after GROUPING() is resolved, which reads the aggregate's own columns.
#[derive(Debug)]
pub(super) struct GroupingSetColumns;

impl AnalyzerRule for GroupingSetColumns {
    fn name(&self) -> &'static str {
        "grouping_set_columns"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Aggregate(aggregate) if has_sets(&aggregate) => veil(aggregate).map(Transformed::yes),
            node => Ok(Transformed::no(node)),
        })
        .map(|transformed| transformed.data)
    }
}

fn has_sets(aggregate: &Aggregate) -> bool {
    matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)])
}

fn veil(aggregate: Aggregate) -> Result<LogicalPlan> {
    // The sets' number and the aggregates come last.
    let key_count = aggregate.schema.fields().len() - aggregate.aggr_expr.len() - 1;
    let columns = aggregate.schema.iter().enumerate().map(|(at, (qualifier, field))| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        if key_count <= at {
            return column;
        }
        VEIL.call(vec![column]).alias_qualified(qualifier.cloned(), field.name())
    });
    let columns = columns.collect();
    Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(aggregate))).map(LogicalPlan::Projection)
}

static VEIL: LazyLock<ScalarUDF> =
    LazyLock::new(|| ScalarUDF::new_from_impl(GroupingKey { signature: Signature::any(1, Volatility::Volatile) }));

/// Its argument; volatile, so that no rule looks through it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct GroupingKey {
    signature: Signature,
}

impl ScalarUDFImpl for GroupingKey {
    fn name(&self) -> &str {
        "grouping_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::clone(&args.arg_fields[0]).with_nullable(true)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args.swap_remove(0))
    }
}
