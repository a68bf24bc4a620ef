//! Public names, which users write in statements, scripts and dashboards, are stable: they are listed in
//! `public_names.txt`.
//!
//! A name that is removed, changed or new fails the test. Options of statements other than CREATE CLUSTER are an
//! exception: the parser knows them one by one, and new ones are added to the list here by hand.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use cluster_model::CLUSTER_OPTIONS;
use tokio_postgres::Client;
use types::Failpoint;

use crate::server::{Server, kiln};

/// Statement with a placeholder for an option, the error for an unknown one, and the accepted options.
struct StatementOptions {
    statement: &'static str,
    refusal: &'static str,
    options: &'static str,
}

const CREATE_CLUSTER: &str = "create cluster c ({})";

const OPTIONS: &[StatementOptions] = &[
    // Its options are those of the table by which the parser knows them.
    StatementOptions { statement: CREATE_CLUSTER, refusal: "unrecognized cluster option \"{}\"", options: "" },
    StatementOptions {
        statement: "create role r {} x",
        refusal: "unrecognized role option \"{}\"",
        options: "superuser nosuperuser createdb nocreatedb createrole nocreaterole inherit noinherit login nologin replication \
                  noreplication bypassrls nobypassrls connection encrypted password unencrypted valid in role admin user",
    },
    StatementOptions {
        statement: "create table t (a integer) with ({} = '!')",
        refusal: "unrecognized parameter \"{}\"",
        options: "storage cache fillfactor parallel_workers toast_tuple_target user_catalog_table autovacuum_enabled \
                  autovacuum_analyze_scale_factor autovacuum_analyze_threshold autovacuum_freeze_max_age autovacuum_freeze_min_age \
                  autovacuum_freeze_table_age autovacuum_multixact_freeze_max_age autovacuum_multixact_freeze_min_age \
                  autovacuum_multixact_freeze_table_age autovacuum_vacuum_cost_delay autovacuum_vacuum_cost_limit \
                  autovacuum_vacuum_insert_scale_factor autovacuum_vacuum_insert_threshold autovacuum_vacuum_scale_factor \
                  autovacuum_vacuum_threshold log_autovacuum_min_duration vacuum_index_cleanup vacuum_truncate",
    },
    StatementOptions {
        statement: "create index on items (a) with ({} = '!')",
        refusal: "unrecognized parameter \"{}\"",
        options: "fillfactor deduplicate_items",
    },
    StatementOptions {
        statement: "copy items to stdout ({} '!', {} '!')",
        refusal: "option \"{}\" not recognized",
        options: "format freeze delimiter null default header quote escape force_quote force_not_null force_null encoding on_error \
                  reject_limit log_verbosity",
    },
    StatementOptions {
        statement: "explain ({} '!') select 1",
        refusal: "unrecognized EXPLAIN option \"{}\"",
        options: "analyze analyse verbose costs timing summary format buffers wal settings generic_plan memory serialize",
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn public_names_stay() {
    let server = Server::start_with(&["--threads", "2"], &[]);
    let client = server.connect().await;
    let mut found = String::new();
    write_section(&mut found, "settings", first_column(&client, "select name from pg_settings").await);
    write_section(&mut found, "columns of system views", first_column(&client, SYSTEM_COLUMNS).await);
    client.batch_execute("create table items (a integer)").await.expect("the table is made");
    for kind in OPTIONS {
        let mut options: BTreeSet<String> = kind.options.split_whitespace().map(str::to_owned).collect();
        if kind.statement == CREATE_CLUSTER {
            options.extend(CLUSTER_OPTIONS.iter().map(|option| option.name.to_owned()));
        }
        for option in &options {
            assert!(!is_refused(&client, kind, option).await, "{} knows {option} no more", kind.statement);
        }
        assert!(is_refused(&client, kind, "foreign").await, "{} refuses an unknown option otherwise", kind.statement);
        write_section(&mut found, &format!("options of {}", kind.statement), options);
    }
    let mut arguments = BTreeSet::new();
    add_arguments(&mut Vec::new(), &mut arguments);
    write_section(&mut found, "arguments", arguments);
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crates");
    write_section(&mut found, "variables", variables(&crates));
    write_section(&mut found, "metrics", metrics(server.http_port));
    write_section(&mut found, "failpoints", Failpoint::ALL.into_iter().map(Failpoint::name).collect());
    write_section(&mut found, "SQLSTATEs", sqlstates(&crates));
    compare(&found);
}

const SYSTEM_COLUMNS: &str = "select table_schema || '.' || table_name || '.' || column_name || ' ' || data_type \
                              from information_schema.columns where table_schema = 'sys'";

async fn first_column(client: &Client, query: &str) -> BTreeSet<String> {
    client.query(query, &[]).await.expect("it is answered").iter().map(|row| row.get(0)).collect()
}

/// Returns true if the statement is refused because of the option's name.
async fn is_refused(client: &Client, kind: &StatementOptions, option: &str) -> bool {
    let error = client.batch_execute(&kind.statement.replace("{}", option)).await.expect_err("its value is wrong");
    error.as_db_error().is_some_and(|error| error.message().contains(&kind.refusal.replace("{}", option)))
}

/// Adds the arguments of a command and its subcommands from their help: `serve --data`.
fn add_arguments(command: &mut Vec<String>, found: &mut BTreeSet<String>) {
    let output = Command::new(kiln()).args(&*command).arg("--help").env("COLUMNS", "1000").output();
    let help = String::from_utf8(output.expect("kiln runs").stdout).expect("help is text");
    let mut heading = "";
    for line in help.lines() {
        if !line.starts_with(' ') {
            heading = line;
            continue;
        }
        let words = line.split_whitespace();
        if heading == "Commands:" {
            for name in words.take(1).filter(|name| *name != "help") {
                command.push(name.to_owned());
                add_arguments(command, found);
                command.pop();
            }
        } else if heading == "Arguments:" || line.trim_start().starts_with('-') {
            // An argument is followed by its `[default: …]` and its values, `- csv: …`.
            let is_name = |word: &&str| word.starts_with(['-', '<', '[']) && !word.ends_with(':') && *word != "-";
            let names = words.take_while(is_name);
            let line: Vec<&str> = command.iter().map(String::as_str).chain(names).collect();
            if line.len() > command.len() {
                found.insert(line.join(" "));
            }
        }
    }
}

/// Returns the environment variables named in the sources: `"KILN_DATA"`.
fn variables(folder: &Path) -> BTreeSet<String> {
    let is_name = |text: &str| {
        ["KILN_", "PG"].iter().any(|start| text.len() > start.len() + 2 && text.starts_with(start))
            && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    sources(folder).iter().flat_map(|text| text.split('"')).filter(|text| is_name(text)).map(str::to_owned).collect()
}

/// Returns the texts of all source files below a folder except tests.
fn sources(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for path in fs::read_dir(folder).expect("the folder is there").flatten().map(|entry| entry.path()) {
        if path.is_dir() && !path.ends_with("tests") {
            texts.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            texts.push(fs::read_to_string(&path).expect("the file can be read"));
        }
    }
    texts
}

/// Returns the metrics that `/metrics` declares, with their kinds; the statements above give every family a value,
/// without which it is omitted.
fn metrics(port: u16) -> BTreeSet<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned).collect()
}

/// Returns the SQLSTATEs of all conditions, which one file maps: `Condition::SyntaxError => "42601"`.
fn sqlstates(folder: &Path) -> BTreeSet<String> {
    let texts = sources(folder);
    let lines = texts.iter().flat_map(|text| text.lines()).filter(|line| line.contains("Condition::"));
    let codes = lines.filter_map(|line| line.split("=> \"").nth(1)?.split('"').next());
    codes.filter(|code| code.len() == 5).map(str::to_owned).collect()
}

fn write_section(found: &mut String, title: &str, names: BTreeSet<String>) {
    assert!(!names.is_empty(), "there are no {title}");
    writeln!(found, "# {title}").expect("a string takes all");
    for name in names {
        writeln!(found, "{name}").expect("a string takes all");
    }
    found.push('\n');
}

/// Compares with the golden file; with `KILN_WRITE_GOLDEN=1` a missing file is written.
fn compare(found: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/public_names.txt");
    if std::env::var_os("KILN_WRITE_GOLDEN").is_some() && !path.exists() {
        fs::write(&path, found).expect("the folder can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (before, now) = (lines(&expected), lines(found));
    let gone: Vec<_> = before.difference(&now).collect();
    let new: Vec<_> = now.difference(&before).collect();
    assert!(expected == found, "{} differs: gone are {gone:#?}, new are {new:#?}", path.display());
}

/// Returns each name prefixed with its section's title.
fn lines(text: &str) -> BTreeSet<String> {
    let mut title = "";
    let mut lines = BTreeSet::new();
    for line in text.lines() {
        title = line.strip_prefix("# ").unwrap_or(title);
        lines.insert(format!("{title}: {line}"));
    }
    lines
}
