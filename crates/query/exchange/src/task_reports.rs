//! Metrics that tasks report at the end of their query, shown by EXPLAIN ANALYZE for each stage.

use std::collections::BTreeMap;
use std::time::Duration;

use arrow::array::RecordBatch;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time};
use datafusion_distributed::{TaskKey, TaskMetrics};
use parking_lot::Mutex;
use scan::row_bytes;
use url::Url;

const ROWS: &str = "kiln_rows";
const BYTES: &str = "kiln_bytes";
const BUSY: &str = "kiln_busy";

/// Reports received so far from the tasks of one query, by stage and task number.
#[derive(Debug, Default)]
pub struct TaskReports(Mutex<BTreeMap<(usize, usize), TaskReport>>);

/// Marker of a query whose tasks have to report metrics.
#[derive(Debug)]
pub(super) struct ReportsRequested;

/// Metrics of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    /// Worker that it ran on.
    pub worker: Url,
    pub rows: u64,
    /// Uncompressed bytes of its rows, as sent.
    pub bytes: u64,
    /// Time from the request for its first row until its last row was handed over.
    pub took: Duration,
}

impl TaskReports {
    /// Stores the metrics of a task.
    pub(super) fn record(&self, task: TaskKey, worker: &Url, told: &TaskMetrics) {
        let sum = |name: &str| {
            let of = |set: &MetricsSet| set.sum_by_name(name).map_or(0, |value| value.as_usize() as u64);
            told.pre_order_plan_metrics.iter().map(of).sum::<u64>()
        };
        let report = TaskReport {
            worker: worker.clone(),
            rows: sum(ROWS),
            bytes: sum(BYTES),
            took: Duration::from_nanos(sum(BUSY)),
        };
        self.0.lock().insert((task.stage_id, task.task_number), report);
    }

    /// Returns the reports of a stage, in the order of its tasks.
    pub fn stage_reports(&self, stage: usize) -> Vec<TaskReport> {
        let reports = self.0.lock();
        reports.range((stage, 0)..=(stage, usize::MAX)).map(|(_, report)| report.clone()).collect()
    }
}

/// Counters of the rows that a task outputs.
#[derive(Debug, Clone)]
pub(super) struct OutputCounters {
    rows: Count,
    bytes: Count,
    pub(super) busy: Time,
}

impl OutputCounters {
    pub(super) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self {
            rows: MetricBuilder::new(metrics).counter(ROWS, partition),
            bytes: MetricBuilder::new(metrics).counter(BYTES, partition),
            busy: MetricBuilder::new(metrics).subset_time(BUSY, partition),
        }
    }

    /// Counts a batch of output.
    pub(super) fn add(&self, batch: &RecordBatch) {
        self.rows.add(batch.num_rows());
        self.bytes.add(row_bytes(batch));
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_stage_has_what_its_tasks_told() {
        let reports = TaskReports::default();
        let worker = |number: u16| Url::parse(&format!("http://127.0.0.1:{number}/")).expect("it is an address");
        for (stage_id, task_number, rows) in [(2, 1, 7), (1, 0, 5), (2, 0, 3)] {
            let metrics = ExecutionPlanMetricsSet::new();
            MetricBuilder::new(&metrics).counter(ROWS, 0).add(rows);
            let told = TaskMetrics {
                pre_order_plan_metrics: vec![MetricsSet::new(), metrics.clone_inner()],
                task_metrics: MetricsSet::new(),
            };
            let key = TaskKey { query_id: Uuid::nil(), stage_id, task_number };
            reports.record(key, &worker(7000 + rows as u16), &told);
        }
        let rows: Vec<_> = reports.stage_reports(2).iter().map(|report| report.rows).collect();
        assert_eq!(rows, [3, 7]);
        assert_eq!(reports.stage_reports(1)[0].worker, worker(7005));
        assert!(reports.stage_reports(3).is_empty());
    }
}
