//! Runs one test file on both servers and compares each answer.

mod outcome;

use std::collections::BTreeMap;

use anyhow::Context;

use crate::answer::{Answer, Failure, Reply};
use crate::file_report::{FileReport, RecordLocation};
use crate::home::Home;
use crate::out_of_step::OutOfStep;
use crate::reason::Reason;
use crate::script::{Record, Script, Step};
use crate::servers::Servers;
use crate::session::Session;
use crate::session_pair::{RecordFacts, SessionPair};
use crate::sql::TransactionCommand;

/// SQLSTATE of a statement in a transaction block that has failed.
const IN_FAILED_BLOCK: &str = "25P02";

/// Runs a file's script after `preamble`, a script whose records are not counted.
///
/// # Errors
/// A server cannot be reached any more.
pub(crate) async fn run_file(
    servers: &mut Servers,
    home: &Home,
    mode: &str,
    preamble: Option<&Script>,
    script: &Script,
) -> anyhow::Result<FileReport> {
    let report = FileReport { skipped: script.skipped.clone(), ..FileReport::default() };
    let mut runner =
        FileRunner { servers, home, mode, sessions: BTreeMap::new(), out_of_step: OutOfStep::default(), report };
    if let Some(preamble) = preamble {
        let counted = std::mem::take(&mut runner.report);
        runner.run_steps(preamble).await?;
        runner.sessions.clear();
        let server_ends = std::mem::take(&mut runner.report.server_ends);
        runner.report = FileReport { server_ends, ..counted };
    }
    runner.run_steps(script).await?;
    Ok(runner.report)
}

struct FileRunner<'a> {
    servers: &'a mut Servers,
    home: &'a Home,
    /// Statements with which each session of Kiln begins.
    mode: &'a str,
    sessions: BTreeMap<String, SessionPair>,
    out_of_step: OutOfStep,
    report: FileReport,
}

impl FileRunner<'_> {
    async fn run_steps(&mut self, script: &Script) -> anyhow::Result<()> {
        for step in &script.steps {
            match step {
                Step::Run(record) => Box::pin(self.run_record(record)).await?,
                Step::Reconnect => self.sessions.clear(),
            }
        }
        Ok(())
    }

    async fn run_record(&mut self, record: &Record) -> anyhow::Result<()> {
        let facts = RecordFacts::new(record);
        let mut pair = match self.sessions.remove(&record.session) {
            Some(pair) => pair,
            None => self.open_pair(record).await?,
        };
        self.report.counts.run += 1;
        let expected = facts.run(&pair.postgres).await;
        let stays = match expected {
            Reply::Answer(answer) => self.take_accepted(&mut pair, &facts, &answer).await,
            Reply::Refused(failure) => self.take_refused(&mut pair, &facts, Some(&failure)).await,
            Reply::TimedOut => {
                self.report.counts.postgres_timed_out += 1;
                self.take_refused(&mut pair, &facts, None).await
            }
            Reply::Lost(_) => false,
        };
        if stays {
            self.sessions.insert(record.session.clone(), pair);
            return Ok(());
        }
        drop(pair);
        self.check_server(record).await
    }

    async fn open_pair(&mut self, record: &Record) -> anyhow::Result<SessionPair> {
        let setup = self.home.setup();
        let postgres = Session::open(&self.home.postgres(self.servers), &setup).await.context("PostgreSQL")?;
        let kiln_setup = format!("{setup}; {}", self.mode);
        let kiln = match Session::open(&self.servers.kiln.config, &kiln_setup).await {
            Ok(kiln) => kiln,
            Err(error) => {
                self.check_server(record).await?;
                let reopened = Session::open(&self.servers.kiln.config, &kiln_setup).await;
                reopened.with_context(|| format!("Kiln, after {error:#}"))?
            }
        };
        Ok(SessionPair::new(postgres, kiln))
    }

    /// Restarts Kiln if its process has ended. All its sessions have ended, then.
    async fn check_server(&mut self, record: &Record) -> anyhow::Result<()> {
        if !self.servers.kiln.has_ended().await {
            return Ok(());
        }
        self.sessions.clear();
        self.report.server_ends.push((RecordLocation::new(record), self.servers.kiln.log_tail()));
        self.servers.kiln.restart()
    }

    /// Brings Kiln to the state of PostgreSQL, which refused a statement. Returns whether the sessions can be used on.
    async fn take_refused(
        &mut self,
        pair: &mut SessionPair,
        facts: &RecordFacts<'_>,
        failure: Option<&Failure>,
    ) -> bool {
        let was_failed = pair.postgres_block.has_failed;
        pair.postgres_block.refuse(facts.command);
        if failure.is_some_and(|failure| failure.sqlstate == IN_FAILED_BLOCK) || was_failed {
            return true;
        }
        if pair.kiln_block.is_open && !pair.postgres_block.is_open {
            self.out_of_step = std::mem::take(&mut pair.before_block);
            return pair.command_kiln(TransactionCommand::Rollback, "ROLLBACK").await;
        }
        if !pair.kiln_block.is_open || pair.kiln_block.has_failed {
            return true;
        }
        match facts.run(&pair.kiln).await {
            Reply::Answer(_) => {
                self.report.add_accepted_by_kiln_alone(facts.record);
                pair.fail_kiln().await
            }
            Reply::Refused(_) | Reply::TimedOut => {
                pair.kiln_block.has_failed = true;
                true
            }
            Reply::Lost(_) => false,
        }
    }

    /// Runs on Kiln a statement that PostgreSQL accepted. Returns whether the sessions can be used on.
    async fn take_accepted(&mut self, pair: &mut SessionPair, facts: &RecordFacts<'_>, expected: &Answer) -> bool {
        self.report.counts.accepted += 1;
        let undoes = pair.postgres_block.is_undone_by(facts.command);
        let begins = facts.command == Some(TransactionCommand::Begin);
        pair.postgres_block.accept(facts.command);
        let reply = facts.run(&pair.kiln).await;
        let stays = match reply {
            Reply::Answer(actual) => self.take_both_accepted(pair, facts, (expected, &actual)).await,
            Reply::Refused(failure) => self.take_refused_by_kiln(pair, facts, failure).await,
            Reply::TimedOut => {
                self.report.add_timeout(facts.record);
                self.note_failure(pair, facts, &Reason::TimedOut).await
            }
            Reply::Lost(cause) => {
                self.report.add_lost(facts.record, cause);
                // Both sessions end, and PostgreSQL undoes its open block.
                if pair.postgres_block.is_open {
                    self.out_of_step = std::mem::take(&mut pair.before_block);
                } else {
                    self.out_of_step.note_refused(&facts.effects, &Reason::ConnectionLost);
                }
                return false;
            }
        };
        if undoes {
            self.out_of_step = std::mem::take(&mut pair.before_block);
        }
        if begins {
            pair.before_block = self.out_of_step.clone();
        }
        stays
    }
}
