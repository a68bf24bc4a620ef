//! Names and properties of operators, in PostgreSQL's terms where it has any.

use std::sync::Arc;

use binder::UNKNOWN_LIMIT;
use catalog::Distribution;
use datafusion::common::JoinType;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode, PiecewiseMergeJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::partial_sort::PartialSortExec;
use datafusion::physical_plan::sorts::partitioned_topk::PartitionedTopKExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::streaming::StreamingTableExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, Partitioning, WindowExpr};
use exchange::{RouteToOwnersExec, is_colocated_join};
use operators::{RankLimitExec, SharedScanExec};
use scan::{ShardScanExec, bucket_keys};
use types::ColumnId;

use crate::expressions::{sort_key, sql};
use crate::plan_node::{NodeKind, Property, Value};

/// Name, table and planned properties of an operator.
pub(crate) struct OperatorDescription {
    pub(crate) name: String,
    pub(crate) kind: NodeKind,
    pub(crate) relation: Option<String>,
    pub(crate) properties: Vec<Property>,
}

pub(crate) fn describe(operator: &dyn ExecutionPlan) -> OperatorDescription {
    describe_scan(operator)
        .or_else(|| describe_join(operator))
        .or_else(|| describe_grouping(operator))
        .or_else(|| describe_ordering(operator))
        .or_else(|| describe_exchange(operator))
        .unwrap_or_else(|| describe_other(operator))
}

fn description(name: impl Into<String>, properties: Vec<Property>) -> OperatorDescription {
    OperatorDescription { name: name.into(), kind: NodeKind::Other, relation: None, properties }
}

impl OperatorDescription {
    fn with_kind(self, kind: NodeKind) -> Self {
        Self { kind, ..self }
    }
}

fn describe_scan(operator: &dyn ExecutionPlan) -> Option<OperatorDescription> {
    if let Some(shared) = operator.downcast_ref::<SharedScanExec>() {
        let relation = Some(shared.relation().to_owned());
        let name = if shared.is_with_query() { "CTE Scan" } else { "Shared Scan" };
        return Some(OperatorDescription { relation, ..description(name, Vec::new()) });
    }
    let exec = operator.downcast_ref::<ShardScanExec>()?;
    let scan = &exec.scan;
    let mut properties = vec![
        Property::text("Shards", format!("{} of {}", scan.shards.len(), scan.shard_count)),
        Property::new("Row Groups", Value::Count(exec.row_group_count() as u64)),
    ];
    properties.extend(exec.fetch().and_then(limit_property));
    properties.extend(distribution(exec));
    Some(OperatorDescription { relation: Some(scan.table.name.clone()), ..description("Seq Scan", properties) })
}

/// Returns the LIMIT property; `None` if the count is unknown before the statement runs.
fn limit_property(limit: usize) -> Option<Property> {
    let is_known = i64::try_from(limit).is_ok_and(|limit| limit < UNKNOWN_LIMIT);
    is_known.then(|| Property::new("Limit", Value::Count(limit as u64)))
}

/// Returns the property that says how a distributed table's rows are located, or why they are not located by bucket.
fn distribution(exec: &ShardScanExec) -> Option<Property> {
    let scan = &exec.scan;
    let text = match &scan.table.distribution {
        Distribution::Random => return None,
        Distribution::Replicate if exec.is_replicated() => "all of it in each task".to_owned(),
        Distribution::Replicate => "replicated".to_owned(),
        Distribution::On(columns) => {
            let name = |id: ColumnId| {
                scan.table.columns.iter().find(|column| column.id == id).map(|column| column.name.as_str())
            };
            let names: Vec<&str> = columns.iter().filter_map(|id| name(*id)).collect();
            let by = format!("by bucket of {}", names.join(", "));
            match bucket_keys(&scan.table).map(|keys| scan.count_unbucketed_shards(&keys)) {
                Some(0) => by,
                Some(others) => format!("not {by}: {others} of {} shards written otherwise", scan.shards.len()),
                None => format!("not {by}: its values have no hash"),
            }
        }
    };
    Some(Property::text("Distribution", text))
}

fn describe_join(operator: &dyn ExecutionPlan) -> Option<OperatorDescription> {
    if let Some(join) = operator.downcast_ref::<HashJoinExec>() {
        // The build side is shown second, as in PostgreSQL, so the sides swap their names.
        let kind = join_prefix(join.join_type().swap());
        let on = join.on().iter().map(|(build, probe)| (probe, build));
        let mut properties = vec![condition("Hash Cond", on)];
        properties.extend(join.filter().map(join_filter));
        if *join.partition_mode() == PartitionMode::Partitioned {
            let mode = if is_colocated_join(join) { "co-located" } else { "partitioned" };
            properties.push(Property::text("Mode", mode));
        }
        return Some(description(format!("Hash{kind} Join"), properties));
    }
    if let Some(join) = operator.downcast_ref::<SortMergeJoinExec>() {
        let mut properties = vec![condition("Merge Cond", join.on().iter().map(|(left, right)| (left, right)))];
        properties.extend(join.filter().as_ref().map(join_filter));
        return Some(description(format!("Merge{} Join", join_prefix(join.join_type())), properties));
    }
    if let Some(join) = operator.downcast_ref::<NestedLoopJoinExec>() {
        let name = match join_prefix(*join.join_type()) {
            "" => "Nested Loop".to_owned(),
            kind => format!("Nested Loop{kind} Join"),
        };
        return Some(description(name, join.filter().map(join_filter).into_iter().collect()));
    }
    operator.is::<CrossJoinExec>().then(|| description("Nested Loop", Vec::new()))
}

fn join_prefix(join_type: JoinType) -> &'static str {
    match join_type {
        JoinType::Inner => "",
        JoinType::Left => " Left",
        JoinType::Right => " Right",
        JoinType::Full => " Full",
        JoinType::LeftSemi => " Semi",
        JoinType::LeftAnti => " Anti",
        JoinType::RightSemi => " Right Semi",
        JoinType::RightAnti => " Right Anti",
        JoinType::LeftMark | JoinType::RightMark => " Mark",
    }
}

fn condition<'a>(
    key: &'static str,
    on: impl Iterator<Item = (&'a Arc<dyn PhysicalExpr>, &'a Arc<dyn PhysicalExpr>)>,
) -> Property {
    let equalities: Vec<String> = on.map(|(left, right)| format!("({} = {})", sql(left), sql(right))).collect();
    let text = equalities.join(" AND ");
    Property::text(key, if equalities.len() == 1 { text } else { format!("({text})") })
}

fn join_filter(filter: &JoinFilter) -> Property {
    Property::text("Join Filter", sql(filter.expression()))
}

fn describe_grouping(operator: &dyn ExecutionPlan) -> Option<OperatorDescription> {
    if let Some(windows) = operator.downcast_ref::<WindowAggExec>() {
        return Some(description("WindowAgg", vec![window_functions(windows.window_expr())]));
    }
    if let Some(windows) = operator.downcast_ref::<BoundedWindowAggExec>() {
        return Some(description("WindowAgg", vec![window_functions(windows.window_expr())]));
    }
    let aggregate = operator.downcast_ref::<AggregateExec>()?;
    let group = aggregate.group_expr();
    let strategy = match (group.is_empty(), aggregate.input_order_mode()) {
        (true, _) => "Aggregate",
        (false, InputOrderMode::Linear) => "HashAggregate",
        (false, _) => "GroupAggregate",
    };
    let step = match aggregate.mode() {
        AggregateMode::Partial | AggregateMode::PartialReduce => "Partial ",
        AggregateMode::Final | AggregateMode::FinalPartitioned => "Finalize ",
        AggregateMode::Single | AggregateMode::SinglePartitioned => "",
    };
    let mut properties = Vec::new();
    if !group.is_empty() {
        properties.push(Property::list("Group Key", group.expr().iter().map(|(key, _)| sql(key))));
    }
    if group.has_grouping_set() {
        properties.push(Property::new("Grouping Sets", Value::Count(group.groups().len() as u64)));
    }
    let functions = aggregate.aggr_expr().iter();
    let functions: Vec<String> =
        functions.map(|function| function.human_display().unwrap_or_else(|| function.name()).to_owned()).collect();
    if !functions.is_empty() {
        properties.push(Property::list("Aggregates", functions));
    }
    properties.extend(aggregate.limit_options().and_then(|limit| limit_property(limit.limit())));
    Some(description(format!("{step}{strategy}"), properties))
}

fn window_functions(windows: &[Arc<dyn WindowExpr>]) -> Property {
    Property::list("Functions", windows.iter().map(|window| window.name().to_owned()))
}

fn describe_ordering(operator: &dyn ExecutionPlan) -> Option<OperatorDescription> {
    if let Some(sort) = operator.downcast_ref::<SortExec>() {
        let keys = Property::list("Sort Key", sort.expr().iter().map(sort_key));
        return Some(match sort.fetch() {
            Some(fetch) => description("Top-N Sort", std::iter::once(keys).chain(limit_property(fetch)).collect())
                .with_kind(NodeKind::TopNSort),
            None => description("Sort", vec![keys]).with_kind(NodeKind::Sort),
        });
    }
    let limit = |fetch: Option<usize>, skip: usize| {
        let fetch = fetch.and_then(limit_property);
        let skip = (0 < skip).then(|| Property::new("Offset", Value::Count(skip as u64)));
        description("Limit", fetch.into_iter().chain(skip).collect())
    };
    if let Some(global) = operator.downcast_ref::<GlobalLimitExec>() {
        return Some(limit(global.fetch(), global.skip()));
    }
    operator.downcast_ref::<LocalLimitExec>().map(|local| limit(Some(local.fetch()), 0))
}

fn describe_exchange(operator: &dyn ExecutionPlan) -> Option<OperatorDescription> {
    let partitions = |operator: &dyn ExecutionPlan| {
        let count = operator.properties().output_partitioning().partition_count();
        Property::new("Partitions", Value::Count(count as u64))
    };
    if let Some(merge) = operator.downcast_ref::<SortPreservingMergeExec>() {
        let keys = Property::list("Sort Key", merge.expr().iter().map(sort_key));
        let properties = vec![partitions(merge.input().as_ref()), keys];
        return Some(description("Gather Merge", properties).with_kind(NodeKind::Exchange));
    }
    if let Some(repartition) = operator.downcast_ref::<RepartitionExec>() {
        let mut properties = vec![partitions(operator)];
        if let Some(to_owners) = repartition.input().downcast_ref::<RouteToOwnersExec>() {
            let schema = repartition.schema();
            let names = to_owners.keys().iter().map(|key| schema.field(*key).name().clone());
            properties.push(Property::list("To Owner Of", names));
        } else if let Partitioning::Hash(keys, _) = repartition.partitioning() {
            properties.push(Property::list("Hash Key", keys.iter().map(sql)));
        }
        return Some(description("Redistribute", properties).with_kind(NodeKind::Exchange));
    }
    let gather = operator.downcast_ref::<CoalescePartitionsExec>()?;
    Some(description("Gather", vec![partitions(gather.input().as_ref())]).with_kind(NodeKind::Exchange))
}

fn describe_other(operator: &dyn ExecutionPlan) -> OperatorDescription {
    if let Some(filter) = operator.downcast_ref::<FilterExec>() {
        return description("Filter", vec![Property::text("Filter", sql(filter.predicate()))]);
    }
    if operator.is::<ProjectionExec>() {
        return description("Project", Vec::new()).with_kind(NodeKind::Projection);
    }
    if operator.is::<EmptyExec>() {
        return description("Result", vec![Property::text("One-Time Filter", "false")]);
    }
    description(plain_name(operator), Vec::new())
}

/// Returns the name of an operator that is shown without properties. Kiln's own and unknown ones have their type's
/// name.
fn plain_name(operator: &dyn ExecutionPlan) -> &str {
    let names = [
        ("Append", operator.is::<UnionExec>() || operator.is::<InterleaveExec>()),
        ("Result", operator.is::<PlaceholderRowExec>()),
        ("Values Scan", operator.is::<DataSourceExec>()),
        ("Function Scan", operator.is::<StreamingTableExec>()),
        ("ProjectSet", operator.is::<UnnestExec>()),
        ("Recursive Union", operator.is::<RecursiveQueryExec>()),
        ("WorkTable Scan", operator.is::<WorkTableExec>()),
        ("Top-N per Group", operator.is::<PartitionedTopKExec>()),
        ("Rank Limit", operator.is::<RankLimitExec>()),
        ("Incremental Sort", operator.is::<PartialSortExec>()),
        ("Merge Join", operator.is::<PiecewiseMergeJoinExec>()),
    ];
    let known = names.into_iter().find_map(|(name, is_it)| is_it.then_some(name));
    known.unwrap_or_else(|| operator.name().strip_suffix("Exec").unwrap_or_else(|| operator.name()))
}
