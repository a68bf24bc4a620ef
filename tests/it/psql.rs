//! psql's commands that describe what is there print on Kiln what they print on PostgreSQL.

use std::process::Command;

use crate::postgres::Postgres;
use crate::server::Server;

/// What both servers have.
const SHOP: &str = include_str!("psql/shop.sql");

/// Commands that print the same, to the letter.
const SAME: [&str; 21] = [
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
];

/// Commands whose output differs where Kiln says what it is.
const DIFFERENT: [&str; 6] = [r"\d customer", r"\d+ customer", r"\d purchase", r"\dt+", r"\dv+", r"\l kiln"];

#[tokio::test(flavor = "multi_thread")]
async fn psql_describes_kiln_as_postgres() {
    let Some(postgres) = Postgres::start() else {
        println!("skipped: PostgreSQL is not installed");
        return;
    };
    let server = Server::start();
    postgres.connect().await.batch_execute(SHOP).await.expect("PostgreSQL has a shop");
    server.connect().await.batch_execute(SHOP).await.expect("Kiln has a shop");
    let mut differences = Vec::new();
    for command in SAME.iter().chain(&DIFFERENT) {
        let expected = normalized(&psql(postgres.port, command));
        let got = normalized(&psql(server.pg_port, command));
        if got != expected {
            differences.push(format!("{command}\n--- PostgreSQL\n{expected}\n--- Kiln\n{got}"));
        }
    }
    assert!(differences.is_empty(), "{} commands differ:\n{}", differences.len(), differences.join("\n\n"));
}

/// What psql prints, errors too.
fn psql(port: u16, command: &str) -> String {
    let output = Command::new("psql")
        .args(["-X", "-h", "127.0.0.1", "-U", "kiln", "-d", "kiln", "-p", &port.to_string(), "-c", command])
        .env("PGOPTIONS", "-c search_path=shop")
        .output()
        .expect("psql runs where PostgreSQL is installed");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Without what Kiln and PostgreSQL rightly say differently: access methods, keys that are declared only, and sizes.
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
