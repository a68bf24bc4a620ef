//! Tests of the plan cache: cached plans, their users and their lifetime.

use std::sync::Arc;

use binder::{QueryPlan, StatementPlan};
use catalog::CatalogState;
use session_context::StatementContext;
use settings::Settings;
use types::CommitTs;

use super::{CACHE_BYTES_MAX, EXPRESSION_NODE_BYTES, PLAN_BYTES_MAX, PLANS_MAX, QUERY_TEXT_BYTES_MAX};
use crate::tests::fixture::Fixture;

const T: &str = "CREATE TABLE t (id int, name text, d date); CREATE VIEW v AS SELECT id FROM t WHERE d = 'today'; \
                 CREATE SEQUENCE s";

fn query(fixture: &Fixture, sql: &str, context: &Arc<StatementContext>) -> QueryPlan {
    let parsed = fixture.planner.parse(sql).unwrap().remove(0);
    match fixture.planner.plan(&parsed, &[], context).unwrap() {
        StatementPlan::Query(query) => query,
        other => panic!("{sql} is planned as {other:?}"),
    }
}

/// Returns whether a query gets the plan that was made in another context.
fn is_kept(fixture: &Fixture, sql: &str, change: impl FnOnce(&mut StatementContext)) -> bool {
    let first = query(fixture, sql, &fixture.context);
    let mut context = StatementContext::clone(&fixture.context);
    change(&mut context);
    query(fixture, sql, &Arc::new(context)).shares_optimized_plan(&first)
}

#[test]
fn plans_that_mean_the_same_for_every_statement_are_kept() {
    let fixture = Fixture::of(T);
    for (sql, expected) in [
        ("SELECT id FROM t WHERE d < '2024-01-31' AND name LIKE 'a%'", true),
        ("SELECT count(*), sum(id) OVER () FROM t WHERE id IN (SELECT id FROM t) GROUP BY id", true),
        ("SELECT date '2024-01-31' - 1, timestamp 'epoch', timestamptz '2024-01-31 10:00'", true),
        ("SELECT 't'::regclass", true),
        // Plans that depend on the time, in any form.
        ("SELECT id FROM t WHERE d < now()", false),
        ("SELECT id FROM t WHERE d < current_date", false),
        ("SELECT id FROM t WHERE d < 'today'", false),
        ("SELECT id FROM t WHERE d < ' Tomorrow '", false),
        ("SELECT timestamptz 'now'", false),
        ("SELECT '{now}'::timestamp[]", false),
        ("SELECT id FROM v", false),
        ("SELECT name::date FROM t", false),
        // Plans that depend on randomness, the session or sequences, or read system tables or lock rows.
        ("SELECT random()", false),
        ("SELECT id FROM t ORDER BY random()", false),
        ("SELECT current_user", false),
        ("SELECT nextval('s')", false),
        ("SELECT relname FROM pg_class", false),
        ("SELECT id FROM t FOR UPDATE", false),
        ("SELECT * FROM generate_series(1, 3)", false),
    ] {
        assert_eq!(is_kept(&fixture, sql, |_| ()), expected, "{sql}");
    }
    let of_parameter = query(&fixture, "SELECT id FROM t WHERE id = $1", &fixture.context);
    assert!(!of_parameter.shares_optimized_plan(&of_parameter));
}

#[test]
fn plans_hold_for_the_same_rows_role_and_settings() {
    let fixture = Fixture::of(T);
    let sql = "SELECT id FROM t";
    let settings = |name: &'static str, value: &'static str| {
        move |context: &mut StatementContext| {
            let mut settings = Settings::clone(&context.settings);
            settings.set(name, value).unwrap();
            context.settings = Arc::new(settings);
        }
    };
    assert!(is_kept(&fixture, sql, |context| context.backend_pid += 1));
    assert!(!is_kept(&fixture, sql, settings("search_path", "public")));
    assert!(!is_kept(&fixture, sql, settings("timezone", "Asia/Tokyo")));
    assert!(!is_kept(&fixture, sql, settings("kiln.optimizer", "off")));
    assert!(!is_kept(&fixture, sql, settings("plan_cache_mode", "force_custom_plan")));
    let mut custom = StatementContext::clone(&fixture.context);
    settings("plan_cache_mode", "force_custom_plan")(&mut custom);
    let custom = Arc::new(custom);
    assert!(!query(&fixture, sql, &custom).shares_optimized_plan(&query(&fixture, sql, &custom)));
    assert!(!is_kept(&fixture, sql, |context| context.database.push('2')));
    // The same rows, but of another commit, or of a transaction's own snapshot.
    let other = |context: &StatementContext| Arc::new(CatalogState::clone(&context.snapshot));
    assert!(!is_kept(&fixture, sql, |context| context.snapshot = other(context)));
    assert!(!is_kept(&fixture, sql, |context| (context.snapshot, context.commit) = (other(context), CommitTs(2))));
}

#[test]
fn the_plan_that_was_not_asked_for_longest_makes_room() {
    let fixture = Fixture::of(T);
    let text = |number: usize| format!("SELECT id + {number} FROM t");
    let ask = |number: usize| query(&fixture, &text(number), &fixture.context);
    let (first, second) = (ask(0), ask(1));
    for number in 2..PLANS_MAX {
        ask(number);
    }
    assert!(ask(0).shares_optimized_plan(&first));
    ask(PLANS_MAX);
    assert!(ask(0).shares_optimized_plan(&first));
    assert!(!ask(1).shares_optimized_plan(&second));
}

#[test]
fn large_plans_make_room_for_others() {
    let fixture = Fixture::of(T);
    let conditions = |first: usize, count: usize| {
        let conditions = (first..first + count).map(|number| format!("id < {number}")).collect::<Vec<_>>();
        format!("SELECT id FROM t WHERE {}", conditions.join(" OR "))
    };
    let union = ["SELECT id FROM t"; 2_000].join(" UNION ALL ");
    assert!(union.len() <= QUERY_TEXT_BYTES_MAX && !is_kept(&fixture, &union, |_| ()));
    for number in 0..30 {
        let sql = conditions(number, PLAN_BYTES_MAX / EXPRESSION_NODE_BYTES / 8);
        assert!(sql.len() <= QUERY_TEXT_BYTES_MAX && is_kept(&fixture, &sql, |_| ()), "{number}");
        let kept = fixture.planner.plan_cache.0.lock();
        assert_eq!(kept.bytes, kept.plans.values().map(|plan| plan.bytes).sum::<usize>());
        assert!(kept.bytes <= CACHE_BYTES_MAX, "{} bytes after {number}", kept.bytes);
    }
    let count = fixture.planner.plan_cache.0.lock().plans.len();
    assert!((10..30).contains(&count), "{count}");
}
