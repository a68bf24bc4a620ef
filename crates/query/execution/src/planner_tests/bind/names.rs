use super::fixture::Fixture;

/// Returns the output names of a query, or its error.
fn names(sql: &str) -> String {
    match Fixture::small().query(sql) {
        Ok(query) => query.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(","),
        Err(error) => match error.hint {
            Some(hint) => format!("{:?}: {} / {hint}", error.condition, error.message),
            None => format!("{:?}: {}", error.condition, error.message),
        },
    }
}

#[test]
fn outputs_are_named_as_postgresql_names_them() {
    for (sql, expected) in [
        ("SELECT 1, 1, 'x', NULL", "?column?,?column?,?column?,?column?"),
        ("SELECT a, a, t.b FROM t", "a,a,b"),
        ("SELECT count(*), count(*), sum(a) FROM t", "count,count,sum"),
        ("SELECT 1::int, a::text, '1'::numeric(4,2), date '2020-01-01' FROM t", "int4,a,numeric,date"),
        ("SELECT CASE WHEN a = 1 THEN 2 END, CASE a WHEN 1 THEN 2 ELSE a END FROM t", "case,a"),
        (
            "SELECT EXISTS (SELECT 1), (SELECT max(a) FROM t), (SELECT 1), ARRAY[1], ARRAY(SELECT 1)",
            "exists,max,?column?,array,array",
        ),
        (
            "SELECT coalesce(a, 1), nullif(a, 1), upper(b), extract(year FROM date '2020-01-01') FROM t",
            "coalesce,nullif,upper,extract",
        ),
        (
            "SELECT 1 + 1, -2, a IS NULL, true, a AT TIME ZONE 'UTC' FROM (SELECT now() AS a) x",
            "?column?,?column?,?column?,bool,timezone",
        ),
        ("SELECT * FROM t JOIN u USING (a)", "a,b,n,c"),
        ("SELECT * FROM t, u", "a,b,n,a,c"),
        ("SELECT u.*, t.a FROM t, u", "a,c,a"),
        ("SELECT x.* FROM (SELECT a, a AS b FROM t) AS x (p)", "p,b"),
        ("VALUES (1, 2)", "column1,column2"),
        ("SELECT a FROM t UNION SELECT a FROM u", "a"),
        ("TABLE u", "a,c"),
        ("SELECT trim(b), substring(b FROM 1), current_date FROM t", "btrim,substring,current_date"),
    ] {
        assert_eq!(names(sql), expected, "{sql}");
    }
}

#[test]
fn names_that_mean_nothing_or_too_much_are_refused_as_postgresql_does() {
    for (sql, expected) in [
        ("SELECT x FROM t", "UndefinedColumn: column \"x\" does not exist"),
        ("SELECT t.x FROM t", "UndefinedColumn: column t.x does not exist"),
        (
            "SELECT bb FROM t",
            "UndefinedColumn: column \"bb\" does not exist / Perhaps you meant to reference the column \"t.b\".",
        ),
        ("SELECT a FROM t, u", "AmbiguousColumn: column reference \"a\" is ambiguous"),
        ("SELECT s.x FROM (SELECT a AS x, b AS x FROM t) s", "AmbiguousColumn: column reference \"x\" is ambiguous"),
        ("SELECT x.a FROM t", "UndefinedTable: missing FROM-clause entry for table \"x\""),
        ("SELECT t.a FROM t AS x", "UndefinedTable: missing FROM-clause entry for table \"t\""),
        ("SELECT 1 FROM nothing", "UndefinedTable: relation \"nothing\" does not exist"),
        ("SELECT 1 FROM public.nothing", "UndefinedTable: relation \"public.nothing\" does not exist"),
        (
            "SELECT 1 FROM other.public.t",
            "FeatureNotSupported: cross-database references are not implemented: \"other.public.t\"",
        ),
        ("SELECT 1 FROM t, t", "DuplicateAlias: table name \"t\" specified more than once"),
        ("SELECT *", "SyntaxError: SELECT * with no tables specified is not valid"),
        ("SELECT a AS x, b AS x FROM t ORDER BY x", "AmbiguousColumn: ORDER BY \"x\" is ambiguous"),
        ("SELECT a FROM t ORDER BY 2", "InvalidColumnReference: ORDER BY position 2 is not in select list"),
        ("SELECT a FROM t GROUP BY 3", "InvalidColumnReference: GROUP BY position 3 is not in select list"),
        (
            "SELECT a, b FROM t GROUP BY a",
            "GroupingError: column \"t.b\" must appear in the GROUP BY clause or be used in an aggregate function",
        ),
        ("SELECT a FROM t WHERE sum(a) > 1", "GroupingError: aggregate functions are not allowed in WHERE"),
        (
            "SELECT a FROM (SELECT a FROM t FOR SHARE) s",
            "FeatureNotSupported: FOR SHARE in a query other than a top-level SELECT is not supported",
        ),
        ("SELECT t FROM t", "FeatureNotSupported: the whole-row reference \"t\" is not supported"),
        (
            "SELECT nothing(1, 'x')",
            "UndefinedFunction: function nothing(integer, unknown) does not exist / No function matches the given name and argument types. You might need to add explicit type casts.",
        ),
        (
            "SELECT a FROM t UNION SELECT a, b FROM t",
            "SyntaxError: each UNION query must have the same number of columns",
        ),
        ("SELECT a FROM t LIMIT a", "InvalidColumnReference: argument of LIMIT must not contain variables"),
        (
            "SELECT a FROM t JOIN u USING (c)",
            "UndefinedColumn: column \"c\" specified in USING clause does not exist in left table",
        ),
    ] {
        assert_eq!(names(sql), expected, "{sql}");
    }
}

#[test]
fn plain_columns_say_which_column_of_which_table_they_are() {
    let fixture = Fixture::small();
    let query = fixture.query("SELECT b, a + 1 AS c, x.a FROM (SELECT * FROM t) x").expect("planned");
    let origins: Vec<_> = query.columns.iter().map(|column| column.column.map(|id| id.0)).collect();
    assert_eq!(origins, [Some(2), None, Some(1)]);
}
