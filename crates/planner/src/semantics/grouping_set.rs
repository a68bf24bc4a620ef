//! Columns of GROUPING SETS are not the columns they group by: in the rows of the other sets they are NULL.
//!
//! DataFusion's aggregate hands on what is known of its input's columns (constant because of a filter, sorted) as if they
//! were: a sort above leaves such keys out, and the final aggregate takes a change of one for the end of a group, which it
//! then gives twice. So the aggregate groups by a function of the key of which nothing is known.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result, ScalarValue, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::GroupingSet;
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

/// The same rows, from keys of which nothing is known.
fn veil(aggregate: Aggregate) -> Result<LogicalPlan> {
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    let [Expr::GroupingSet(sets)] = group_expr.as_slice() else { unreachable!("only grouping sets are veiled") };
    let keys: Vec<Expr> = sets.distinct_expr().into_iter().cloned().collect();
    // Each in a relation of its own, so that EXPLAIN shows the keys' own names.
    let relation = |at: usize| Some(TableReference::bare(format!("grouping_key_{at}")));
    let name = |at: usize| schema.field(at).name();
    let veiled = |at: usize| Expr::Column(Column::new(relation(at), name(at)));
    let key = |expr: &Expr| {
        let at = keys.iter().position(|key| key == expr).expect("it is one of the distinct expressions");
        veiled(at)
    };
    let all = |exprs: &[Expr]| exprs.iter().map(key).collect::<Vec<_>>();
    let sets = match sets {
        GroupingSet::Rollup(exprs) => GroupingSet::Rollup(all(exprs)),
        GroupingSet::Cube(exprs) => GroupingSet::Cube(all(exprs)),
        GroupingSet::GroupingSets(sets) => GroupingSet::GroupingSets(sets.iter().map(|set| all(set)).collect()),
    };

    let plain = input.schema().iter().map(|column| Expr::Column(Column::from(column)));
    // A function of constants alone would be taken for constant, volatile or not.
    let hidden = keys.iter().enumerate().map(|(at, key)| {
        let varies = VARIES.call(vec![]);
        VEIL.call(vec![key.clone(), varies]).alias_qualified(relation(at), name(at))
    });
    let below = Projection::try_new(plain.chain(hidden).collect(), input)?;
    let below = Arc::new(LogicalPlan::Projection(below));
    let grouped = Aggregate::try_new(below, vec![Expr::GroupingSet(sets)], aggr_expr)?;

    let columns = schema.iter().enumerate().map(|(at, (qualifier, field))| {
        if keys.len() <= at {
            return Expr::Column(Column::new(qualifier.cloned(), field.name()));
        }
        veiled(at).alias_qualified(qualifier.cloned(), field.name())
    });
    let columns: Vec<_> = columns.collect();
    Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(grouped))).map(LogicalPlan::Projection)
}

fn has_sets(aggregate: &Aggregate) -> bool {
    matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)])
}

static VEIL: LazyLock<ScalarUDF> =
    LazyLock::new(|| ScalarUDF::new_from_impl(GroupingKey { signature: Signature::any(2, Volatility::Volatile) }));
static VARIES: LazyLock<ScalarUDF> =
    LazyLock::new(|| ScalarUDF::new_from_impl(Varies { signature: Signature::nullary(Volatility::Volatile) }));

/// Its first argument.
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
        Ok(Arc::clone(&args.arg_fields[0]))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args.swap_remove(0))
    }
}

/// A value that is not taken for constant.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Varies {
    signature: Signature,
}

impl ScalarUDFImpl for Varies {
    fn name(&self) -> &str {
        "varies"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Null)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Null))
    }
}
