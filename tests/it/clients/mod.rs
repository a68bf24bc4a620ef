//! PostgreSQL's own clients and drivers against Kiln: each runs a program that does what applications do.
//!
//! The programs stand beside this file and take the server from `PG*` variables, so each can be run by hand against any server.
//! A client that is not installed is skipped with one line.

mod psql;
mod sent;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::Server;

#[test]
fn psycopg_3() {
    python("psycopg_client.py");
}

#[test]
fn asyncpg() {
    python("asyncpg_client.py");
}

#[test]
fn sqlalchemy() {
    python("sqlalchemy_client.py");
}

#[test]
fn adbc() {
    python("adbc_client.py");
}

#[test]
fn pgjdbc() {
    if !["java", "mvn"].iter().all(|tool| is_installed(tool)) {
        println!("skipped: java or mvn is not installed");
        return;
    }
    let jar = output(&mut Command::new(root().join("scripts/clients-pgjdbc")));
    let server = Server::start();
    let url = format!("jdbc:postgresql://127.0.0.1:{}/kiln?user=kiln", server.pg_port);
    let program = root().join("tests/it/clients/java/JdbcClient.java");
    output(Command::new("java").arg("-cp").arg(jar.trim()).arg(program).arg(url));
}

/// Runs one of the Python programs against a server of its own.
fn python(program: &str) {
    if !is_installed("python3") {
        println!("skipped: python3 is not installed");
        return;
    }
    let python = output(&mut Command::new(root().join("scripts/clients-python")));
    let server = Server::start();
    let program = root().join("tests/it/clients/python").join(program);
    output(connecting(Command::new(python.trim()).arg(program), server.pg_port));
}

/// Sets the environment variables that libpq and similar drivers read.
fn connecting(command: &mut Command, port: u16) -> &mut Command {
    command.envs([("PGHOST", "127.0.0.1"), ("PGUSER", "kiln"), ("PGDATABASE", "kiln")]).env("PGPORT", port.to_string())
}

/// Returns the output of `command`, which must succeed.
fn output(command: &mut Command) -> String {
    let ran = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let (out, complaints) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{command:?} failed\n{out}\n{complaints}");
    out.into_owned()
}

fn is_installed(tool: &str) -> bool {
    Command::new("which").arg(tool).output().is_ok_and(|found| found.status.success())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the repository").to_owned()
}
