//! Sessions of one name on both servers, with their transaction blocks.

use crate::answer::Reply;
use crate::block::Block;
use crate::out_of_step::OutOfStep;
use crate::reason::Reason;
use crate::script::Record;
use crate::session::Session;
use crate::sql::{Effects, Statement, TransactionCommand, effects};

/// Statement that every server refuses, which fails a transaction block.
const FAILING: &str = "ROLLBACK TO SAVEPOINT suites_fails_here";

/// Sessions of one name on both servers.
pub(crate) struct SessionPair {
    pub(crate) postgres: Session,
    pub(crate) kiln: Session,
    pub(crate) postgres_block: Block,
    pub(crate) kiln_block: Block,
    /// Reason for which Kiln's block has failed and PostgreSQL's has not.
    pub(crate) failed_by: Option<Reason>,
    /// Effects of the statements that Kiln accepted in its block.
    pub(crate) in_block: Vec<Effects>,
    /// State before PostgreSQL's block, for its rollback.
    pub(crate) before_block: OutOfStep,
}

impl SessionPair {
    pub(crate) fn new(postgres: Session, kiln: Session) -> Self {
        Self {
            postgres,
            kiln,
            postgres_block: Block::default(),
            kiln_block: Block::default(),
            failed_by: None,
            in_block: Vec::new(),
            before_block: OutOfStep::default(),
        }
    }

    /// Runs a transaction command on Kiln alone; returns whether its session can be used on.
    pub(crate) async fn command_kiln(&mut self, command: TransactionCommand, sql: &str) -> bool {
        let is_done = self.kiln.execute(sql).await.is_ok();
        self.kiln_block.accept(Some(command));
        self.in_block.clear();
        is_done
    }

    /// Fails Kiln's open block; returns whether its session can be used on.
    pub(crate) async fn fail_kiln(&mut self) -> bool {
        self.kiln_block.has_failed = true;
        !matches!(self.kiln.run(FAILING, None, "").await, Reply::Lost(_))
    }
}

/// Record and the facts of its statement that its outcome needs.
pub(crate) struct RecordFacts<'a> {
    pub(crate) record: &'a Record,
    pub(crate) statement: Statement<'a>,
    pub(crate) command: Option<TransactionCommand>,
    pub(crate) effects: Effects,
}

impl<'a> RecordFacts<'a> {
    pub(crate) fn new(record: &'a Record) -> Self {
        let statement = Statement::new(&record.sql);
        let (command, effects) = (statement.transaction_command(), effects(&statement));
        Self { record, statement, command, effects }
    }

    /// Runs the record in a session.
    pub(crate) async fn run(&self, session: &Session) -> Reply {
        let data = self.record.copy_data.as_deref().unwrap_or_default();
        session.run(&self.record.sql, self.statement.copy_direction(), data).await
    }
}
