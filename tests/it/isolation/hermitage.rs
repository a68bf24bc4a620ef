//! Runs the scripts of `hermitage.txt`, `references.txt`, `definitions.txt` and `settling.txt` step by step, with one
//! connection per client.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage};
use types::{Clock, SystemClock};

use super::script::{ExpectedOutcome, Script, parse, setup};
use crate::postgres::Postgres;
use crate::server::Server;

/// Time after which a statement counts as waiting for another one; [`WAIT_SETUPS`] times the setup's time if that is
/// longer.
const WAIT: Duration = Duration::from_millis(250);
const WAIT_SETUPS: u32 = 4;

/// Time within which an unblocked statement must end.
const TIME_MAX: Duration = Duration::from_secs(120);

/// Maximum number of clients of a script.
const CLIENTS: usize = 3;

/// Script files by topic.
const TEXTS: [(&str, &str); 4] = [
    ("hermitage", include_str!("hermitage.txt")),
    ("references", include_str!("references.txt")),
    ("definitions", include_str!("definitions.txt")),
    ("settling", include_str!("settling.txt")),
];

#[tokio::test(flavor = "multi_thread")]
async fn interleavings_come_out_as_each_level_promises_on_postgres() {
    let Some(postgres) = Postgres::start() else {
        println!("skipped: PostgreSQL is not installed");
        return;
    };
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(postgres.connect().await);
    }
    run_all(clients, "postgresql").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn interleavings_come_out_as_each_level_promises_on_kiln() {
    let server = Server::start();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(server.connect().await);
    }
    run_all(clients, "kiln").await;
}

async fn run_all(clients: Vec<Client>, engine: &str) {
    let clients: Vec<SharedClient> = clients.into_iter().map(SharedClient::new).collect();
    let (mut count, mut failures) = (0, Vec::new());
    for (about, text) in TEXTS {
        let setup = setup(text, engine);
        for script in parse(text, engine) {
            count += 1;
            if let Err(failure) = run(&clients, &setup, &script).await {
                failures.push(format!("{about}: {} at {}: {failure}", script.name, script.level));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
}

type SharedClient = std::sync::Arc<Client>;

/// Outcome of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StatementResult {
    Rows(Vec<String>),
    Failed(String),
}

async fn run(clients: &[SharedClient], setup: &[String], script: &Script) -> Result<(), String> {
    let clock = SystemClock::new();
    for sql in setup {
        clients[0].batch_execute(sql).await.map_err(|error| format!("{sql}: {error:?}"))?;
    }
    let wait = WAIT.max(WAIT_SETUPS * clock.monotonic());
    let mut waiting: Vec<Option<JoinHandle<StatementResult>>> = (0..clients.len()).map(|_| None).collect();
    let mut outcome = Ok(());
    for step in &script.steps {
        let at = step.client - 1;
        let mut task = match &step.sql {
            Some(sql) => {
                let sql = if sql == "begin" { format!("BEGIN ISOLATION LEVEL {}", script.level) } else { sql.clone() };
                tokio::spawn(ask(SharedClient::clone(&clients[at]), sql))
            }
            None => waiting[at].take().expect("only what waits resumes"),
        };
        let limit = if step.outcome == ExpectedOutcome::Waits { wait } else { TIME_MAX };
        let ended = tokio::select! {
            ended = &mut task => Some(ended.expect("a client does not panic")),
            () = clock.sleep(limit) => None,
        };
        let fits = match (&step.outcome, &ended) {
            (ExpectedOutcome::Waits, None) => {
                waiting[at] = Some(task);
                true
            }
            (ExpectedOutcome::Ok, Some(StatementResult::Rows(_))) => true,
            (ExpectedOutcome::Rows(wanted), Some(StatementResult::Rows(rows))) => wanted == rows,
            (ExpectedOutcome::Fails(wanted), Some(StatementResult::Failed(state))) => wanted == state,
            _ => false,
        };
        if !fits {
            outcome = Err(format!("line {}: {:?} was to be {:?}, and is {ended:?}", step.line, step.sql, step.outcome));
            break;
        }
    }
    for client in clients {
        let ended = tokio::select! {
            ended = client.batch_execute("ROLLBACK") => ended.map_err(|error| format!("ROLLBACK: {error:?}")),
            () = clock.sleep(TIME_MAX) => Err("a client waits for ever".to_owned()),
        };
        outcome = outcome.and(ended);
    }
    outcome
}

async fn ask(client: SharedClient, sql: String) -> StatementResult {
    match client.simple_query(&sql).await {
        Err(error) => {
            StatementResult::Failed(error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned()))
        }
        Ok(messages) => {
            let rows = messages.into_iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => {
                    let values = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL"));
                    Some(values.collect::<Vec<_>>().join("|"))
                }
                _ => None,
            });
            StatementResult::Rows(rows.collect())
        }
    }
}
