use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use syntax::{Statement, parse};

fn rewritten(sql: &str) -> String {
    let mut query = Parser::new(&PostgreSqlDialect {}).try_with_sql(sql).unwrap().parse_query().unwrap();
    match super::rewrite_query(&mut query) {
        Ok(()) => query.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn written_lists_become_in() {
    for (sql, expected) in [
        ("SELECT a = ANY ('{r,p}')", "SELECT a IN ('r', 'p')"),
        ("SELECT a = ANY (ARRAY['r', 'p'])", "SELECT a IN ('r', 'p')"),
        ("SELECT a <> ALL ('{1,2}'::int[])", "SELECT a NOT IN ('1'::INT, '2'::INT)"),
        ("SELECT a = ANY ('{}')", "SELECT a = ANY('{}')"),
        ("SELECT a = ANY (b)", "SELECT a = ANY(b)"),
    ] {
        assert_eq!(rewritten(sql), expected);
    }
}

#[test]
fn sets_are_unnested_lists() {
    for (sql, expected) in [
        ("SELECT generate_series(1, 3)", "SELECT unnest(generate_series_list(1, 3))"),
        (
            "SELECT * FROM generate_series(1, 3) AS s(i)",
            "SELECT * FROM (SELECT unnest(generate_series_list(1, 3)) AS s) AS s (i)",
        ),
        ("SELECT * FROM string_to_array('a', ',') s", "SELECT * FROM (SELECT string_to_array('a', ',') AS s) s"),
        (
            "SELECT * FROM unnest(ARRAY[7]) WITH ORDINALITY AS u(a, n)",
            "SELECT * FROM (SELECT unnest(ARRAY[7]) AS u, unnest(generate_subscripts_list(ARRAY[7], 1)) AS ordinality) AS u (a, n)",
        ),
        ("SELECT * FROM t, pg_catalog.unnest(t.a) x", "SELECT * FROM t, LATERAL (SELECT unnest(t.a) AS x) x"),
        ("SELECT * FROM t, unnest(o.a) x", "SELECT * FROM t, (SELECT unnest(o.a) AS x) x"),
        ("SELECT word FROM pg_get_keywords()", "SELECT word FROM pg_get_keywords"),
    ] {
        assert_eq!(rewritten(sql), expected);
    }
}

#[test]
fn unnest_of_one_array_as_two_types_is_two_calls() {
    assert_eq!(
        rewritten("SELECT unnest(a::int[]), unnest(a::text[]), unnest(a::int[]), unnest(b)"),
        "SELECT unnest(a::INT[]), unnest(coalesce(a::TEXT[])), unnest(a::INT[]), unnest(b)"
    );
    assert_eq!(
        rewritten("SELECT * FROM unnest('{1}'::int[], '{1}'::text[]) AS u (x, y)"),
        "SELECT * FROM (SELECT unnest('{1}'::INT[]) AS u, unnest(coalesce('{1}'::TEXT[])) AS u_2) AS u (x, y)"
    );
}

#[test]
fn rows_of_expandarray_are_arrays() {
    assert_eq!(
        rewritten("SELECT (information_schema._pg_expandarray(k)).n FROM i"),
        "SELECT (unnest(_pg_expandarray_list(k)))[2] FROM i"
    );
}

#[test]
fn a_collation_that_changes_nothing_goes_and_others_do_not_exist() {
    assert_eq!(rewritten("SELECT a COLLATE pg_catalog.default"), "SELECT a");
    assert_eq!(rewritten("SELECT a COLLATE \"C\""), "SELECT a");
    assert_eq!(rewritten("SELECT a COLLATE \"de_DE\""), "collation \"de_DE\" for encoding \"UTF8\" does not exist");
}

#[test]
fn an_array_of_a_query_is_a_call_around_it() {
    assert_eq!(rewritten("SELECT ARRAY(SELECT 1)"), "SELECT array_subquery((SELECT 1))");
}

#[test]
fn long_chains_of_comparisons_with_constants_are_lists() {
    let chain = |word: &str, compares: &str, constants: std::ops::Range<usize>| {
        constants.map(|number| format!("a {compares} {number}")).collect::<Vec<_>>().join(word)
    };
    let list = |constants: std::ops::Range<usize>| constants.map(|it| it.to_string()).collect::<Vec<_>>().join(", ");
    let ors = chain(" OR ", "=", 0..20);
    assert_eq!(rewritten(&format!("SELECT {ors}")), format!("SELECT a IN ({})", list(0..20)));
    let ands = chain(" AND ", "<>", 0..20);
    assert_eq!(rewritten(&format!("SELECT {ands}")), format!("SELECT a NOT IN ({})", list(0..20)));
    // Other comparisons keep their place, and are searched for nested chains.
    assert_eq!(
        rewritten(&format!("SELECT b OR ({ors}) OR a = 1.5 OR {ors} OR a = 'x' OR a = 'y' OR b = 1 OR c")),
        format!("SELECT b OR (a IN ({0})) OR a = 1.5 OR a IN ({0}) OR a = 'x' OR a = 'y' OR b = 1 OR c", list(0..20))
    );
    // The parser builds a balanced tree of this many.
    for count in [31, 32, 33, 1_000] {
        let parsed = parse(&format!("SELECT 1 WHERE b OR {}", chain(" OR ", "=", 0..count))).expect("it is a query");
        let Some(Statement::Query(mut query)) = parsed.into_iter().map(|one| one.statement).next() else {
            panic!("it is a query")
        };
        super::rewrite_query(&mut query).expect("it can be rewritten");
        assert_eq!(query.to_string(), format!("SELECT 1 WHERE b OR a IN ({})", list(0..count)));
    }
    for short in [chain(" OR ", "=", 0..15), chain(" AND ", "=", 0..20), chain(" OR ", "<>", 0..20)] {
        assert_eq!(rewritten(&format!("SELECT {short}")), format!("SELECT {short}"));
    }
    let twice = format!("SELECT ({} OR ({ors})) AND ({ors})", chain(" OR ", "=", 0..5));
    let expected = format!("SELECT ({} OR (a IN ({1}))) AND (a IN ({1}))", chain(" OR ", "=", 0..5), list(0..20));
    assert_eq!(rewritten(&twice), expected);
}
