//! Idempotency tokens (`kiln.statement_token`): a statement that was committed under its token before does not run
//! again; the client gets the recorded outcome instead.
//!
//! A transaction claims its token with its first writing statement, when the statement is ready to run. The earlier
//! commit may be the reason that a repetition cannot even be planned (its table exists): so the token is looked up for
//! failed statements too.

use binder::Planned;
use bytes::BytesMut;
use catalog::{CatalogState, Change, Table};
use row_locks::from_lock;
use session_context::ScalarValue;
use storage_error::from_transaction;
use txn::locks::LockWait;
use txn::{Claim, ClaimError, Token, Work, WorkDigest, Written};
use types::{Condition, Oid, SqlError, SqlResult, SqlType};
use value_codec::encode::BinaryEncoder;

use crate::asked::{Asked, Repeated};
use crate::copy::stdin_format;
use crate::result_sink::ResultSink;
use crate::session::Session;
use crate::started::Started;

/// Wait event in `pg_stat_activity` of a statement that waits for another transaction with the same token.
const WAIT_EVENT: &str = "StatementToken";

impl Session {
    /// Returns the work of a statement under the session's token, if there is one.
    pub(crate) fn asks(&self, sql: &str) -> Option<Asked> {
        let text = self.settings().statement_token()?;
        let token = Token { role: self.held().session_role.oid, text: text.into() };
        Some(Asked { token, text: Work::new().part(sql.as_bytes()), whole: None, runs: false })
    }

    /// Adds the values of the statement's parameters to its work.
    pub(crate) fn asks_with(&mut self, values: &[ScalarValue], types: &[SqlType]) -> SqlResult<()> {
        if let Some(asked) = self.asked.as_mut().filter(|_| !values.is_empty()) {
            let mut bytes = BytesMut::new();
            for (value, sql_type) in values.iter().zip(types) {
                let array = value.to_array().map_err(functions::error::from_datafusion)?;
                // A number with more digits than a numeric can have arrives as text.
                let is_text = matches!(sql_type, SqlType::Numeric { .. }) && array.data_type().is_string();
                let sql_type = if is_text { &SqlType::Text } else { sql_type };
                BinaryEncoder::new(&array, sql_type)?.write_field(0, &mut bytes);
            }
            asked.with(&bytes);
        }
        Ok(())
    }

    /// Adds the text of the prepared statement that EXECUTE names to the work.
    pub(crate) fn asks_for_prepared(&mut self, name: &str) {
        if let (Some(asked), Some(prepared)) = (&mut self.asked, self.prepared.get(name)) {
            asked.with(prepared.text().as_bytes());
        }
    }

    /// Claims the token before a plan that writes runs, and waits for another transaction that holds it. Returns the
    /// recorded outcome if the statement was committed before.
    pub(crate) async fn claim(&mut self, planned: &Planned) -> SqlResult<Option<Repeated>> {
        let is_read_only = self.block.modes().is_some_and(|modes| modes.read_only);
        if is_read_only || !self.writes(planned) {
            return Ok(None);
        }
        if self.asked.is_none() {
            self.block.transaction().write_unnamed().map_err(|_| without_token())?;
            return Ok(None);
        }
        self.claim_asked().await
    }

    /// Returns the recorded outcome like [`Self::claim`], but only if the statement was committed before, so that it
    /// never waits.
    pub(crate) async fn repeats(&mut self, planned: &Planned) -> SqlResult<Option<Repeated>> {
        if self.asked.is_none() || !self.writes(planned) || !self.is_repeat().await? {
            return Ok(None);
        }
        self.claim(planned).await
    }

    async fn claim_asked(&mut self) -> SqlResult<Option<Repeated>> {
        let Some(asked) = &self.asked else { return Ok(None) };
        let (token, work) = (asked.token.clone(), asked.work());
        let wait = LockWait::Block { timeout: self.settings().lock_timeout() };
        let shown = self.seat.backend.waiting(WAIT_EVENT);
        let claimed = self.block.transaction().claim(&token, work, wait).await;
        drop(shown);
        match claimed.map_err(|error| refused(&token, error))? {
            Claim::Run => {
                if let Some(asked) = &mut self.asked {
                    asked.runs = true;
                }
                Ok(None)
            }
            Claim::Repeat { written, .. } => Ok(Some(Repeated(written))),
        }
    }

    /// Whether the statement was committed under its token, at this position of the transaction.
    pub(crate) async fn is_repeat(&mut self) -> SqlResult<bool> {
        let is_read_only = self.block.modes().is_none_or(|modes| modes.read_only);
        let Some(asked) = self.asked.as_ref().filter(|_| !is_read_only && !self.block.is_failed()) else {
            return Ok(false);
        };
        let (token, work) = (asked.token.clone(), asked.work());
        if self.block.check_live().is_err() {
            return Ok(false);
        }
        self.block.transaction().is_committed(&token, work).await.map_err(from_transaction)
    }

    /// Handles a failed statement: returns the command tag recorded for its token if it was committed before, else the
    /// error.
    pub(crate) async fn repeated_or(&mut self, error: SqlError) -> SqlResult<String> {
        if self.asked.is_none() || !self.is_repeat().await? {
            return Err(error);
        }
        match self.claim_asked().await? {
            Some(Repeated(written)) if written.data.is_none() => self.tell_repeated(written),
            _ => Err(error),
        }
    }

    /// Ends a statement that was committed before: checks the data of COPY FROM STDIN, then returns the recorded
    /// command tag.
    pub(crate) async fn repeated(
        &mut self,
        Repeated(written): Repeated,
        planned: &Planned,
        client: &mut dyn ResultSink,
    ) -> SqlResult<Started> {
        if let (Planned::CopyFrom(plan), Some(known)) = (planned, written.data) {
            client.begin_copy_in(stdin_format(plan), plan.columns.len()).await?;
            let mut data = Work::new();
            while let Some(piece) = client.copy_data().await? {
                data.data(&piece);
            }
            if data.digest() != known {
                let message = "the statement was committed under its token with other data";
                return Err(SqlError::new(Condition::InvalidParameterValue, message).with_hint(NEW_TOKEN));
            }
        }
        self.tell_repeated(written).map(Started::Done)
    }

    /// Does the same as [`Self::repeated`] for statements without data; refuses those that returned rows, which are not
    /// stored.
    pub(crate) fn tell_repeated(&mut self, written: Written) -> SqlResult<String> {
        if written.gave_rows {
            let message = "the statement was committed under its token, and its rows are not kept";
            return Err(SqlError::new(Condition::ObjectNotInPrerequisiteState, message)
                .with_detail(format!("Its command tag was \"{}\".", written.tag))
                .with_hint("Read its rows from the table, and go on with a new token."));
        }
        let notice = "the statement was committed under its token before and has not run again";
        self.tell(vec![SqlError::new(Condition::SuccessfulCompletion, notice)]);
        Ok(written.tag)
    }

    /// Records the outcome of a statement that has claimed its token, as part of the transaction.
    pub(crate) fn note_written(&mut self, tag: &str, rows: u64, gave_rows: bool, data: Option<WorkDigest>) {
        if let Some(asked) = self.asked.as_ref().filter(|asked| asked.runs) {
            let work = asked.work();
            self.block.transaction().note_written(Written { work, data, tag: tag.to_owned(), rows, gave_rows });
        }
    }

    /// Whether a plan changes anything that other sessions see.
    fn writes(&self, planned: &Planned) -> bool {
        let is_lasting = |table: &Table| table.temporary.is_none();
        match planned {
            Planned::Write(plan) => is_lasting(&plan.table),
            Planned::Modify(plan) => is_lasting(&plan.table),
            Planned::CopyFrom(plan) => is_lasting(&plan.table),
            Planned::Define(plan) => {
                let view = self.block.view().state;
                plan.changes.is_empty() || plan.changes.iter().any(|change| !is_temporary(change, &plan.changes, &view))
            }
            Planned::Explain(plan) => plan.analyze && self.writes(&plan.inner),
            Planned::Query(_) | Planned::CopyTo(_) | Planned::Session(_) => false,
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
        | Change::Seal { table }
        | Change::Settle { table, .. }
        | Change::Clone { table, .. }
        | Change::Compact { table, .. } => schema_of(*table),
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

fn refused(token: &Token, error: ClaimError) -> SqlError {
    let text = &token.text;
    match error {
        ClaimError::Other => {
            let message = format!("token \"{text}\" is not the one that the transaction has written under");
            SqlError::new(Condition::ActiveTransaction, message).with_hint(ONE_TOKEN)
        }
        ClaimError::Unnamed => {
            let message = "the token must be set before the transaction writes";
            SqlError::new(Condition::ActiveTransaction, message).with_hint(ONE_TOKEN)
        }
        ClaimError::Differs { committed, number } => {
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
        ClaimError::TooManyStatements { most } => SqlError::new(
            Condition::ProgramLimitExceeded,
            format!("a transaction with a token can have at most {most} writing statements"),
        ),
        ClaimError::Full { most } => {
            let message = format!("the maximum of {most} stored tokens is reached");
            SqlError::new(Condition::ConfigurationLimitExceeded, message).with_hint(
                "Tokens expire; the server's options --token-retention and --tokens-max set after what time, and how many can be stored.",
            )
        }
        ClaimError::Lock(error) => from_lock(&error),
        ClaimError::Failed(error) => from_transaction(error),
    }
}

const ONE_TOKEN: &str =
    "All writes of a transaction need the same token or none: otherwise a repetition would run a part of them again.";

fn without_token() -> SqlError {
    let message = "the transaction has written under a token, and this statement has none";
    SqlError::new(Condition::ActiveTransaction, message).with_hint(ONE_TOKEN)
}
