//! Shards are standard Parquet: another reader finds the same rows in a table's folder as SQL.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::Server;

/// Independent Parquet reader.
const READER: &str = "pyarrow==26.0.1";

/// Columns of every type: name, type, and the expression that formats it as the script does.
const COLUMNS: [(&str, &str, &str); 19] = [
    ("id", "int not null", "id::text"),
    ("b", "boolean", "b::text"),
    ("i2", "smallint", "i2::text"),
    ("i8", "bigint", "i8::text"),
    ("n9", "numeric(9,2)", "n9::text"),
    ("n18", "numeric(18,4)", "n18::text"),
    ("n38", "numeric", "n38::text"),
    ("f4", "real", "f4::text"),
    ("f8", "double precision", "f8::text"),
    ("t", "text", "t"),
    ("v", "varchar(20)", "v"),
    ("d", "date", "d::text"),
    ("ts", "timestamp", "ts::text"),
    ("tz", "timestamptz", "tz::text"),
    ("iv", "interval", "extract(epoch from iv)::bigint::text"),
    ("y", "bytea", "y::text"),
    ("u", "uuid", "u::text"),
    ("j", "jsonb", "j::text"),
    ("a", "int[]", "a::text"),
];

const ROWS: &str = "
    (1, true, 1, -9223372036854775808, 1234567.89, -12345678901234.5678, 1234567890123456789012345678.0123456789,
     0.5, 0.1, 'zwölf Boxkämpfer', 'v', '0001-01-01', '2024-02-29 12:34:56.789012', '2024-02-29 12:34:56+02',
     '1 year 2 mons -3 days 04:05:06', '\\x00ff', '00112233-4455-6677-8899-aabbccddeeff', '{\"k\": [1, null]}', '{1,NULL,3}'),
    (2, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null),
    (3, false, -32768, 0, 0, 0, 0, -1.25, 1e-7, '', '', '9999-12-31', '1969-12-31 23:59:59', '1970-01-01 00:00:00+00',
     '-1 mons', '\\x', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '[]', '{}')";

#[tokio::test]
async fn another_reader_finds_the_rows_that_sql_finds() {
    let Some(python) = python() else { return };
    let server = Server::start();
    let client = server.connect().await;
    let declared: Vec<_> = COLUMNS.iter().map(|(name, sql_type, _)| format!("{name} {sql_type}")).collect();
    client.batch_execute("SET TimeZone = 'UTC'").await.unwrap();
    client
        .batch_execute(&format!("CREATE TABLE open_format ({}) WITH (storage = column)", declared.join(", ")))
        .await
        .unwrap();
    client.batch_execute(&format!("INSERT INTO open_format VALUES {ROWS}")).await.unwrap();
    // A second load writes a second file.
    client.batch_execute("INSERT INTO open_format (id, t) VALUES (4, 'later')").await.unwrap();
    let shown: Vec<_> = COLUMNS.iter().map(|(_, _, shown)| *shown).collect();
    let query = format!("SELECT {} FROM open_format ORDER BY id", shown.join(", "));
    let rows = client.query(&query, &[]).await.unwrap();
    let by_sql: Vec<Vec<Option<String>>> =
        rows.iter().map(|row| (0..COLUMNS.len()).map(|column| row.get(column)).collect()).collect();
    assert_eq!(by_sql.len(), 4);
    let oid: u32 = client.query_one("SELECT 'open_format'::regclass::oid", &[]).await.unwrap().get(0);
    let by_reader = read(&python, &server.folder().join(format!("storage/tables/{oid}")));
    assert_eq!(by_reader, by_sql);
}

/// Returns the rows of all files in the folder, as the other reader sees them.
fn read(python: &Path, folder: &Path) -> Vec<Vec<Option<String>>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/open_format/read_shards.py");
    let read = Command::new(python).arg(script).arg(folder).output().expect("the interpreter starts");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let lines = String::from_utf8(read.stdout).expect("JSON is text");
    lines.lines().map(|line| serde_json::from_str(line).expect("a row is a list of texts")).collect()
}

/// Returns a Python interpreter with the reader, in an environment created once; prints a line and returns `None` if
/// that fails.
#[expect(clippy::print_stdout, reason = "a test that was skipped says so where its outcome is read")]
fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(READER);
    let python = folder.join("bin/python");
    let has_reader = || succeeds(Command::new(&python).args(["-c", "import pyarrow.parquet"]));
    if !has_reader() {
        succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        succeeds(Command::new(&python).args(["-m", "pip", "install", "--quiet", READER]));
    }
    if has_reader() {
        return Some(python);
    }
    println!("skipped: {READER} cannot be installed for python3");
    None
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
