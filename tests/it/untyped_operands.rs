//! Untyped literals and parameters beside columns with type modifiers: Kiln returns the same rows, counts, errors and
//! parameter types as PostgreSQL, in any expression and protocol form, with and without an index.
//!
//! A failing case prints its number: `UNTYPED=number` runs it alone.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, SimpleQueryMessage};
use types::Random;
use types::random::SeededRandom;

use crate::postgres::Postgres;
use crate::server::{Server, nightly};

const CASES: u64 = 400;
const CASES_NIGHTLY: u64 = 40_000;
/// Cases that once failed in nightly runs: numbers outside the column's range, and a compiled plan that uses an
/// index.
const REGRESSION_CASES: [u64; 12] = [1113, 1138, 2851, 3746, 5688, 6485, 6936, 7302, 8205, 10722, 10756, 11244];
/// Maximum number of failures printed.
const FAILURES_SHOWN_MAX: usize = 12;

const NUMBERS: [(&str, Type); 4] =
    [("n", Type::NUMERIC), ("m", Type::NUMERIC), ("b", Type::NUMERIC), ("i", Type::INT4)];
const TEXTS: [(&str, Type); 2] = [("vc", Type::VARCHAR), ("c", Type::BPCHAR)];

const NUMBERS_SENT: [&str; 12] = [
    "5.13",
    "5.125",
    "5.130",
    "-5.13",
    "0",
    "7",
    "7.770001",
    "5.1250000",
    "123456789",
    "1e3",
    "0.70000000000696",
    "99999.99",
];
/// Numbers that are only compared, as they do not fit into the columns.
const NUMBERS_COMPARED: [&str; 5] = [
    "1e30",
    "-1e45",
    "5.130000000000000000000000000000000000000000000000001",
    "0.1000000000000000055511151231257827021181583404541015625",
    "100000000",
];
const TEXTS_SENT: [&str; 8] = ["abc", "ab", "ab  ", "abcd", "", "xyz", "a", "zzzzz"];

/// Conditions on the column `{c}` with the untyped operands `{x}` and `{y}`.
const CONDITIONS: [&str; 21] = [
    "{c} = {x}",
    "{c} <> {x}",
    "{c} < {x}",
    "{c} <= {x}",
    "{c} > {x}",
    "{c} >= {x}",
    "{x} = {c}",
    "{x} < {c}",
    "{c} IS DISTINCT FROM {x}",
    "{c} IS NOT DISTINCT FROM {x}",
    "{c} IN ({x}, {y})",
    "{c} NOT IN ({x}, {y})",
    "{c} BETWEEN {x} AND {y}",
    "{c} NOT BETWEEN {x} AND {y}",
    "({c}, {c}) = ({x}, {y})",
    "({c}, {c}) < ({x}, {y})",
    "CASE {c} WHEN {x} THEN true WHEN {y} THEN false END",
    "NOT ({c} > {x} AND {c} < {y})",
    "{c} = {x} OR {c} > {y}",
    "nullif({c}, {x}) IS NULL",
    "{c} = {x} AND id > 3",
];
/// Statements with a condition.
const STATEMENTS: [&str; 8] = [
    "SELECT id::text FROM {t} WHERE {condition}",
    "SELECT id::text FROM {t} WHERE {condition} ORDER BY id DESC LIMIT 3",
    "SELECT count(*)::text FROM {t} WHERE {condition}",
    "SELECT q.id::text FROM {t} JOIN {t} AS q USING (id, n, m, b, i, vc, c) WHERE {condition}",
    "SELECT {c}::text FROM {t} GROUP BY {c}, id HAVING {condition}",
    "UPDATE {t} SET hits = hits + 1 WHERE {condition}",
    "DELETE FROM {t} WHERE {condition}",
    "MERGE INTO {t} USING (VALUES (1)) AS s (one) ON {condition} WHEN MATCHED THEN UPDATE SET hits = 2",
];
const VALUES: [&str; 10] = [
    "coalesce({c}, {x})",
    "coalesce({x}, {c})",
    "CASE WHEN id % 2 = 0 THEN {c} ELSE {x} END",
    "CASE WHEN id % 2 = 0 THEN {x} WHEN id % 3 = 0 THEN {y} ELSE {c} END",
    "greatest({c}, {x})",
    "least({x}, {c}, {y})",
    "nullif({c}, {x})",
    "nullif({x}, {c})",
    "(ARRAY[{c}, {x}])[2]",
    "lag({c}, 1, {x}) OVER (ORDER BY id)",
];
const VALUES_OF_NUMBERS: [&str; 6] =
    ["{c} + {x}", "{x} - {c}", "{c} * {x}", "abs({c} - {x})", "-({c} * {x})", "sum({c} * {x}) OVER ()"];
const VALUES_OF_TEXTS: [&str; 3] = ["{c} || {x}", "replace({c}, {x}, 'q')", "left({c} || {x}, 4)"];
const OF_VALUES: [&str; 1] = ["SELECT ({value})::text FROM {t}"];
const ROWS: [&str; 3] = [
    "SELECT r::text FROM (SELECT {c} AS r FROM {t} UNION ALL SELECT {x}) AS q",
    "SELECT r::text FROM (SELECT {x} AS r UNION SELECT {c} FROM {t}) AS q",
    "SELECT r::text FROM (SELECT {c} AS r FROM {t} UNION ALL (SELECT {x} UNION ALL SELECT {c} FROM {t})) AS q",
];

/// Form of an operand in the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Literal,
    Execute,
    Parameter { binary: bool, declared: bool },
}

const FORMS: [Form; 7] = [
    Form::Literal,
    Form::Literal,
    Form::Execute,
    Form::Parameter { binary: false, declared: false },
    Form::Parameter { binary: true, declared: false },
    Form::Parameter { binary: false, declared: true },
    Form::Parameter { binary: true, declared: true },
];

struct Case {
    sql: String,
    operands: [&'static str; 2],
    form: Form,
    of: Type,
    changes: bool,
}

impl Case {
    fn new(number: u64) -> Self {
        let random = SeededRandom::new(number);
        let below = |count: usize| usize::try_from(random.next_u64() % count as u64).expect("an index");
        let is_text = below(5) < 2;
        let (column, of) =
            if is_text { TEXTS[below(TEXTS.len())].clone() } else { NUMBERS[below(NUMBERS.len())].clone() };
        let is_condition = below(3) != 0;
        let operand = || match (is_text, is_condition) {
            (true, _) => TEXTS_SENT[below(TEXTS_SENT.len())],
            (false, true) if below(4) == 0 => NUMBERS_COMPARED[below(NUMBERS_COMPARED.len())],
            (false, _) => NUMBERS_SENT[below(NUMBERS_SENT.len())],
        };
        let operands = [operand(), operand()];
        let form = FORMS[below(FORMS.len())];
        let (template, changes) = if is_condition {
            let about = STATEMENTS[below(STATEMENTS.len())];
            let mut condition = CONDITIONS[below(CONDITIONS.len())];
            if about.contains("USING (VALUES") && condition.contains("id") {
                condition = CONDITIONS[0];
            }
            (about.replace("{condition}", &format!("({condition})")), !about.starts_with("SELECT"))
        } else if below(4) == 0 {
            (ROWS[below(ROWS.len())].to_owned(), false)
        } else {
            let own: &[&str] = if is_text { &VALUES_OF_TEXTS } else { &VALUES_OF_NUMBERS };
            let at = below(VALUES.len() + own.len());
            let value = VALUES.get(at).copied().unwrap_or_else(|| own[at - VALUES.len()]);
            (OF_VALUES[0].replace("{value}", value), false)
        };
        let table = ["keyed", "scanned"][below(2)];
        let sql = template.replace("{t}", table).replace("{c}", &format!("{table}.{column}"));
        Self { sql, operands, form, of, changes }
    }

    fn literals(&self) -> String {
        let quoted = |operand: &str| format!("'{operand}'");
        self.sql.replace("{x}", &quoted(self.operands[0])).replace("{y}", &quoted(self.operands[1]))
    }

    fn parameterized(&self) -> String {
        self.sql.replace("{x}", "$1").replace("{y}", "$2")
    }

    fn count(&self) -> usize {
        1 + usize::from(self.sql.contains("{y}"))
    }
}

/// Runs a case; returns the parameter types, then the rows as sorted text, the number of changed rows, or the
/// SQLSTATE.
async fn answer(client: &Client, case: &Case) -> String {
    if case.changes {
        client.batch_execute("BEGIN").await.expect("a transaction");
    }
    let answer = match case.form {
        Form::Literal => run_simple(client, &case.literals()).await,
        Form::Execute => {
            let arguments: Vec<String> =
                case.operands[..case.count()].iter().map(|operand| format!("'{operand}'")).collect();
            let prepare = format!("PREPARE untyped AS {}", case.parameterized());
            let answer = match run_simple(client, &prepare).await {
                failed if failed.starts_with("error") => failed,
                _ => run_simple(client, &format!("EXECUTE untyped ({})", arguments.join(", "))).await,
            };
            let _ = client.simple_query("ROLLBACK; DEALLOCATE ALL").await;
            answer
        }
        Form::Parameter { binary, declared } => run_extended(client, case, binary, declared).await,
    };
    if case.changes {
        let _ = client.simple_query("ROLLBACK").await;
    }
    answer
}

async fn run_simple(client: &Client, sql: &str) -> String {
    let messages = match client.simple_query(sql).await {
        Ok(messages) => messages,
        Err(error) => return failure(&error),
    };
    let mut rows = Vec::new();
    let mut changed = 0;
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => rows.push(shown(row.get(0))),
            SimpleQueryMessage::CommandComplete(count) => changed = count,
            _ => {}
        }
    }
    format_answer(rows, changed)
}

async fn run_extended(client: &Client, case: &Case, binary: bool, declared: bool) -> String {
    let types = vec![if declared { declared_as(&case.of) } else { Type::UNKNOWN }; case.count()];
    let statement = match client.prepare_typed(&case.parameterized(), if declared { &types } else { &[] }).await {
        Ok(statement) => statement,
        Err(error) => return failure(&error),
    };
    let operands = case.operands.map(|text| EncodedParameter { text, binary });
    let parameters: Vec<&(dyn ToSql + Sync)> =
        operands[..case.count()].iter().map(|operand| operand as &(dyn ToSql + Sync)).collect();
    // A varchar is text where the function has no varchar overload.
    let taken = |of: &Type| if *of == Type::VARCHAR { Type::TEXT } else { of.clone() };
    let types: Vec<String> = statement.params().iter().map(|of| taken(of).name().to_owned()).collect();
    let answer = if case.changes {
        match client.execute(&statement, &parameters).await {
            Ok(changed) => format_answer(Vec::new(), changed),
            Err(error) => failure(&error),
        }
    } else {
        match client.query(&statement, &parameters).await {
            Ok(rows) => format_answer(rows.iter().map(|row| shown(row.get(0))).collect(), 0),
            Err(error) => failure(&error),
        }
    };
    format!("{types:?} {answer}")
}

/// Returns the parameter type that a client declares for a column's type.
fn declared_as(of: &Type) -> Type {
    match *of {
        Type::INT4 => Type::NUMERIC,
        ref other => other.clone(),
    }
}

fn format_answer(mut rows: Vec<String>, changed: u64) -> String {
    rows.sort_unstable();
    if rows.is_empty() { format!("{changed} changed") } else { rows.join("|") }
}

fn failure(error: &tokio_postgres::Error) -> String {
    format!("error {}", error.code().map_or("of the client", |code| code.code()))
}

/// Formats a value without trailing zeros of its fraction: Kiln's numerics have one scale per column.
fn shown(value: Option<&str>) -> String {
    let Some(value) = value else { return "NULL".to_owned() };
    let is_number = value.contains('.') && value.bytes().all(|byte| byte.is_ascii_digit() || b"-.".contains(&byte));
    if is_number { value.trim_end_matches('0').trim_end_matches('.').to_owned() } else { value.to_owned() }
}

/// Parameter as it is sent.
#[derive(Debug)]
struct EncodedParameter {
    text: &'static str,
    binary: bool,
}

impl ToSql for EncodedParameter {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self.encode_format(of), of) {
            (Format::Binary, &Type::NUMERIC) => put_numeric(self.text, out),
            (Format::Binary, &Type::INT4) => out.put_i32(self.text.parse()?),
            _ => out.put_slice(self.text.as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, of: &Type) -> Format {
        let has_binary = match *of {
            Type::NUMERIC => !self.text.contains('e'),
            Type::INT4 => self.text.parse::<i32>().is_ok(),
            Type::TEXT | Type::VARCHAR | Type::BPCHAR => true,
            _ => false,
        };
        if self.binary && has_binary { Format::Binary } else { Format::Text }
    }

    to_sql_checked!();
}

/// Encodes a decimal number as PostgreSQL sends it, in base-10,000 digits.
fn put_numeric(text: &str, out: &mut BytesMut) {
    let unsigned = text.trim_start_matches('-');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let groups = whole.len().div_ceil(4);
    let padded =
        format!("{whole:0>width$}{fraction:0<behind$}", width = groups * 4, behind = fraction.len().div_ceil(4) * 4);
    let digits: Vec<u16> =
        (0..padded.len() / 4).map(|at| padded[at * 4..at * 4 + 4].parse().expect("four digits")).collect();
    out.put_u16(u16::try_from(digits.len()).expect("few digits"));
    out.put_i16(i16::try_from(groups).expect("few digits") - 1);
    out.put_u16(if text.starts_with('-') { 0x4000 } else { 0 });
    out.put_u16(u16::try_from(fraction.len()).expect("few digits"));
    digits.iter().for_each(|digit| out.put_u16(*digit));
}

const DEFINE: &str =
    "CREATE TABLE {t} (id int, n numeric(10,2), m numeric(12,6), b numeric, i int, vc varchar(3), c char(3), hits int)";
const INDEXES: [&str; 7] = ["id", "n", "m", "b", "i", "vc", "c"];
const FILL: &str = "INSERT INTO {t} SELECT g, \
     CASE WHEN g % 7 <> 0 THEN (g % 5) * 2.57 - 5.13 END, CASE WHEN g % 6 <> 0 THEN (g % 9) * 1.025 END, \
     CASE WHEN g % 5 <> 0 THEN (g % 4) * 2.5625 END, CASE WHEN g % 8 <> 0 THEN g % 11 END, \
     CASE g % 6 WHEN 0 THEN 'abc' WHEN 1 THEN 'ab' WHEN 2 THEN '' WHEN 3 THEN 'xyz' WHEN 4 THEN 'ab ' END, \
     CASE g % 5 WHEN 0 THEN 'abc' WHEN 1 THEN 'ab' WHEN 2 THEN '' WHEN 3 THEN 'xyz' END, 0 \
     FROM generate_series({from}, {to}) AS g";

async fn fill(client: &Client, is_kiln: bool) {
    for table in ["keyed", "scanned"] {
        let fill = |from: u32, to: u32| {
            FILL.replace("{t}", table).replace("{from}", &from.to_string()).replace("{to}", &to.to_string())
        };
        client.batch_execute(&DEFINE.replace("{t}", table)).await.expect("a table");
        client.batch_execute(&fill(1, 30)).await.expect("rows");
        if table == "keyed" {
            for column in INDEXES {
                client.batch_execute(&format!("CREATE INDEX ON {table} ({column})")).await.expect("an index");
            }
        }
        if is_kiln {
            client.batch_execute(&format!("VACUUM {table}")).await.expect("rows are flushed");
        }
        client.batch_execute(&fill(31, 45)).await.expect("rows");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn untyped_operands_are_what_they_are_in_postgresql() {
    let Some(postgres) = Postgres::start() else {
        println!("skipped: PostgreSQL is not installed");
        return;
    };
    let server = Server::start();
    let (kiln, oracle) = (server.connect().await, postgres.connect().await);
    fill(&kiln, true).await;
    fill(&oracle, false).await;
    let alone: Option<u64> = std::env::var("UNTYPED").ok().and_then(|number| number.parse().ok());
    let count = if nightly() { CASES_NIGHTLY } else { CASES };
    let mut failures = Vec::new();
    let (mut failing, mut changing) = (0, 0);
    let later = REGRESSION_CASES.into_iter().filter(|number| alone.is_none() && count < *number);
    for number in alone.map_or(1..=count, |number| number..=number).chain(later) {
        let case = Case::new(number);
        let (found, wanted) = (answer(&kiln, &case).await, answer(&oracle, &case).await);
        failing += usize::from(wanted.contains("error"));
        changing += usize::from(case.changes && !wanted.contains("0 changed"));
        if found != wanted {
            failures.push(format!(
                "UNTYPED={number} {:?}\n{}\nKiln:       {found}\nPostgreSQL: {wanted}",
                case.form,
                if case.form == Form::Literal {
                    case.literals()
                } else {
                    format!("{} {:?}", case.parameterized(), case.operands)
                },
            ));
            if FAILURES_SHOWN_MAX <= failures.len() {
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{} cases differ:\n\n{}", failures.len(), failures.join("\n\n"));
    assert!(alone.is_some() || failing as u64 * 4 < count, "most cases have an answer: {failing} of {count} fail");
    assert!(alone.is_some() || 0 < changing, "some statements change rows");
}
