//! Idempotency tokens (`kiln.statement_token`): a statement that was committed under its token before does not run
//! again; the client gets the recorded outcome instead.
//!
//! A transaction claims its token with its first writing statement, when the statement is ready to run. The earlier
//! commit may be the reason that a repetition cannot even be planned (its table exists): so the token is looked up for
//! failed statements too.

use binder::StatementPlan;
use bytes::BytesMut;
use catalog::{CatalogState, Change, Table};
use row_locks::lock_error;
use session_context::ScalarValue;
use storage_error::from_transaction;
use txn::locks::LockWait;
use txn::{Claim, ClaimError, StatementDigest, StatementHasher, StatementOutcome, Token};
use types::{Condition, Oid, SqlError, SqlResult, SqlType};
use value_codec::encode::BinaryEncoder;

use crate::copy::stdin_format;
use crate::idempotency_token_request::{RecordedOutcome, TokenRequest};
use crate::result_sink::ResultSink;
use crate::session::Session;
use crate::started_statement::StartedStatement;

/// Wait event in `pg_stat_activity` of a statement that waits for another transaction with the same token.
const WAIT_EVENT: &str = "StatementToken";

impl Session {
    /// Returns the work of a statement under the session's token, if there is one.
    pub(crate) fn token_request_for(&self, sql: &str) -> Option<TokenRequest> {
        let text = self.settings().statement_token()?;
        let token = Token { role: self.session_state().session_role.oid, text: text.into() };
        Some(TokenRequest {
            token,
            text_hasher: StatementHasher::new().with_part(sql.as_bytes()),
            full_hasher: None,
            is_claimed: false,
        })
    }

    /// Adds the values of the statement's parameters to its work.
    pub(crate) fn add_parameters_to_request(&mut self, values: &[ScalarValue], types: &[SqlType]) -> SqlResult<()> {
        if let Some(asked) = self.token_request.as_mut().filter(|_| !values.is_empty()) {
            let mut bytes = BytesMut::new();
            for (value, sql_type) in values.iter().zip(types) {
                let array = value.to_array().map_err(functions::error::from_datafusion)?;
                // A number with more digits than a numeric can have arrives as text.
                let is_text = matches!(sql_type, SqlType::Numeric { .. }) && array.data_type().is_string();
                let sql_type = if is_text { &SqlType::Text } else { sql_type };
                BinaryEncoder::new(&array, sql_type)?.write_field(0, &mut bytes);
            }
            asked.add_part(&bytes);
        }
        Ok(())
    }

    /// Adds the text of the prepared statement that EXECUTE names to the work.
    pub(crate) fn add_prepared_to_request(&mut self, name: &str) {
        if let (Some(asked), Some(prepared)) = (&mut self.token_request, self.prepared.get(name)) {
            asked.add_part(prepared.text().as_bytes());
        }
    }

    /// Claims the token before a plan that writes runs, and waits for another transaction that holds it. Returns the
    /// recorded outcome if the statement was committed before.
    pub(crate) async fn claim_token(&mut self, planned: &StatementPlan) -> SqlResult<Option<RecordedOutcome>> {
        let is_read_only = self.transaction_block.modes().is_some_and(|modes| modes.read_only);
        if is_read_only || !self.writes_shared_data(planned) {
            return Ok(None);
        }
        if self.token_request.is_none() {
            self.transaction_block.transaction().begin_write_without_token().map_err(|_| missing_token_error())?;
            return Ok(None);
        }
        self.claim_requested_token().await
    }

    /// Returns the recorded outcome like [`Self::claim_token`], but only if the statement was committed before, so that
    /// it never waits.
    pub(crate) async fn find_recorded_outcome(
        &mut self,
        planned: &StatementPlan,
    ) -> SqlResult<Option<RecordedOutcome>> {
        if self.token_request.is_none() || !self.writes_shared_data(planned) || !self.was_committed().await? {
            return Ok(None);
        }
        self.claim_token(planned).await
    }

    async fn claim_requested_token(&mut self) -> SqlResult<Option<RecordedOutcome>> {
        let Some(asked) = &self.token_request else { return Ok(None) };
        let (token, work) = (asked.token.clone(), asked.digest());
        let wait = LockWait::Block { timeout: self.settings().lock_timeout() };
        let shown = self.backend_guard.backend.show_wait(WAIT_EVENT);
        let claimed = self.transaction_block.transaction().claim(&token, work, wait).await;
        drop(shown);
        match claimed.map_err(|error| claim_error(&token, error))? {
            Claim::Run => {
                if let Some(asked) = &mut self.token_request {
                    asked.is_claimed = true;
                }
                Ok(None)
            }
            Claim::Repeat { written, .. } => Ok(Some(RecordedOutcome(written))),
        }
    }

    /// Whether the statement was committed under its token, at this position of the transaction.
    pub(crate) async fn was_committed(&mut self) -> SqlResult<bool> {
        let is_read_only = self.transaction_block.modes().is_none_or(|modes| modes.read_only);
        let Some(asked) = self.token_request.as_ref().filter(|_| !is_read_only && !self.transaction_block.is_failed())
        else {
            return Ok(false);
        };
        let (token, work) = (asked.token.clone(), asked.digest());
        if self.transaction_block.check_snapshot().is_err() {
            return Ok(false);
        }
        self.transaction_block.transaction().is_committed(&token, work).await.map_err(from_transaction)
    }

    /// Handles a failed statement: returns the command tag recorded for its token if it was committed before, else the
    /// error.
    pub(crate) async fn recorded_tag_or_error(&mut self, error: SqlError) -> SqlResult<String> {
        if self.token_request.is_none() || !self.was_committed().await? {
            return Err(error);
        }
        match self.claim_requested_token().await? {
            Some(RecordedOutcome(written)) if written.data_digest.is_none() => self.complete_from_record(written),
            _ => Err(error),
        }
    }

    /// Ends a statement that was committed before: checks the data of COPY FROM STDIN, then returns the recorded
    /// command tag.
    pub(crate) async fn complete_repeated(
        &mut self,
        RecordedOutcome(written): RecordedOutcome,
        planned: &StatementPlan,
        client: &mut dyn ResultSink,
    ) -> SqlResult<StartedStatement> {
        if let (StatementPlan::CopyFrom(plan), Some(recorded_digest)) = (planned, written.data_digest) {
            client.begin_copy_in(stdin_format(plan), plan.columns.len()).await?;
            let mut data = StatementHasher::new();
            while let Some(piece) = client.copy_data().await? {
                data.add_data(&piece);
            }
            if data.digest() != recorded_digest {
                let message = "the statement was committed under its token with other data";
                return Err(SqlError::new(Condition::InvalidParameterValue, message).with_hint(NEW_TOKEN));
            }
        }
        self.complete_from_record(written).map(StartedStatement::Done)
    }

    /// Does the same as [`Self::complete_repeated`] for statements without data; refuses those that returned rows,
    /// which are not stored.
    pub(crate) fn complete_from_record(&mut self, written: StatementOutcome) -> SqlResult<String> {
        if written.returned_rows {
            let message = "the statement was committed under its token, and its rows are not kept";
            return Err(SqlError::new(Condition::ObjectNotInPrerequisiteState, message)
                .with_detail(format!("Its command tag was \"{}\".", written.command_tag))
                .with_hint("Read its rows from the table, and go on with a new token."));
        }
        let notice = "the statement was committed under its token before and has not run again";
        self.add_notices(vec![SqlError::new(Condition::SuccessfulCompletion, notice)]);
        Ok(written.command_tag)
    }

    /// Records the outcome of a statement that has claimed its token, as part of the transaction.
    pub(crate) fn record_outcome(&mut self, tag: &str, rows: u64, gave_rows: bool, data: Option<StatementDigest>) {
        if let Some(asked) = self.token_request.as_ref().filter(|asked| asked.is_claimed) {
            let work = asked.digest();
            self.transaction_block.transaction().record_statement(StatementOutcome {
                digest: work,
                data_digest: data,
                command_tag: tag.to_owned(),
                rows,
                returned_rows: gave_rows,
            });
        }
    }

    /// Whether a plan changes anything that other sessions see.
    fn writes_shared_data(&self, planned: &StatementPlan) -> bool {
        let is_lasting = |table: &Table| table.temporary.is_none();
        match planned {
            StatementPlan::Write(plan) => is_lasting(&plan.table),
            StatementPlan::Modify(plan) => is_lasting(&plan.table),
            StatementPlan::CopyFrom(plan) => is_lasting(&plan.table),
            StatementPlan::Define(plan) => {
                let view = self.transaction_block.view().state;
                plan.changes.is_empty() || plan.changes.iter().any(|change| !is_temporary(change, &plan.changes, &view))
            }
            StatementPlan::Explain(plan) => plan.analyze && self.writes_shared_data(&plan.inner),
            StatementPlan::Query(_) | StatementPlan::CopyTo(_) | StatementPlan::Session(_) => false,
        }
    }
}

/// Whether a change is about temporary objects of a session; `changes` are those of the same statement.
fn is_temporary(change: &Change, changes: &[Change], view: &CatalogState) -> bool {
    let new_table = |oid: Oid| {
        changes.iter().find_map(|change| match change {
            Change::PutTable(table) if table.oid == oid => Some(table.schema),
            _ => None,
        })
    };
    let schema_of = |oid: Oid| view.relation_by_oid(oid).map(|relation| relation.schema()).or_else(|| new_table(oid));
    let schema = match change {
        Change::PutSchema(schema) => Some(schema.oid),
        Change::DropSchema(oid) => Some(*oid),
        Change::PutTable(table) => Some(table.schema),
        Change::PutView(put) => Some(put.schema),
        Change::PutSequence(sequence) => Some(sequence.schema),
        Change::DropTable(oid) | Change::DropView(oid) | Change::DropSequence(oid) => schema_of(*oid),
        Change::AddShards { table, .. }
        | Change::RemoveAllRows { table }
        | Change::SealFreshRows { table }
        | Change::Flush { table, .. }
        | Change::CloneRows { table, .. }
        | Change::CompactShards { table, .. } => schema_of(*table),
        Change::PutDatabase(_) | Change::PutRole(_) | Change::DropRole(_) => None,
    };
    let is_new = |oid: Oid| {
        changes
            .iter()
            .any(|change| matches!(change, Change::PutSchema(schema) if schema.oid == oid && schema.is_temporary()))
    };
    schema.is_some_and(|oid| view.schema(oid).is_some_and(|schema| schema.is_temporary()) || is_new(oid))
}

const NEW_TOKEN: &str =
    "Use a new token for another statement; sys.statement_outcome shows what was committed under this one.";

fn claim_error(token: &Token, error: ClaimError) -> SqlError {
    let text = &token.text;
    match error {
        ClaimError::OtherToken => {
            let message = format!("token \"{text}\" is not the one that the transaction has written under");
            SqlError::new(Condition::ActiveTransaction, message).with_hint(ONE_TOKEN)
        }
        ClaimError::WrittenWithoutToken => {
            let message = "the token must be set before the transaction writes";
            SqlError::new(Condition::ActiveTransaction, message).with_hint(ONE_TOKEN)
        }
        ClaimError::OtherStatements { committed, number } => {
            let message = format!("token \"{text}\" was committed with something else");
            let detail = if number <= committed {
                format!(
                    "Number {number} of the {committed} committed writing statements had another text or parameters."
                )
            } else {
                format!(
                    "The transaction that was committed had {committed} writing statements; this is number {number}."
                )
            };
            SqlError::new(Condition::InvalidParameterValue, message).with_detail(detail).with_hint(NEW_TOKEN)
        }
        ClaimError::TooManyStatements { limit } => SqlError::new(
            Condition::ProgramLimitExceeded,
            format!("a transaction with a token can have at most {limit} writing statements"),
        ),
        ClaimError::TooManyTokens { limit } => {
            let message = format!("the maximum of {limit} stored tokens is reached");
            SqlError::new(Condition::ConfigurationLimitExceeded, message).with_hint(
                "Tokens expire; the server's options --token-retention and --tokens-max set after what time, and how many can be stored.",
            )
        }
        ClaimError::Lock(error) => lock_error(&error),
        ClaimError::Failed(error) => from_transaction(error),
    }
}

const ONE_TOKEN: &str =
    "All writes of a transaction need the same token or none: otherwise a repetition would run a part of them again.";

fn missing_token_error() -> SqlError {
    let message = "the transaction has written under a token, and this statement has none";
    SqlError::new(Condition::ActiveTransaction, message).with_hint(ONE_TOKEN)
}
