use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::*;

fn rewritten(sql: &str) -> SqlResult<String> {
    let mut query = Parser::new(&PostgreSqlDialect {}).try_with_sql(sql).unwrap().parse_query().unwrap();
    rewrite_query(&mut query)?;
    Ok(query.to_string())
}

#[track_caller]
fn check(sql: &str, expected: &str) {
    assert_eq!(rewritten(sql), Ok(expected.to_owned()));
}

#[test]
fn minus_binds_tighter_than_power() {
    check("SELECT -2 ^ 2", "SELECT -2 ^ 2");
    let mut query = Parser::new(&PostgreSqlDialect {}).try_with_sql("SELECT -2 ^ 2").unwrap().parse_query().unwrap();
    rewrite_query(&mut query).unwrap();
    let ast::SetExpr::Select(select) = query.body.as_ref() else { panic!("a select") };
    let ast::SelectItem::UnnamedExpr(Expr::BinaryOp { left, .. }) = &select.projection[0] else {
        panic!("power is outermost")
    };
    assert_eq!(left.to_string(), "-2");
}

#[test]
fn named_windows_are_inherited() {
    check(
        "SELECT sum(a) OVER (w ORDER BY b) FROM t WINDOW w AS (PARTITION BY c)",
        "SELECT sum(a) OVER (PARTITION BY c ORDER BY b) FROM t WINDOW w AS (PARTITION BY c)",
    );
    assert_eq!(
        rewritten("SELECT sum(a) OVER (w PARTITION BY b) FROM t WINDOW w AS (ORDER BY c)").unwrap_err().condition,
        Condition::WindowingError
    );
}

#[test]
fn special_forms_become_calls() {
    check("SELECT a SIMILAR TO 'x%'", "SELECT similar_to(a, 'x%')");
    check("SELECT a LIKE 'x!%' ESCAPE '!'", "SELECT a LIKE like_escape('x!%', '!')");
    check("SELECT a AT TIME ZONE 'utc'", "SELECT timezone('utc', a)");
    check("SELECT INTERVAL '90' DAY", "SELECT CAST('90 days' AS INTERVAL)");
    check("SELECT pg_catalog.upper(a)", "SELECT upper(a)");
    check("SELECT 1 = ANY(a)", "SELECT any_equal(a, 1)");
    check("SELECT -a, -(1), -(-a), -f(a)", "SELECT negate(a), -(1), negate((negate(a))), negate(f(a))");
}

#[test]
fn what_would_be_answered_wrongly_is_refused() {
    for sql in ["SELECT generate_series(1, 2)", "SELECT X'1f'"] {
        assert_eq!(rewritten(sql).unwrap_err().condition, Condition::FeatureNotSupported, "{sql}");
    }
}
