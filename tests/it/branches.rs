//! Branches that are not taken never fail: every function of `pg_proc`, operators and casts, over literals and columns
//! with hostile values, in CASE, COALESCE, AND, OR and FILTER; with the engine, without it, and on workers.
//!
//! A failing call prints its statement: `BRANCHES=name` runs the calls of one function.

use std::fmt::Write;

use tokio_postgres::{Client, SimpleQueryMessage};

use crate::cluster::wait_until;
use crate::server::Server;

/// Maximum number of failures printed.
const FAILURES_SHOWN_MAX: usize = 20;

const WORKERS: &str = "CREATE CLUSTER pair WITH (NODE_COUNT = 2, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL);
                       GRANT USAGE ON CLUSTER pair TO PUBLIC";

/// Functions that are not called: `pg_sleep` waits in an operator of its own, which has no branches; the others refuse
/// these arguments before the query runs.
const NOT_CALLED: [&str; 4] = ["pg_sleep", "json_build_object", "jsonb_build_object", "pg_size_bytes"];

/// Values of a type at which functions fail, with the name of the type's column in the table `hostile`. Numerics have
/// at most 37 digits: AND and OR do not guard results beyond the 38 digits that Kiln has.
struct HostileType {
    /// Name in `pg_type`.
    name: &'static str,
    /// Column from which the values are cast; `None` if the type has a column of its own.
    cast_from: Option<&'static str>,
    values: [&'static str; 4],
}

const TYPES: [HostileType; 22] = [
    hostile("int2", ["-32768", "32767", "0", "-1"]),
    hostile("int4", ["-2147483648", "2147483647", "0", "-1"]),
    hostile("int8", ["-9223372036854775808", "9223372036854775807", "0", "-1"]),
    hostile("numeric", ["-9999999999999999999999999999", "0", "-1", "0.5"]),
    hostile("float4", ["-3e38", "3e38", "NaN", "0"]),
    hostile("float8", ["-1e308", "1e308", "NaN", "0"]),
    hostile("text", ["(", "\\", "x", "9999999999999999999999"]),
    hostile("varchar", ["(", "\\", "x", "[1"]),
    hostile("bool", ["t", "f", "t", "f"]),
    hostile("date", ["0001-01-01", "9999-12-31", "1970-01-01", "2000-02-29"]),
    hostile("time", ["00:00:00", "23:59:59.999999", "12:00", "01:01:01"]),
    hostile("timestamp", ["0001-01-01 00:00:00", "9999-12-31 23:59:59", "1970-01-01", "2000-02-29"]),
    hostile("timestamptz", ["0001-01-02 00:00:00+00", "9999-12-30 00:00:00+00", "1970-01-01 00:00:00+00", "epoch"]),
    hostile("interval", ["178956970 years", "-178956970 years", "0", "2147483647 days"]),
    hostile("bytea", ["\\x", "\\xff00", "\\x5c", "\\xc3"]),
    hostile("json", ["1", "\"x\"", "{\"a\": null}", "[]"]),
    hostile("jsonb", ["1", "\"x\"", "{\"a\": 1}", "[]"]),
    cast_from("bpchar", "text", ["(", "\\", "x", "[1"]),
    cast_from("name", "text", ["(", "\\", "x", "no such name"]),
    cast_from("char", "text", ["(", "\\", "x", "1"]),
    cast_from("oid", "id", ["0", "4294967295", "1259", "1"]),
    cast_from("regclass", "id", ["0", "4294967295", "1259", "1"]),
];

/// Expressions beside the functions: operators and casts of the columns named in braces.
const EXPRESSIONS: [&str; 32] = [
    "{int4} + {int4}",
    "{int4} - 2147483647",
    "{int8} * {int8}",
    "{int2} * {int2}",
    "-{int4}",
    "abs({int8})",
    "{int4} / {int4}",
    "{int4} % {int4}",
    "1 / ({int4} - {int4})",
    "{numeric} / {numeric}",
    "{numeric} % 0",
    "{float8} * {float8}",
    "{float8} / {float8}",
    "{float8} ^ 0.5",
    "{date} + {int4}",
    "{date} + {interval}",
    "{timestamp} + {interval}",
    "{interval} * 1e10",
    "{int4}::int2",
    "{int8}::int4",
    "{float8}::int8",
    "{float8}::float4",
    "{float8}::numeric",
    "{numeric}::int8",
    "{text}::int4",
    "{text}::date",
    "{text}::jsonb",
    "{text}::uuid",
    "{text}::int4[]",
    "{jsonb}::int4",
    "{text} ~ {text}",
    "{text} LIKE {text}",
];

const fn hostile(name: &'static str, values: [&'static str; 4]) -> HostileType {
    HostileType { name, cast_from: None, values }
}

const fn cast_from(name: &'static str, column: &'static str, values: [&'static str; 4]) -> HostileType {
    HostileType { name, cast_from: Some(column), values }
}

impl HostileType {
    /// Returns the name as SQL writes it.
    fn sql_name(&self) -> String {
        if self.name == "char" { "\"char\"".to_owned() } else { self.name.to_owned() }
    }

    /// Returns the expression over columns that has these values, or values like them.
    fn column(&self) -> String {
        match self.cast_from {
            None => format!("c_{}", self.name),
            Some("id") => format!("id::oid::{}", self.sql_name()),
            Some(column) => format!("c_{column}::{}", self.sql_name()),
        }
    }

    fn literal(&self, row: usize) -> String {
        format!("'{}'::{}", self.values[row].replace('\'', "''"), self.sql_name())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_that_are_not_taken_never_fail() {
    let server = Server::start();
    let boss = server.connect().await;
    boss.batch_execute(&table()).await.expect("the table can be made");
    boss.batch_execute(WORKERS).await.expect("a cluster can be made");
    wait_until(&boss, "SELECT count(*) = 2 FROM sys.worker WHERE cluster = 'pair' AND state = 'ready'").await;
    let statements = statements(&boss).await;
    assert!(500 < statements.len() || std::env::var_os("BRANCHES").is_some(), "{} statements", statements.len());
    let modes =
        ["SET kiln.engine = on", "SET kiln.engine = off", "USE CLUSTER pair; SET min_parallel_table_scan_size = 0"];
    let failures = futures::future::join_all(modes.map(|mode| failures(&server, mode, &statements))).await.concat();
    let shown = failures.iter().take(FAILURES_SHOWN_MAX).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} statements fail:\n{shown}", failures.len());
}

/// Runs the statements in a session that first executes `mode`, and returns those that fail.
async fn failures(server: &Server, mode: &str, statements: &[String]) -> Vec<String> {
    let client = server.connect().await;
    client.batch_execute(mode).await.expect("modes can be set");
    let mut failures = Vec::new();
    for statement in statements {
        if let Err(error) = client.simple_query(statement).await {
            let words = error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
            failures.push(format!("{mode}: {words}: {statement}"));
        }
    }
    failures
}

/// Shows that the values are hostile: most functions that can fail do, when they are called.
#[tokio::test(flavor = "multi_thread")]
async fn calls_with_hostile_values_fail_when_they_are_made() {
    let server = Server::start();
    let client = server.connect().await;
    client.batch_execute(&table()).await.expect("the table can be made");
    let fails = |call: String| {
        let client = &client;
        async move { client.simple_query(&format!("SELECT {call} FROM hostile")).await.is_err() }
    };
    for call in ["chr", "factorial", "sqrt", "ln", "exp"] {
        let column = if matches!(call, "chr" | "factorial") { "c_int4" } else { "c_float8" };
        assert!(fails(format!("{call}({column})")).await, "{call} does not fail");
    }
    let mut succeeded = Vec::new();
    for expression in EXPRESSIONS {
        if !fails(with_operands(expression, None)).await {
            succeeded.push(expression);
        }
    }
    assert!(succeeded.is_empty(), "these do not fail: {succeeded:?}");
}

/// Returns the statement that creates the table: a column of each type, and conditions with one value in all rows.
fn table() -> String {
    let mut columns = String::new();
    for hostile in TYPES.iter().filter(|hostile| hostile.cast_from.is_none()) {
        write!(columns, ", {} {}", hostile.column(), hostile.sql_name()).expect("writing to a String cannot fail");
    }
    let row = |row: usize| {
        let values: Vec<String> =
            TYPES.iter().filter(|hostile| hostile.cast_from.is_none()).map(|hostile| hostile.literal(row)).collect();
        format!("({row}, false, true, {})", values.join(", "))
    };
    let rows: Vec<String> = (0..4).map(row).collect();
    format!(
        "CREATE TABLE hostile (id int NOT NULL, never bool, always bool{columns}); \
         INSERT INTO hostile VALUES {}; VACUUM hostile",
        rows.join(", ")
    )
}

/// Returns the statements for all functions, operators and casts.
async fn statements(client: &Client) -> Vec<String> {
    let chosen = std::env::var("BRANCHES").ok();
    let query = "SELECT p.proname, p.provolatile, coalesce((SELECT string_agg(t.typname, ' ' ORDER BY a.at) \
                 FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a(oid, at) JOIN pg_type t ON t.oid = a.oid), '') \
                 FROM pg_proc p WHERE p.prokind = 'f' AND NOT p.proretset \
                 AND obj_description(p.oid, 'pg_proc') IS DISTINCT FROM 'I/O' ORDER BY p.proname, p.oid";
    let mut calls = Vec::new();
    for message in client.simple_query(query).await.expect("pg_proc can be read") {
        let SimpleQueryMessage::Row(row) = message else { continue };
        let (name, types) = (row.get(0).unwrap_or_default(), row.get(2).unwrap_or_default());
        let is_immutable = row.get(1) == Some("i");
        // SIMILAR TO is refused before the query runs.
        if (name, types) == ("substring", "text text text")
            || NOT_CALLED.contains(&name)
            || chosen.as_ref().is_some_and(|chosen| chosen != name)
        {
            continue;
        }
        let types: Option<Vec<&str>> = types.split_whitespace().map(column_of_type).collect();
        let Some(types) = types else { continue };
        for row in [None, Some(0), Some(1)] {
            let arguments: Vec<String> = types.iter().map(|name| operand(name, row)).collect();
            let is_constant = row.is_some();
            // Stable functions of constants are evaluated before the query runs.
            if is_constant && (types.is_empty() || !is_immutable) {
                break;
            }
            calls.push((format!("pg_catalog.\"{name}\"({})", arguments.join(", ")), is_constant));
        }
    }
    if chosen.is_none() {
        for expression in EXPRESSIONS {
            // Casts that depend on settings are evaluated before the query runs, if they are of constants.
            let is_stable = expression.ends_with("::date") || expression.ends_with("::int4[]");
            let rows = [None, Some(0), Some(1), Some(2), Some(3)];
            let rows = rows.into_iter().filter(|row| row.is_none() || !is_stable);
            calls.extend(rows.map(|row| (with_operands(expression, row), row.is_some())));
        }
    }
    calls.iter().flat_map(|(call, is_constant)| branches(call, *is_constant)).collect()
}

/// Returns the type of `TYPES` whose values are arguments of a parameter type; `None` if there is none, as for
/// `internal`.
fn column_of_type(parameter: &str) -> Option<&str> {
    match parameter {
        "any" | "anyelement" | "anycompatible" | "anynonarray" => Some("text"),
        "anyarray" | "anycompatiblearray" => Some("array"),
        // The last parameter of a variadic function.
        "_text" => Some("text"),
        other => TYPES.iter().find(|hostile| hostile.name == other).map(|hostile| hostile.name),
    }
}

/// Returns a column or, with a row, a literal of a type.
fn operand(name: &str, row: Option<usize>) -> String {
    if name == "array" {
        return row.map_or_else(|| "ARRAY[c_text]".to_owned(), |row| format!("ARRAY[{}]", operand("text", Some(row))));
    }
    let hostile = TYPES.iter().find(|hostile| hostile.name == name).expect("the type is in the list");
    row.map_or_else(|| hostile.column(), |row| hostile.literal(row))
}

/// Fills the braces of an expression.
fn with_operands(expression: &str, row: Option<usize>) -> String {
    let filled = TYPES.iter().fold(expression.to_owned(), |expression, hostile| {
        expression.replace(&format!("{{{}}}", hostile.name), &format!("({})", operand(hostile.name, row)))
    });
    format!("({filled})")
}

/// Returns statements that have a call in branches that no row takes. A call of constants is not tested where PostgreSQL evaluates it too before the query runs.
fn branches(call: &str, is_constant: bool) -> Vec<String> {
    let values = format!(
        "SELECT CASE WHEN never THEN ({call})::text END, CASE WHEN never THEN ({call}) IS NOT NULL ELSE false END, \
         COALESCE(id::text, ({call})::text), COALESCE(always, ({call}) IS NULL), never AND ({call}) IS NULL, \
         always OR ({call}) IS NULL FROM hostile"
    );
    let conditions = format!(
        "SELECT count({call}) FILTER (WHERE never), bool_or(({call}) IS NULL) FILTER (WHERE never), \
         max(({call})::text) FILTER (WHERE never) FROM hostile \
         WHERE (always OR ({call}) IS NULL) AND NOT (never AND ({call}) IS NULL)"
    );
    if is_constant { vec![values] } else { vec![values, conditions] }
}
