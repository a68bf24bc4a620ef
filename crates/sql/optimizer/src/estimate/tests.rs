//! Tests of estimates against the true row counts of small tables.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;

use super::estimate_relation;
use crate::common_subplans::OptimizedPlan;
use crate::row_estimates::{EstimatedNodeKind, RowEstimate};
use crate::test_fixtures::{TableColumns, Warehouse};

fn sales() -> Warehouse {
    let sale: TableColumns = vec![
        ("s_day", (0..4_000).map(|row| Some(1_000 + row % 400)).collect()),
        ("s_item", (0..4_000).map(|row| Some(row * 7 % 100)).collect()),
    ];
    let day: TableColumns = vec![
        ("d_id", (0..3_000).map(Some).collect()),
        ("d_year", (0..3_000).map(|day| Some(day / 200)).collect()),
        ("d_weekday", (0..3_000).map(|day| Some(day % 7)).collect()),
    ];
    Warehouse::new(&[("sale", sale), ("day", day)])
}

async fn check(sql: &str, within: f64) {
    let warehouse = sales();
    let plan = warehouse.plan(sql, true).await;
    let estimated = estimate_relation(&plan).rows;
    let actual = warehouse.rows(sql, true).await.len() as f64;
    let ratio = (estimated.max(1.0) / actual.max(1.0)).max(actual.max(1.0) / estimated.max(1.0));
    assert!(ratio <= within, "{sql}: {estimated} for {actual}\n{}", plan.display_indent());
}

#[tokio::test]
async fn filters_on_scans_are_counted_on_the_sample() {
    check("SELECT * FROM day WHERE d_year = 3 AND d_weekday < 2", 1.01).await;
    check("SELECT * FROM day WHERE d_id % 10 = 1", 1.01).await;
}

#[tokio::test]
async fn keys_meet_where_their_ranges_do() {
    // The calendar reaches far beyond the days with sales.
    check("SELECT d_weekday FROM sale, day WHERE s_day = d_id", 1.5).await;
    // The rows of a year have a range of keys.
    check("SELECT d_weekday FROM sale, day WHERE s_day = d_id AND d_year = 6", 1.5).await;
    check("SELECT d_weekday FROM sale, day WHERE s_day = d_id AND d_year = 6 AND d_weekday = 1", 2.0).await;
    check("SELECT d_weekday FROM sale, day WHERE s_day = d_id AND d_weekday = 1", 1.5).await;
}

#[tokio::test]
async fn groups_are_combinations() {
    check("SELECT s_day, count(*) FROM sale GROUP BY s_day", 1.1).await;
    check("SELECT DISTINCT s_item FROM sale WHERE s_day < 1100", 1.5).await;
}

#[tokio::test]
async fn semi_joins_keep_their_share() {
    check("SELECT * FROM sale WHERE s_day IN (SELECT d_id FROM day WHERE d_weekday = 2)", 1.5).await;
}

#[tokio::test]
async fn a_part_is_expected_to_give_what_it_would_alone() {
    let sql = "SELECT d_weekday, count(*) FROM sale, day WHERE s_day = d_id AND d_year = 6 AND s_item < 50 GROUP BY d_weekday \
               UNION ALL SELECT s_item, s_day FROM sale ORDER BY 2 LIMIT 3";
    let plan = sales().plan(sql, true).await;
    let mut parts = Vec::new();
    let walked = plan.apply(|part| {
        let of = match part {
            LogicalPlan::TableScan(_) => Some(EstimatedNodeKind::Scan),
            LogicalPlan::Filter(_) => Some(EstimatedNodeKind::Filter),
            LogicalPlan::Join(_) => Some(EstimatedNodeKind::Join),
            LogicalPlan::Aggregate(_) => Some(EstimatedNodeKind::Aggregate),
            LogicalPlan::Union(_) => Some(EstimatedNodeKind::Union),
            _ => None,
        };
        parts.extend(of.map(|of| (of, estimate_relation(part).rows)));
        Ok(TreeNodeRecursion::Continue)
    });
    walked.unwrap();
    let (mut found, mut left) = (Vec::new(), vec![OptimizedPlan { plan, shared: Vec::new() }.estimate_rows()]);
    while let Some(RowEstimate { kind: of, rows, inputs }) = left.pop() {
        found.push((of, rows));
        left.extend(inputs.into_iter().rev());
    }
    assert!(7 < found.len(), "{found:?}");
    assert_eq!(found, parts);
}
