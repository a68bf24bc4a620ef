//! Tests of the grammar.

use sqlparser::ast::{Expr, Value};
use types::Condition;

use super::statement::{AlterAction, FetchDirection, SessionStatement, Statement, TableSource};
use super::{ParsedStatement, parse, parse_stored_expr, to_sql_text};

fn one(sql: &str) -> Statement {
    let mut parsed = parse(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    assert_eq!(parsed.len(), 1, "{sql}");
    match parsed.remove(0).statement {
        Statement::Unsupported(error) => panic!("{sql}: {error:?}"),
        other => other,
    }
}

/// Returns a query as `sqlparser` prints it.
fn shown(sql: &str) -> String {
    match one(sql) {
        Statement::Query(query) => query.to_string(),
        other => panic!("{sql} is {other:?}"),
    }
}

fn expr(sql: &str) -> String {
    shown(&format!("SELECT {sql}")).trim_start_matches("SELECT ").to_owned()
}

fn error(sql: &str) -> (String, Option<u32>) {
    let error = parse(sql).map(|parsed| panic!("{sql} is {parsed:?}")).unwrap_err();
    (error.message, error.position)
}

fn refused(sql: &str) -> String {
    match parse(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}")).remove(0).statement {
        Statement::Unsupported(error) => error.message,
        other => panic!("{sql} is {other:?}"),
    }
}

fn command(sql: &str) -> SessionStatement {
    match one(sql) {
        Statement::Session(command) => *command,
        other => panic!("{sql} is {other:?}"),
    }
}

#[test]
fn statements_have_their_text_and_place() {
    let parsed = parse("-- first\nSELECT 'ä' ; ;\n select 2 -- last\n").unwrap();
    let texts: Vec<(&str, usize)> =
        parsed.iter().map(|ParsedStatement { text, offset, .. }| (text.as_str(), *offset)).collect();
    assert_eq!(texts, [("SELECT 'ä'", 9), ("select 2", 25)]);
    assert!(parse(" ; -- nothing\n;").unwrap().is_empty());
}

#[test]
fn operators_bind_as_in_postgresql() {
    let cases = [
        ("-2 ^ 2", "-2 ^ 2"),
        ("1 + 2 * 3 - 4", "1 + 2 * 3 - 4"),
        ("NOT a = b AND c OR d", "NOT a = b AND c OR d"),
        ("a || b || c", "a || b || c"),
        ("-1::int", "-1::INT"),
        ("a BETWEEN 1 AND 2 AND b", "a BETWEEN 1 AND 2 AND b"),
        ("a IS NOT NULL = b", "a IS NOT NULL = b"),
        ("x AT TIME ZONE 'UTC' + y", "x AT TIME ZONE 'UTC' + y"),
        ("a ISNULL", "a IS NULL"),
        ("a OPERATOR(pg_catalog.~) 'b' COLLATE pg_catalog.default", "a ~ 'b' COLLATE pg_catalog.default"),
        ("x = ANY (ARRAY[1, 2])", "x = ANY(ARRAY[1, 2])"),
        ("x <> ALL ($1)", "x <> ALL($1)"),
        ("NOT EXISTS (SELECT 1)", "NOT EXISTS (SELECT 1)"),
    ];
    for (sql, printed) in cases {
        assert_eq!(expr(sql), printed, "{sql}");
    }
    assert_eq!(error("SELECT a = b = c"), ("syntax error at or near \"=\"".to_owned(), Some(14)));
    assert_eq!(error("SELECT a LIKE b LIKE c").1, Some(17));
}

#[test]
fn minus_binds_tighter_than_power() {
    let Statement::Query(query) = one("SELECT -2 ^ 2") else { panic!() };
    let debug = format!("{query:?}");
    let (power, minus) = (debug.find("PGExp").unwrap(), debug.find("Minus").unwrap());
    // In the debug text, the operator of a node follows its left operand.
    assert!(minus < power, "{debug}");
}

#[test]
fn expressions() {
    let same = [
        "a.b.c",
        "t.a[1].b",
        "a[1:2]",
        "(a).b",
        "count(*)",
        "count(DISTINCT a)",
        "array_agg(a ORDER BY b DESC)",
        "sum(a) FILTER (WHERE b > 0) OVER (PARTITION BY c ORDER BY d ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY a)",
        "CASE WHEN a THEN 1 ELSE 2 END",
        "CASE a WHEN 1 THEN 'x' END",
        "CAST(a AS NUMERIC(10,2))",
        "a::TIMESTAMP WITH TIME ZONE",
        "a::INT[]",
        "DATE '2020-01-01'",
        "INTERVAL '1' DAY",
        "INTERVAL '1' DAY TO SECOND",
        "(SELECT 1)",
        "(1, 2)",
        "a IN (1, 2)",
        "a IN (SELECT 1)",
        "EXTRACT(year FROM a)",
        "POSITION(a IN b)",
        "SUBSTRING(a FROM 1 FOR 2)",
        "substring(a, 1, 2)",
        "TRIM(BOTH 'x' FROM a)",
        "OVERLAY(a PLACING b FROM 1)",
        "coalesce(a, b)",
        "current_date",
        "a IS DISTINCT FROM b",
        "left(a, 2)",
    ];
    for sql in same {
        assert_eq!(expr(sql), sql);
    }
    let changed = [
        ("timestamptz '2020-01-01'", "TIMESTAMPTZ '2020-01-01'"),
        ("time", "time"),
        ("((1))", "(1)"),
        ("ARRAY[[1, 2], [3]]", "ARRAY[ARRAY[1, 2], ARRAY[3]]"),
        ("1e2", "100."),
        ("1.5E-3", "0.0015"),
        ("12.345e1", "123.45"),
        ("125e-1", "12.5"),
        ("a[:2]", "a[1:2]"),
        ("a LIKE ANY (b)", "a ~~ ANY(b)"),
        ("a BETWEEN SYMMETRIC 1 AND 2", "(a BETWEEN 1 AND 2 OR a BETWEEN 2 AND 1)"),
        ("((SELECT 1) + 1)", "((SELECT 1) + 1)"),
        ("((SELECT 1) UNION (SELECT 2))", "((SELECT 1) UNION (SELECT 2))"),
        ("a IN ((SELECT 1), 2)", "a IN ((SELECT 1), 2)"),
        ("\"Foo\".BAR", "\"Foo\".bar"),
        ("double precision '1'", "DOUBLE PRECISION '1'"),
        ("pg_catalog.int4 '1'", "INT4 '1'"),
        ("x::\"char\"", "x::\"char\""),
        ("x::pg_catalog.regclass", "x::REGCLASS"),
    ];
    for (sql, printed) in changed {
        assert_eq!(expr(sql), printed, "{sql}");
    }
    assert_eq!(error("SELECT 1 year").0, "syntax error at or near \"year\"");
}

#[test]
fn queries() {
    let same = [
        "SELECT * FROM t",
        "SELECT t.*, s.t.a AS b FROM s.t AS t WHERE a = 1 GROUP BY a HAVING count(*) > 1 ORDER BY a DESC NULLS LAST LIMIT 1 OFFSET 2",
        "SELECT DISTINCT ON (a) b FROM t",
        "SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3",
        "(SELECT 1) UNION (SELECT 2) ORDER BY 1",
        "VALUES (1, 2), (3, 4)",
        "WITH RECURSIVE a (x) AS (SELECT 1) SELECT * FROM a",
        "SELECT * FROM a INNER JOIN b ON a.x = b.x LEFT OUTER JOIN c USING(x) CROSS JOIN d",
        "SELECT * FROM a NATURAL INNER JOIN b",
        "SELECT * FROM (SELECT 1) AS a (x)",
        "SELECT * FROM (a INNER JOIN b ON true) AS j",
        "SELECT * FROM generate_series(1, 3) AS g (i)",
        "SELECT * FROM UNNEST(x) WITH ORDINALITY AS u",
        "SELECT * FROM a, LATERAL (SELECT a.x) AS b",
        "SELECT a FROM t GROUP BY ROLLUP (a, b), CUBE (c)",
        "SELECT a FROM t GROUP BY GROUPING SETS ((a, b), (a), ())",
        "SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY a)",
    ];
    for sql in same {
        assert_eq!(shown(sql), sql);
    }
    let changed = [
        ("TABLE t", "SELECT * FROM t"),
        ("SELECT a FROM t FETCH FIRST 3 ROWS ONLY", "SELECT a FROM t LIMIT 3"),
        ("SELECT a FROM t OFFSET 1 LIMIT ALL", "SELECT a FROM t OFFSET 1"),
        ("SELECT a FROM t LIMIT $1", "SELECT a FROM t LIMIT $1"),
        ("SELECT * FROM ONLY t", "SELECT * FROM t"),
        ("SELECT * FROM a JOIN b JOIN c ON y ON x", "SELECT * FROM a INNER JOIN (b INNER JOIN c ON y) ON x"),
        ("SELECT * FROM ((SELECT 1) a JOIN b ON true)", "SELECT * FROM ((SELECT 1) a INNER JOIN b ON true)"),
        ("SELECT * FROM ((SELECT 1) UNION (SELECT 2)) x", "SELECT * FROM ((SELECT 1) UNION (SELECT 2)) x"),
        ("SELECT * FROM ((SELECT 1)) x", "SELECT * FROM ((SELECT 1)) x"),
        ("SELECT a FROM t GROUP BY ()", "SELECT a FROM t GROUP BY GROUPING SETS (())"),
        ("SELECT a FROM t GROUP BY a, ()", "SELECT a FROM t GROUP BY a"),
        ("SELECT a b, c FROM t d", "SELECT a AS b, c FROM t d"),
        (
            "SELECT a FROM t GROUP BY GROUPING SETS (ROLLUP (a, b), c)",
            "SELECT a FROM t GROUP BY GROUPING SETS ((a, b), (a), (), (c))",
        ),
    ];
    for (sql, printed) in changed {
        assert_eq!(shown(sql), printed, "{sql}");
    }
}

#[test]
fn what_postgresql_does_not_parse_is_an_error_where_it_stops() {
    let cases = [
        ("SELEC 1", "syntax error at or near \"SELEC\"", 1),
        ("SELECT 1 FROM", "syntax error at end of input", 14),
        ("SELECT 'a' 'b'", "syntax error at or near \"'b'\"", 12),
        ("SELECT a FROM t WHERE", "syntax error at end of input", 22),
        ("SELECT * FROM t LIMIT 1, 2", "LIMIT #,# syntax is not supported", 24),
        ("SELECT (1", "syntax error at end of input", 10),
        ("SELECT 1)", "syntax error at or near \")\"", 9),
        ("SELECT {1}", "syntax error at or near \"{\"", 8),
        ("SELECT select", "syntax error at or near \"select\"", 8),
        ("SELECT 1; SELECT FROM WHERE", "syntax error at or near \"WHERE\"", 23),
        ("SELECT a b c", "syntax error at or near \"c\"", 12),
        ("SELECT TOP 1 a FROM t", "syntax error at or near \"1\"", 12),
        ("SELECT a FROM t QUALIFY x", "syntax error at or near \"x\"", 25),
        ("VALUES (1), (2, 3)", "VALUES lists must all be the same length", 14),
        ("SELECT * FROM (t)", "syntax error at or near \")\"", 17),
        ("CREATE TABLE t (a int AUTO_INCREMENT)", "syntax error at or near \"AUTO_INCREMENT\"", 23),
        ("INSERT INTO t VALUES (1,)", "syntax error at or near \")\"", 25),
    ];
    for (sql, message, position) in cases {
        assert_eq!(error(sql), (message.to_owned(), Some(position)), "{sql}");
    }
}

#[test]
fn deep_nesting_is_an_error_and_long_chains_are_not() {
    let nested = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(parse(&nested).unwrap_err().condition, Condition::StatementTooComplex);
    let calls = format!("SELECT {}1{}", "f(".repeat(5_000), ")".repeat(5_000));
    assert_eq!(parse(&calls).unwrap_err().condition, Condition::StatementTooComplex);
    let ors = vec!["a = 1"; 20_000].join(" OR ");
    assert!(parse(&format!("SELECT {ors}")).is_ok());
    let sum = vec!["1"; 500].join(" + ");
    assert!(parse(&format!("SELECT {sum}")).is_ok());
    // Neither the nesting depth nor the length is large, but the tree is too high.
    let high = (0..300).fold("1".to_owned(), |inner, _| format!("({inner}){}", " + 1".repeat(20)));
    assert_eq!(parse(&format!("SELECT {high}")).unwrap_err().condition, Condition::StatementTooComplex);
    for piece in [" UNION SELECT 1", " UNION ALL SELECT 1"] {
        assert!(parse(&format!("SELECT 1{}", piece.repeat(20_000))).is_ok(), "{piece}");
    }
    for piece in ["::int", " IS NULL", " EXCEPT SELECT 1", " INTERSECT SELECT 1"] {
        let high = format!("SELECT 1{}", piece.repeat(100_000));
        assert_eq!(parse(&high).unwrap_err().condition, Condition::StatementTooComplex, "{piece}");
    }
    // What is copied doubles at each level.
    let doubled = |levels| (0..levels).fold("1".to_owned(), |inner, _| format!("({inner} BETWEEN SYMMETRIC 0 AND 1)"));
    assert!(parse(&format!("SELECT {}", doubled(10))).is_ok());
    assert_eq!(parse(&format!("SELECT {}", doubled(100))).unwrap_err().condition, Condition::StatementTooComplex);
    for function in ["substring", "overlay"] {
        let nested = (0..100).fold("a".to_owned(), |inner, _| format!("{function}({inner}, 1)"));
        assert!(parse(&format!("SELECT {nested}")).is_ok(), "the first argument is parsed once at each level");
    }
    for piece in ["(SELECT ", "CASE WHEN ", "NOT ", "- ", "ARRAY[", "EXISTS (SELECT ", "CAST("] {
        let high = format!("SELECT {}", piece.repeat(100_000));
        assert_eq!(parse(&high).unwrap_err().condition, Condition::StatementTooComplex, "{piece}");
    }
}

#[test]
fn tables() {
    let Statement::CreateTable(table) =
        one("CREATE TABLE IF NOT EXISTS s.t (a int PRIMARY KEY, b varchar(10) NOT NULL DEFAULT 'x' CHECK (b <> ''), \
         c numeric(10,2) REFERENCES u (v) ON DELETE CASCADE, CONSTRAINT k UNIQUE (a, b), FOREIGN KEY (a) REFERENCES w, \
         LIKE z INCLUDING ALL, d time) DISTRIBUTE ON (a) SORT ON (b DESC, c)")
    else {
        panic!()
    };
    assert!(table.if_not_exists && table.distribution.is_some() && table.order.is_some());
    let TableSource::Columns { columns, like_tables, constraints } = table.source else { panic!() };
    assert_eq!((columns.len(), like_tables.len(), constraints.len()), (4, 1, 2));
    assert_eq!(columns[1].constraints.len(), 3);
    assert_eq!(like_tables[0].position, 3);
}

#[test]
fn tables_from_queries() {
    let with_data = |sql: &str| match one(sql) {
        Statement::CreateTable(table) => match table.source {
            TableSource::Query { column_names, with_data, .. } => {
                (column_names.len(), with_data, table.distribution.is_some())
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(with_data("CREATE TABLE t AS SELECT 1"), (0, true, false));
    assert_eq!(with_data("CREATE TABLE t (a, b) AS VALUES (1, 2) WITH NO DATA"), (2, false, false));
    assert_eq!(with_data("CREATE TABLE t DISTRIBUTE RANDOM AS SELECT * FROM x"), (0, true, true));
    assert_eq!(with_data("CREATE TABLE t AS SELECT * FROM x DISTRIBUTE REPLICATE"), (0, true, true));
    assert_eq!(with_data("SELECT a INTO t FROM x"), (0, true, false));
    assert_eq!(with_data("SELECT a INTO t FROM x UNION SELECT 2"), (0, true, false));
    let message = "SELECT ... INTO is not allowed here".to_owned();
    assert_eq!(error("SELECT (SELECT 1 INTO t)"), (message.clone(), Some(23)));
    assert_eq!(error("INSERT INTO t SELECT 1 INTO u"), (message, Some(29)));
}

#[test]
fn alterations() {
    let actions = |sql: &str| match one(sql) {
        Statement::AlterTable(alter) => alter.actions,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        actions(
            "ALTER TABLE t ADD COLUMN a int DEFAULT 1 NOT NULL, ADD b text, DROP COLUMN IF EXISTS c CASCADE, ALTER d SET DEFAULT 2, \
             ALTER COLUMN d DROP NOT NULL, ALTER d TYPE bigint USING d::bigint, ADD CONSTRAINT k CHECK (a > 0), \
             DROP CONSTRAINT k, OWNER TO CURRENT_USER, SET DISTRIBUTE ON (a), SET SORT ON (a), SET WITHOUT CLUSTER"
        )
        .len(),
        12
    );
    assert!(matches!(actions("ALTER TABLE t RENAME a TO b")[..], [AlterAction::RenameColumn { .. }]));
    assert!(matches!(actions("ALTER VIEW v RENAME TO w")[..], [AlterAction::RenameTo(_)]));
    one("ALTER ROLE r WITH LOGIN PASSWORD 'x' VALID UNTIL '2030-01-01'");
    one("ALTER ROLE r SET search_path TO a, b");
    one("ALTER SCHEMA s OWNER TO r");
    one("ALTER DATABASE kiln SET timezone TO 'UTC'");
}

#[test]
fn commands() {
    assert!(
        matches!(command("SET search_path = a, \"B\", c"), SessionStatement::Set { value: Some(value), .. } if value == "a, \"B\", c")
    );
    assert!(matches!(command("SET LOCAL statement_timeout TO '5s'"), SessionStatement::Set { local: true, .. }));
    assert!(matches!(command("SET TIME ZONE 'Europe/Rome'"), SessionStatement::Set { name, .. } if name == "TimeZone"));
    assert!(matches!(command("SET x.y = -1.5"), SessionStatement::Set { value: Some(value), .. } if value == "-1.5"));
    assert!(matches!(command("SET a TO DEFAULT"), SessionStatement::Set { value: None, .. }));
    assert!(matches!(
        command("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"),
        SessionStatement::SetTransaction { session: true, .. }
    ));
    assert!(matches!(
        command("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"),
        SessionStatement::SetTransaction { .. }
    ));
    assert!(matches!(command("SET ROLE NONE"), SessionStatement::SetRole { role: None, .. }));
    assert!(matches!(command("RESET ALL"), SessionStatement::Reset(None)));
    assert!(matches!(command("SHOW transaction isolation level"), SessionStatement::Show(Some(_))));
    assert!(matches!(command("BEGIN READ ONLY ISOLATION LEVEL SERIALIZABLE"), SessionStatement::Begin(_)));
    assert!(matches!(command("END AND CHAIN"), SessionStatement::Commit { chain: true }));
    assert!(matches!(command("ROLLBACK TO SAVEPOINT a"), SessionStatement::RollbackTo(_)));
    let directions = [
        ("FETCH c", FetchDirection::Forward(1)),
        ("FETCH NEXT FROM c", FetchDirection::Forward(1)),
        ("FETCH -3 c", FetchDirection::Forward(-3)),
        ("FETCH ALL IN c", FetchDirection::ForwardAll),
        ("FETCH BACKWARD 2 c", FetchDirection::Forward(-2)),
        ("FETCH ABSOLUTE -1 FROM c", FetchDirection::Absolute(-1)),
        ("FETCH next", FetchDirection::Forward(1)),
    ];
    for (sql, wanted) in directions {
        assert!(matches!(command(sql), SessionStatement::Fetch { direction, .. } if direction == wanted), "{sql}");
    }
    assert!(
        matches!(command("DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT 1"), SessionStatement::Declare(declared) if declared.hold)
    );
    assert!(
        matches!(command("PREPARE p (int, text) AS SELECT $1, $2"), SessionStatement::Prepare { types, .. } if types.len() == 2)
    );
    assert!(
        matches!(command("EXECUTE p (1, 'x')"), SessionStatement::Execute { arguments, .. } if arguments.len() == 2)
    );
    assert!(
        matches!(command("VACUUM (FULL, ANALYZE) t"), SessionStatement::Maintain { command_tag: "VACUUM", tables } if tables.len() == 1)
    );
    assert!(
        matches!(command("ANALYZE VERBOSE s.t (a), u"), SessionStatement::Maintain { command_tag: "ANALYZE", tables } if tables.len() == 2)
    );
}

#[test]
fn copies() {
    let options = |sql: &str| match one(sql) {
        Statement::Copy(copy) => copy.options.iter().map(|option| option.name.value.clone()).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        options("COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER match, FORCE_NULL (a), DELIMITER E'\\t')").len(),
        4
    );
    assert_eq!(
        options("COPY t FROM '/x' CSV HEADER QUOTE AS '\"' FORCE QUOTE *"),
        ["format", "header", "quote", "force_quote"]
    );
    assert_eq!(options("COPY (SELECT 1) TO STDOUT (FORMAT binary)"), ["format"]);
    assert_eq!(options("COPY BINARY t TO STDOUT"), ["format"]);
    one("COPY t FROM STDIN WHERE a > 1");
}

#[test]
fn others() {
    one("INSERT INTO t AS x (a, b) VALUES (1, DEFAULT) ON CONFLICT (a) DO NOTHING");
    one("INSERT INTO t (SELECT 1)");
    one("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a");
    one("INSERT INTO t DEFAULT VALUES");
    one("EXPLAIN (ANALYZE, FORMAT json, COSTS off) SELECT 1");
    one("EXPLAIN ANALYZE VERBOSE SELECT 1");
    one("EXPLAIN (SELECT 1)");
    one("CREATE OR REPLACE VIEW v (a) AS SELECT 1");
    one("CREATE SCHEMA IF NOT EXISTS s AUTHORIZATION CURRENT_USER");
    one("CREATE USER u WITH PASSWORD 'x' CREATEDB CONNECTION LIMIT 3");
    one("DROP TABLE IF EXISTS a, s.b CASCADE");
    one("DROP INDEX IF EXISTS a, s.b");
    one("TRUNCATE TABLE ONLY a, b RESTART IDENTITY CASCADE");
    one("COMMENT ON COLUMN s.t.c IS 'x'");
    one("COMMENT ON CONSTRAINT k ON t IS NULL");
}

#[test]
fn text_is_read_back_as_the_same_tree() {
    let expressions = [
        "'it''s'",
        "E'two '' quotes: \\'\\''",
        "E'back\\\\slash and quote \\' and\\nline'",
        "''''''",
        "a > 1 AND NOT (b LIKE 'x\\%' ESCAPE '!') OR c BETWEEN SYMMETRIC 1 AND 2",
        "\"Odd name\".\"sel\"\"ect\" || -1::numeric(10,2) ^ 2",
        "CASE WHEN a IS NULL THEN interval '1' day ELSE timestamptz '2020-01-01' - now() END",
        "x = ANY ('{a,b}'::text[]) AND (SELECT max(b) FILTER (WHERE c) FROM t) IN (1, 2)",
        "trim(leading 'x' from a) || substring(a from 1 for 2) || extract(year from b) || a[1] || (a).b",
        "double precision '1.5' + cast(a as \"char\")::int4[]",
    ];
    for text in expressions {
        let expr = parse_stored_expr(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let printed = to_sql_text(&expr);
        assert_eq!(
            to_sql_text(&parse_stored_expr(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"))),
            printed,
            "{text}"
        );
    }
    for content in ["it's", "''", "\\'", "a\\", "'", "\\''x", "new\nline'' "] {
        let literal = format!("E'{}'", content.replace('\\', "\\\\").replace('\'', "\\'"));
        let Ok(Expr::Value(value)) = parse_stored_expr(&to_sql_text(&parse_stored_expr(&literal).unwrap())) else {
            panic!("{content}")
        };
        assert_eq!(value.value, Value::SingleQuotedString(content.to_owned()));
    }
}

#[test]
fn changes() {
    let Statement::Update(update) =
        one("WITH w AS (SELECT 1) UPDATE ONLY s.t AS x SET a = 1, (b, c) = ROW(DEFAULT, 2) \
         FROM u JOIN v USING (k), w WHERE true RETURNING *, a b")
    else {
        panic!("UPDATE is one");
    };
    assert_eq!(
        (update.target.name.to_string(), update.target.alias.unwrap().value),
        ("s.t".to_owned(), "x".to_owned())
    );
    assert_eq!((update.assignments.len(), update.from.len(), update.returning.unwrap().items.len()), (2, 2, 2));
    let Statement::Delete(delete) = one("DELETE FROM t x USING u WHERE x.a = u.a") else { panic!("DELETE is one") };
    assert_eq!((delete.using.len(), delete.condition.is_some()), (1, true));
    let Statement::Merge(merge) = one("MERGE INTO t USING s ON t.a = s.a WHEN MATCHED AND s.b THEN UPDATE SET c = 1 \
         WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY TARGET THEN INSERT (a) VALUES (DEFAULT) \
         WHEN NOT MATCHED BY SOURCE THEN DO NOTHING RETURNING t.a")
    else {
        panic!("MERGE is one");
    };
    assert_eq!(merge.clauses.len(), 4);
    for (sql, at) in [
        ("UPDATE t SET", None),
        ("UPDATE t SET a", None),
        ("UPDATE t SET a = 1 FROM", None),
        ("DELETE t", Some("t")),
        ("MERGE INTO t USING s ON true", None),
        ("MERGE INTO t USING s ON true WHEN NOT MATCHED THEN DELETE", Some("DELETE")),
    ] {
        let message = at.map_or_else(
            || "syntax error at end of input".to_owned(),
            |at| format!("syntax error at or near \"{at}\""),
        );
        assert_eq!(error(sql).0, message, "{sql}");
    }
}

#[test]
fn what_kiln_lacks_is_refused_by_name() {
    let cases = [
        ("UPDATE t SET a[1] = 1", "assigning to an element of an array is not supported"),
        ("DELETE FROM t WHERE CURRENT OF c", "WHERE CURRENT OF is not supported"),
        ("WITH w AS (DELETE FROM t RETURNING a) SELECT 1", "a data-modifying statement in WITH is not supported"),
        ("GRANT ALL ON t TO u", "GRANT is not supported"),
        ("CREATE INDEX i ON t USING gin (a)", "an index of the access method gin is not supported"),
        ("CREATE INDEX i ON t (lower(a))", "an expression in an index is not supported"),
        ("CREATE INDEX i ON t (a) WHERE b", "WHERE of an index is not supported"),
        ("CREATE TABLE t (a int CHECK (a > 0) NOT ENFORCED)", "a CHECK that is not enforced is not supported"),
        ("CREATE DOMAIN d AS int", "CREATE DOMAIN is not supported"),
        ("LISTEN x", "LISTEN is not supported"),
    ];
    for (sql, message) in cases {
        assert_eq!(refused(sql), message, "{sql}");
    }
    // A statement after a refused one is parsed.
    assert_eq!(parse("UPDATE t SET a = ';'; SELECT 1").unwrap().len(), 2);
}

/// The names of types in `docs/reference/types.md` are those of the grammar; the page is generated where files are written.
#[test]
fn the_names_of_types_in_the_reference_are_accepted() {
    fn resolve(name: &str) -> types::SqlType {
        let name = name.replace("(p,s)", "").replace("(n)", "(7)");
        let text = format!("CAST(NULL AS {name})");
        let parsed = parse_stored_expr(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let Expr::Cast { data_type, .. } = parsed else { panic!("{text} is {parsed:?}") };
        super::sql_type_conversion::sql_type(&data_type).unwrap_or_else(|error| panic!("{text}: {error}"))
    }
    let codes = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let page = generated_docs::read_page("reference/types.md");
    let table = page.split("\n## Arrays").next().expect("a split has a first part");
    let mut names = 0;
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let name = codes(cells[0]).remove(0);
        for alias in codes(cells[1]) {
            let alias = if name.ends_with("(n)") { format!("{alias}(n)") } else { alias };
            assert_eq!(resolve(&alias), resolve(&name), "{alias} and {name}");
            names += 1;
        }
        // A type prints as its name, so that every name in the table is the one of the code.
        assert_eq!(resolve(&name).without_modifier().to_string(), name.replace("(p,s)", "").replace("(n)", ""));
    }
    assert!(names > 10, "the table of types has been found");
}
