//! Properties of exchanges: measurements of the stage that sends the rows.

use binder::ExplainPlan;
use exchange::TaskReport;

use crate::plan_node::{Property, Value};
use crate::text::milliseconds;

/// Returns the properties of a stage with this number of tasks, with the reports of its tasks.
pub(crate) fn stage_properties(
    stage: usize,
    tasks: usize,
    reports: &[TaskReport],
    plan: &ExplainPlan,
) -> Vec<Property> {
    let mut properties =
        vec![Property::new("Stage", Value::Count(stage as u64)), Property::new("Tasks", Value::Count(tasks as u64))];
    if reports.is_empty() {
        return properties;
    }
    properties.push(Property::list("Workers", reports.iter().map(|report| report.worker.authority().to_owned())));
    properties.push(Property::list("Rows per Task", reports.iter().map(|report| report.rows.to_string())));
    properties.push(Property::new("Exchanged", Value::Bytes(reports.iter().map(|report| report.bytes).sum())));
    properties.extend(skew(reports).map(|skew| Property::text("Skew", format!("{skew:.2}"))));
    if plan.timing {
        let slowest = reports.iter().map(|report| report.took).max().unwrap_or_default();
        properties.push(Property::new("Slowest Task", Value::Milliseconds(milliseconds(slowest))));
    }
    properties
}

/// Returns the ratio of the largest task's rows to the mean; `None` without rows.
#[expect(clippy::cast_precision_loss, reason = "a ratio of two digits")]
fn skew(reports: &[TaskReport]) -> Option<f64> {
    let most = reports.iter().map(|report| report.rows).max()?;
    let all: u64 = reports.iter().map(|report| report.rows).sum();
    (0 < all).then(|| most as f64 * reports.len() as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use url::Url;

    use super::*;

    #[test]
    fn skew_is_one_where_all_give_the_same() {
        let worker = Url::parse("http://127.0.0.1:7000/").expect("the URL is valid");
        let report = |rows| TaskReport { worker: worker.clone(), rows, bytes: 8 * rows, took: Duration::ZERO };
        assert_eq!(skew(&[report(5), report(5)]), Some(1.0));
        assert_eq!(skew(&[report(9), report(0), report(0)]), Some(3.0));
        assert_eq!(skew(&[report(0)]), None);
    }
}
