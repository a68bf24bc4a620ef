//! psql's describe commands print the same on Kiln as on PostgreSQL.

use std::process::Command;

use crate::postgres::Postgres;
use crate::server::Server;

/// Objects created on both servers.
const SCHEMA: &str = include_str!("psql/shop.sql");

/// Commands with identical output.
const SAME: [&str; 62] = [
    r"\d",
    r"\dt",
    r"\dv",
    r"\di",
    r"\ds",
    r"\dm",
    r"\dn sh*",
    r"\dn+ shop",
    r"\d rich",
    r"\d+ rich",
    r"\d+ counts",
    r#"\d "Odd Name""#,
    r"\d customer_pkey",
    r"\d nothing",
    r"\dt nothing",
    r"\dt shop.*",
    r"\df",
    r"\dT",
    r"\dp",
    r"\du clerk",
    r"\sv rich",
    r"\df+",
    r"\dfS abs",
    r"\ds+",
    r"\dT+",
    r"\do",
    r"\dD",
    r"\dD+",
    r"\dd",
    r"\ddS",
    r"\da",
    r"\dc",
    r"\dc+",
    r"\ddp",
    r"\dE",
    r"\dE+",
    r"\des",
    r"\des+",
    r"\det",
    r"\det+",
    r"\deu",
    r"\deu+",
    r"\dew",
    r"\dew+",
    r"\dm+",
    r"\dO",
    r"\dO+",
    r"\dP",
    r"\dP+",
    r"\drds",
    r"\dRp",
    r"\dRp+",
    r"\dRs",
    r"\dRs+",
    r"\dX",
    r"\dX+",
    r"\dy",
    r"\dy+",
    r"\sf abs",
    r"\dtv",
    r"\dit",
    r"\dts",
];

/// Commands whose output differs where Kiln does.
const DIFFERENT: [&str; 6] = [r"\d customer", r"\d+ customer", r"\d purchase", r"\dt+", r"\dv+", r"\l kiln"];

/// Commands about the server itself, whose output is Kiln's own.
const ANSWERED: [&str; 33] = [
    r"\dfS+ abs",
    r"\daS sum",
    r"\dTS",
    r"\dTS+ int4",
    r"\doS =",
    r"\doS+ =",
    r"\dC",
    r"\dC+",
    r"\dcS",
    r"\dOS",
    r"\dLS",
    r"\dL+",
    r"\db",
    r"\db+",
    r"\du+",
    r"\dg",
    r"\dn",
    r"\l+",
    r"\dA+",
    r"\dAc+",
    r"\dAf+",
    r"\dAo+",
    r"\dAp+",
    r"\dF",
    r"\dFd+",
    r"\dFp",
    r"\dFt+",
    r"\dx",
    r"\dconfig work_mem",
    r"\dti+",
    r"\dt *.*",
    r"\d pg_class",
    r"\d+ pg_type",
];

#[tokio::test(flavor = "multi_thread")]
async fn psql_describes_kiln_as_postgres() {
    let Some(postgres) = Postgres::start() else {
        println!("skipped: PostgreSQL is not installed");
        return;
    };
    let server = Server::start();
    postgres.connect().await.batch_execute(SCHEMA).await.expect("PostgreSQL has a shop");
    server.connect().await.batch_execute(SCHEMA).await.expect("Kiln has a shop");
    let mut differences = Vec::new();
    for command in SAME.iter().chain(&DIFFERENT) {
        let expected = normalized(&psql(postgres.port, command));
        let got = normalized(&psql(server.pg_port, command));
        if got != expected {
            differences.push(format!("{command}\n--- PostgreSQL\n{expected}\n--- Kiln\n{got}"));
        }
    }
    for command in ANSWERED {
        let got = psql(server.pg_port, command);
        if got.contains("ERROR") || !got.contains("List of") && !got.contains("\"pg_catalog.") {
            differences.push(format!("{command}\n--- Kiln\n{got}"));
        }
    }
    assert!(differences.is_empty(), "{} commands differ:\n{}", differences.len(), differences.join("\n\n"));
}

/// Returns psql's output, including errors.
fn psql(port: u16, command: &str) -> String {
    let output = Command::new("psql")
        .args(["-X", "-h", "127.0.0.1", "-U", "kiln", "-d", "kiln", "-p", &port.to_string(), "-c", command])
        .env("PGOPTIONS", "-c search_path=shop")
        .output()
        .expect("psql runs where PostgreSQL is installed");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Removes legitimate differences between Kiln and PostgreSQL: access methods, unenforced keys, and sizes.
fn normalized(text: &str) -> String {
    let text = text.replace(" NOT ENFORCED", "").replace("Access method: shards\n", "Access method: heap\n");
    let lines = text.lines().map(|line| {
        let line = line.replace("unenforced", "btree").replace("shards", "heap");
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.iter().position(|word| *word == "bytes" || *word == "kB") {
            Some(unit) if unit > 0 => [&words[..unit - 1], &["SIZE"], &words[unit + 1..]].concat().join(" "),
            _ if line.contains("---") => "---".to_owned(),
            _ => words.join(" "),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}
