//! GROUPING SETS: hides properties of their keys from the optimizer.
//!
//! The output columns of GROUPING SETS differ from their keys: they are NULL in the rows of other sets.
//!
//! DataFusion's aggregate passes on properties of its input's columns (constant because of a filter, sorted) as if
//! they held for its output: a sort above it drops such keys, and the final aggregate takes a change of such a key
//! for the end of a group, which it then emits twice. So the aggregate groups by an opaque function of the key.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, AggregateUDF, Expr, GroupingSet, LogicalPlan, Projection};
use datafusion::optimizer::AnalyzerRule;
use functions::{GROUPING_KEY, VOLATILE_NULL};
use plan::{StandardAggregate, unique_name};

/// Analyzer rule that hides the keys; it runs after GROUPING() is resolved, which reads the aggregate's own columns.
#[derive(Debug)]
pub(super) struct GroupingSetColumns;

impl AnalyzerRule for GroupingSetColumns {
    fn name(&self) -> &'static str {
        "grouping_set_columns"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Aggregate(aggregate) if has_sets(&aggregate) => hide_keys(aggregate).map(Transformed::yes),
            node => Ok(Transformed::no(node)),
        })
        .map(|transformed| transformed.data)
    }
}

/// Rewrites an aggregate to group by opaque keys.
fn hide_keys(aggregate: Aggregate) -> Result<LogicalPlan> {
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    let [Expr::GroupingSet(sets)] = group_expr.as_slice() else {
        unreachable!("hide_keys was called for an aggregate without grouping sets")
    };
    let keys: Vec<Expr> = sets.distinct_expr().into_iter().cloned().collect();
    // Each key has its own relation, so that EXPLAIN shows the key's name.
    let before = Arc::clone(input.schema());
    let relations: Vec<TableReference> = (0..keys.len())
        .map(|at| {
            let is_taken = |name: &str| {
                let name = TableReference::bare(name);
                before.iter().any(|(relation, _)| relation == Some(&name))
            };
            TableReference::bare(unique_name(&format!("grouping_key_{at}"), is_taken))
        })
        .collect();
    let relation = |at: usize| Some(relations[at].clone());
    // An unqualified column of the same name in the input would make the reference ambiguous.
    let hidden_name = |at: usize| {
        let is_taken = |name: &str| before.iter().any(|(relation, field)| relation.is_none() && field.name() == name);
        unique_name(schema.field(at).name(), is_taken)
    };
    let veiled = |at: usize| Expr::Column(Column::new(relation(at), hidden_name(at)));
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
    // A call with only constants would be folded, even if it is volatile.
    let hidden = keys.iter().enumerate().map(|(at, key)| {
        let varies = VOLATILE_NULL.call(vec![]);
        GROUPING_KEY.call(vec![key.clone(), varies]).alias_qualified(relation(at), hidden_name(at))
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

pub(super) fn has_sets(aggregate: &Aggregate) -> bool {
    matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)])
}

/// Rewrites an aggregation so that its sets contain only columns: other keys are computed below it, under their
/// previous names, which the nodes above refer to. `rewrite` resolves a key.
pub(super) fn project_set_keys(aggregate: Aggregate, rewrite: impl Fn(Expr) -> Result<Expr>) -> Result<Aggregate> {
    if !has_sets(&aggregate) {
        return Ok(aggregate);
    }
    let mut outputs: Vec<Expr> = aggregate.input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut computed: Vec<(Expr, Expr)> = Vec::new();
    for key in grouping_set_to_exprlist(&aggregate.group_expr)? {
        if !matches!(key, Expr::Column(_)) {
            let name = key.schema_name().to_string();
            outputs.push(rewrite(key.clone())?.alias(&name));
            computed.push((key.clone(), Expr::Column(Column::new_unqualified(name))));
        }
    }
    if computed.is_empty() {
        return Ok(aggregate);
    }
    let replace = |expr: Expr| match computed.iter().find(|(key, _)| *key == expr) {
        Some((_, column)) => column.clone(),
        None => expr,
    };
    let group_expr = aggregate.group_expr.into_iter().map(|key| map_set_keys(key, &replace)).collect();
    let aggr_expr = aggregate.aggr_expr.into_iter().map(|call| map_grouping_arguments(call, &replace)).collect();
    let input = Projection::try_new(outputs, aggregate.input)?;
    Aggregate::try_new(Arc::new(LogicalPlan::Projection(input)), group_expr, aggr_expr)
}

/// Applies `replace` to each expression of a key's grouping sets.
pub(super) fn map_set_keys(key: Expr, replace: &impl Fn(Expr) -> Expr) -> Expr {
    let all = |keys: Vec<Expr>| keys.into_iter().map(replace).collect();
    match key {
        Expr::GroupingSet(GroupingSet::Rollup(keys)) => Expr::GroupingSet(GroupingSet::Rollup(all(keys))),
        Expr::GroupingSet(GroupingSet::Cube(keys)) => Expr::GroupingSet(GroupingSet::Cube(all(keys))),
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
            Expr::GroupingSet(GroupingSet::GroupingSets(sets.into_iter().map(all).collect()))
        }
        key => replace(key),
    }
}

/// Returns whether an aggregate is GROUPING().
pub(super) fn is_grouping(function: &AggregateUDF) -> bool {
    StandardAggregate::from_function(function) == Some(StandardAggregate::Grouping)
}

/// Applies `replace` to the arguments of GROUPING() and keeps its name; returns other calls unchanged.
pub(super) fn map_grouping_arguments(call: Expr, replace: &impl Fn(Expr) -> Expr) -> Expr {
    let name = call.schema_name().to_string();
    let is_grouping = matches!(&call, Expr::AggregateFunction(call) if is_grouping(&call.func))
        || matches!(&call, Expr::Alias(alias)
            if matches!(alias.expr.as_ref(), Expr::AggregateFunction(call) if is_grouping(&call.func)));
    match (is_grouping, call) {
        (true, call) => match call.unalias() {
            Expr::AggregateFunction(mut call) => {
                call.params.args = call.params.args.into_iter().map(replace).collect();
                Expr::AggregateFunction(call).alias(name)
            }
            other => other.alias(name),
        },
        (false, call) => call,
    }
}
