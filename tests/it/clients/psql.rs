//! psql with its backslash commands prints the same for Kiln as for PostgreSQL.

use std::process::Command;

use super::{connecting, is_installed, output, root};
use crate::postgres::Postgres;
use crate::server::Server;

fn run(port: u16) -> String {
    let script = root().join("tests/it/clients/psql.sql");
    let mut psql = Command::new("psql");
    psql.args(["--no-psqlrc", "--set=ON_ERROR_STOP=0", "--set=VERBOSITY=default", "--file"]).arg(script);
    // Errors are interleaved with the results.
    let mut shell = Command::new("sh");
    shell.arg("-c").arg("exec \"$@\" 2>&1").arg("sh").arg("psql").args(psql.get_args());
    output(connecting(&mut shell, port))
}

#[tokio::test(flavor = "multi_thread")]
async fn psql() {
    if !is_installed("psql") {
        println!("skipped: psql is not installed");
        return;
    }
    let server = Server::start();
    // Kiln's unenforced keys have no index, and psql says so.
    let ours = run(server.pg_port).replace(", unenforced (", ", btree (").replace(" NOT ENFORCED", "");
    let Some(postgres) = Postgres::start() else {
        println!("not compared: PostgreSQL is not installed");
        return;
    };
    postgres.connect().await;
    let theirs = run(postgres.port);
    let differences: Vec<String> = ours
        .lines()
        .zip(theirs.lines())
        .enumerate()
        .filter(|(_, (ours, theirs))| ours.trim_end() != theirs.trim_end())
        .map(|(line, (ours, theirs))| format!("line {}:\n  Kiln       {ours}\n  PostgreSQL {theirs}", line + 1))
        .collect();
    assert!(differences.is_empty() && ours.lines().count() == theirs.lines().count(), "{}", differences.join("\n"));
}
