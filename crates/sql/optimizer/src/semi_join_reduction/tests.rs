use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{Column, JoinType};
use datafusion::logical_expr::{LogicalPlanBuilder, col, lit, table_scan};

use super::key_propagation::{Side, for_each_join, propagate_keys};

/// Returns a scan of a table with the columns `k` and `v`.
fn table(name: &str) -> LogicalPlanBuilder {
    let schema = Schema::new(vec![Field::new("k", DataType::Int64, true), Field::new("v", DataType::Int64, true)]);
    table_scan(Some(name), &schema, None).expect("it has columns")
}

/// Joins `left` with the table `right` on equality of these columns.
fn joined(left: LogicalPlanBuilder, right: &str, kind: JoinType, own: &str, other: &str) -> LogicalPlanBuilder {
    let right = table(right).build().expect("it is a plan");
    left.join(right, kind, (vec![Column::from(own)], vec![Column::from(other)]), None).expect("they join")
}

/// Returns the other targets of the keys of the lowest join: the index of a join, its side and the column.
fn reached_from_lowest(plan: LogicalPlanBuilder, columns: [&str; 2]) -> Vec<(usize, Side, String)> {
    let plan = plan.build().expect("it is a plan");
    let mut found = Vec::new();
    let [one, other] = columns.map(Column::from);
    for_each_join(&plan, &mut |_, _, above| {
        let targets = propagate_keys([&one, &other], above).into_iter();
        found = targets.map(|(target, _)| (target.join, target.side, target.column.to_string())).collect();
        Ok(())
    })
    .expect("nothing fails");
    found
}

#[test]
fn keys_propagate_to_equal_columns_of_joins_above() {
    let ab = || joined(table("a"), "b", JoinType::Inner, "a.k", "b.k");
    let abc = joined(ab(), "c", JoinType::Inner, "b.k", "c.k");
    let right = |join: usize, column: &str| (join, Side::Right, column.to_owned());
    assert_eq!(reached_from_lowest(abc, ["a.k", "b.k"]), [right(0, "c.k")]);
    // Keys propagate over several joins, by any of the equal columns, through filters and outer joins that add NULLs.
    let chain = joined(ab(), "c", JoinType::Inner, "a.k", "c.k");
    let chain = chain.filter(col("c.v").gt(lit(3))).expect("a condition");
    let chain = joined(joined(chain, "d", JoinType::Left, "c.v", "d.v"), "e", JoinType::LeftSemi, "c.k", "e.k");
    assert_eq!(reached_from_lowest(chain, ["a.k", "b.k"]), [right(2, "c.k"), right(0, "e.k")]);
    // Keys do not propagate to a side whose rows come out without a partner, by other columns, or out of a subquery,
    // which renames columns.
    for kind in [JoinType::Full, JoinType::Right] {
        assert_eq!(reached_from_lowest(joined(ab(), "c", kind, "b.k", "c.k"), ["a.k", "b.k"]), []);
    }
    assert_eq!(reached_from_lowest(joined(ab(), "c", JoinType::Inner, "b.v", "c.k"), ["a.k", "b.k"]), []);
    let named = ab().project([col("a.k")]).and_then(|plan| plan.alias("s")).expect("a subquery");
    assert_eq!(reached_from_lowest(joined(named, "c", JoinType::Inner, "s.k", "c.k"), ["a.k", "b.k"]), []);
    // A semi-join does not give the columns of its right side to joins above it.
    let semi = table("b").join(
        ab().build().expect("it is a plan"),
        JoinType::LeftSemi,
        (vec![Column::from("b.v")], vec![Column::from("a.v")]),
        None,
    );
    let above = joined(semi.expect("they join"), "c", JoinType::Inner, "b.k", "c.k");
    assert_eq!(reached_from_lowest(above, ["a.k", "b.k"]), []);
}
