//! Measurements of operators, from their metrics and from the engine.

use std::collections::HashMap;
use std::sync::Arc;

use binder::ExplainPlan;
use chrono::{DateTime, Utc};
use compile::estimate::ShownOperators;
use compile::{OperatorId, OperatorMetrics};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};
use scan::{ShardScanExec, counter};

use crate::plan_node::{Property, Value};

/// Measurements of one operator, all of its partitions together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ActualRun {
    pub(crate) rows: u64,
    /// Start and end in milliseconds since the first operator started; `None` if not measured.
    pub(crate) time_ms: Option<(f64, f64)>,
}

/// Measurements of a plan, with times relative to the start of its first operator.
#[derive(Debug)]
pub(crate) struct Measurements {
    start: Option<DateTime<Utc>>,
    /// Measurements of operators that the engine ran, each with the time in milliseconds at which their fragment began.
    by_operator: HashMap<OperatorId, (OperatorMetrics, f64)>,
}

impl Measurements {
    pub(crate) fn collect(root: &Arc<dyn ExecutionPlan>, operators: &ShownOperators) -> Self {
        let mut clock = Self { start: first_start(root), by_operator: HashMap::new() };
        for fragment in operators.fragments() {
            let began_ms = fragment
                .metrics()
                .and_then(|metrics| clock.milliseconds_since_start(start(&metrics)))
                .unwrap_or_default();
            let did = fragment.fragment_metrics().by_operator();
            clock.by_operator.extend(did.into_iter().map(|(operator, did)| (operator, (did, began_ms))));
        }
        clock
    }

    fn milliseconds_since_start(&self, moment: Option<DateTime<Utc>>) -> Option<f64> {
        let since = moment? - self.start?;
        #[expect(clippy::cast_precision_loss, reason = "microseconds of a query fit 53 bits")]
        Some(since.num_microseconds()? as f64 / 1000.0)
    }

    /// Returns the properties of an operator that the engine ran.
    pub(crate) fn engine_properties(&self, operator: &dyn ExecutionPlan, plan: &ExplainPlan) -> Vec<Property> {
        let Some((did, _)) = self.by_operator.get(&OperatorId::new(operator)) else { return Vec::new() };
        let mut properties = Vec::new();
        // The memory of a hash join is shown by its Hash node.
        if 0 < did.memory && !operator.is::<HashJoinExec>() {
            properties.push(Property::new("Memory", Value::Bytes(did.memory)));
        }
        if 0 < did.spilled.parts {
            properties.push(Property::new("Spilled Parts", Value::Count(did.spilled.parts)));
        }
        if 0 < did.spilled.runs {
            properties.push(Property::new("Spilled Runs", Value::Count(did.spilled.runs)));
        }
        if 0 < did.spilled.bytes {
            properties.push(Property::new("Spilled", Value::Bytes(did.spilled.bytes)));
        }
        if 0 < did.calls.rows {
            properties.push(Property::new("Arrow Rows", Value::Count(did.calls.rows)));
            if plan.timing {
                properties.push(Property::new("Arrow CPU", Value::Milliseconds(milliseconds(did.calls.busy_ns))));
            }
        }
        if let Some(busy) = did.busy.filter(|_| plan.timing) {
            properties.push(Property::new("CPU", Value::Milliseconds(milliseconds(busy.self_ns))));
        }
        properties
    }

    /// Returns the peak memory in bytes that the engine used for an operator.
    pub(crate) fn memory(&self, operator: &dyn ExecutionPlan) -> Option<u64> {
        self.by_operator.get(&OperatorId::new(operator)).map(|(did, _)| did.memory)
    }

    /// Returns the measurements of an operator; `None` if it has no metrics.
    pub(crate) fn actual(&self, operator: &dyn ExecutionPlan) -> Option<ActualRun> {
        if let Some((did, began_ms)) = self.by_operator.get(&OperatorId::new(operator)) {
            let time_ms =
                did.busy.map(|busy| (began_ms + milliseconds(busy.first_ns), began_ms + milliseconds(busy.last_ns)));
            return Some(ActualRun { rows: did.rows, time_ms });
        }
        let metrics = operator.metrics()?;
        let rows = metrics.output_rows()?;
        let time_ms = self.milliseconds_since_start(start(&metrics)).zip(self.milliseconds_since_start(end(&metrics)));
        Some(ActualRun { rows: rows as u64, time_ms })
    }
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a query fit 53 bits")]
fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

fn first_start(operator: &Arc<dyn ExecutionPlan>) -> Option<DateTime<Utc>> {
    let own = operator.metrics().and_then(|metrics| start(&metrics));
    operator.children().into_iter().filter_map(first_start).chain(own).min()
}

fn start(metrics: &MetricsSet) -> Option<DateTime<Utc>> {
    let starts = metrics.iter().filter_map(|metric| match metric.value() {
        MetricValue::StartTimestamp(moment) => moment.value(),
        _ => None,
    });
    starts.min()
}

fn end(metrics: &MetricsSet) -> Option<DateTime<Utc>> {
    let ends = metrics.iter().filter_map(|metric| match metric.value() {
        MetricValue::EndTimestamp(moment) => moment.value(),
        _ => None,
    });
    ends.max()
}

/// Returns the measured properties of an operator.
pub(crate) fn properties(operator: &dyn ExecutionPlan, plan: &ExplainPlan) -> Vec<Property> {
    let Some(metrics) = operator.metrics() else { return Vec::new() };
    let mut properties = Vec::new();
    if operator.is::<ShardScanExec>() {
        properties.extend(pruning(&metrics));
    }
    if let Some(bytes) = memory(operator).filter(|_| !operator.is::<HashJoinExec>()) {
        properties.push(Property::new("Memory", Value::Bytes(bytes)));
    }
    let spills = metrics.spill_count().unwrap_or(0);
    if 0 < spills {
        properties.push(Property::new("Spilled Files", Value::Count(spills as u64)));
        properties.push(Property::new("Spilled", Value::Bytes(metrics.spilled_bytes().unwrap_or(0) as u64)));
    }
    if plan.timing
        && let Some(nanoseconds) = metrics.elapsed_compute()
    {
        #[expect(clippy::cast_precision_loss, reason = "shown in microseconds")]
        properties.push(Property::new("CPU", Value::Milliseconds(nanoseconds as f64 / 1e6)));
    }
    properties
}

fn pruning(metrics: &MetricsSet) -> Vec<Property> {
    let count = |name: &str| metrics.sum_by_name(name).map_or(0, |value| value.as_usize() as u64);
    let counter = |key, name| Property::new(key, Value::Count(count(name)));
    let known = counter("Shards from Cache", counter::SHARDS_KNOWN);
    let known = (known.value != Value::Count(0)).then_some(known);
    let read = [
        counter("Shards Pruned", counter::SHARDS_PRUNED),
        counter("Row Groups Pruned", counter::ROW_GROUPS_PRUNED),
        counter("Pages", counter::PAGES),
        counter("Pages Pruned", counter::PAGES_PRUNED),
        Property::new("Read", Value::Bytes(count(counter::BYTES))),
    ];
    known.into_iter().chain(read).collect()
}

/// Returns the peak memory in bytes of an operator, if it measures it; for joins, that of the build side.
pub(crate) fn memory(operator: &dyn ExecutionPlan) -> Option<u64> {
    let metrics = operator.metrics()?;
    let bytes = metrics.sum_by_name("build_mem_used").or_else(|| metrics.sum_by_name("peak_mem_used"))?;
    Some(bytes.as_usize() as u64)
}
