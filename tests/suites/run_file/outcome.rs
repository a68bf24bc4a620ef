//! Outcome of a record that PostgreSQL accepted: its count, and its consequences for later records.

use super::{FileRunner, IN_FAILED_BLOCK};
use crate::answer::{Answer, Failure, Reply};
use crate::compare::{Verdict, compare};
use crate::reason::{Reason, reason};
use crate::session_pair::{RecordFacts, SessionPair};
use crate::sql::TransactionCommand;

impl FileRunner<'_> {
    /// Compares two answers, and follows the transaction block. Returns whether the sessions can be used on.
    pub(super) async fn take_both_accepted(
        &mut self,
        pair: &mut SessionPair,
        facts: &RecordFacts<'_>,
        answers: (&Answer, &Answer),
    ) -> bool {
        let ends_block = matches!(facts.command, Some(TransactionCommand::Commit));
        pair.kiln_block.accept(facts.command);
        if !pair.kiln_block.has_failed
            && let Some(reason) = pair.failed_by.take()
            && ends_block
        {
            // Kiln's COMMIT was a rollback.
            self.report.add_follower(reason);
            pair.in_block.clear();
            return true;
        }
        if pair.kiln_block.is_open && facts.command.is_none() {
            pair.in_block.push(facts.effects.clone());
        } else if facts.command != Some(TransactionCommand::RollbackToSavepoint) {
            pair.in_block.clear();
        }
        self.out_of_step.note_accepted(&facts.effects, &facts.statement.names());
        self.judge(pair, facts, answers).await;
        if facts.statement.resets_session() {
            let setup = self.home.setup();
            let kiln_setup = format!("{setup}; {}", self.mode);
            return pair.postgres.execute(&setup).await.is_ok() && pair.kiln.execute(&kiln_setup).await.is_ok();
        }
        true
    }

    /// Compares the answers and counts the record.
    async fn judge(&mut self, pair: &SessionPair, facts: &RecordFacts<'_>, (expected, actual): (&Answer, &Answer)) {
        let is_ordered = facts.statement.has_order() && !facts.record.ignores_order;
        let verdict = if facts.statement.is_explain() { Verdict::Equal } else { compare(expected, actual, is_ordered) };
        let Verdict::Different(difference) = verdict else {
            self.report.counts.number_forms += usize::from(verdict == Verdict::EqualNumbers);
            return self.report.add_right(facts.record, expected, actual);
        };
        if let Some(reason) = self.out_of_step.reason_for_difference(&facts.statement.names()) {
            return self.report.add_follower(reason);
        }
        // A query whose answer PostgreSQL does not repeat has no right answer: random numbers, clocks, rows without an order.
        if facts.statement.is_read()
            && let Reply::Answer(repeated) = facts.run(&pair.postgres).await
            && matches!(compare(expected, &repeated, is_ordered), Verdict::Different(_))
        {
            self.report.counts.unstable += 1;
            return;
        }
        self.report.add_difference(facts.record, difference, (expected, actual));
        self.out_of_step.note_refused(&facts.effects, &Reason::DifferentWrite);
    }

    /// Counts a refusal by its reason. Returns whether the sessions can be used on.
    pub(super) async fn take_refused_by_kiln(
        &mut self,
        pair: &mut SessionPair,
        facts: &RecordFacts<'_>,
        failure: Failure,
    ) -> bool {
        let in_failed_block = pair.failed_by.clone().filter(|_| failure.sqlstate == IN_FAILED_BLOCK);
        let behind = in_failed_block.or_else(|| self.out_of_step.reason_for_refusal(&failure));
        let reason = match behind {
            Some(reason) => {
                self.report.add_follower(reason.clone());
                reason
            }
            None => {
                let reason = reason(&failure, &facts.record.sql);
                self.report.add_refusal(facts.record, failure, reason.clone());
                reason
            }
        };
        self.note_failure(pair, facts, &reason).await
    }

    /// Notes that PostgreSQL alone ran a statement, and brings Kiln's transaction block to the state of PostgreSQL's.
    pub(super) async fn note_failure(
        &mut self,
        pair: &mut SessionPair,
        facts: &RecordFacts<'_>,
        reason: &Reason,
    ) -> bool {
        self.out_of_step.note_refused(&facts.effects, reason);
        let was_open = pair.kiln_block.is_open;
        pair.kiln_block.refuse(facts.command);
        if was_open {
            // What Kiln did in the block is undone, and what PostgreSQL did is not.
            for effects in pair.in_block.drain(..) {
                self.out_of_step.note_refused(&effects, reason);
            }
            pair.failed_by.get_or_insert_with(|| reason.clone());
        }
        match facts.command {
            Some(TransactionCommand::Commit | TransactionCommand::Rollback) => {
                pair.failed_by = None;
                pair.command_kiln(TransactionCommand::Rollback, "ROLLBACK").await
            }
            Some(TransactionCommand::Begin) if !was_open => pair.command_kiln(TransactionCommand::Begin, "BEGIN").await,
            _ => true,
        }
    }
}
