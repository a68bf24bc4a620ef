//! COPY: data between a client or files and a table, chunk by chunk.

use std::convert::Infallible;
use std::sync::Arc;

use binder::write::CopyFormat;
use binder::{CopyFromPlan, CopySource, CopyTarget, CopyToPlan};
use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use txn::{StatementDigest, StatementHasher};
use types::SqlResult;
use value_codec::encode::Format;

use crate::result_sink::ResultSink;
use crate::retry_reason::{AttemptError, AttemptResult};
use crate::running_statement::Statement;
use crate::session::Session;
use crate::started_statement::{StartedStatement, command_tag};

/// Chunks of the client's data that wait for the parser at most.
const CHUNKS_AHEAD_MAX: usize = 16;

impl Session {
    /// COPY FROM: adds rows from the client, from files or URLs to the transaction.
    pub(crate) async fn copy_from(
        &mut self,
        plan: CopyFromPlan,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<String> {
        self.transaction_block.check_writable("COPY FROM")?;
        let (context, _hold) = self.run_context(statement);
        let _shown = self.backend_guard.backend.show_copy(&context.progress);
        let copier = Arc::clone(self.instance.execution.copier());
        let mut data =
            CopyInputDigest { work: self.token_request.is_some().then(StatementHasher::new), is_complete: false };
        let transaction = self.transaction_block.transaction();
        let copied = if plan.source == CopySource::Stdin {
            client.begin_copy_in(stdin_format(&plan), plan.columns.len()).await?;
            let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD_MAX);
            let stdin = ReceiverStream::new(receiver).boxed();
            let copied = tokio::select! {
                copied = copier.copy_from(&plan, Some(stdin), transaction, &context) => copied?,
                never = feed_parser(client, sender, &mut data) => match never {},
            };
            data.drain(client).await?;
            Ok(copied)
        } else {
            copier.copy_from(&plan, None, transaction, &context).await
        }?;
        self.instance.metrics.rows_in.inc_by(copied.rows);
        self.add_notices(copied.notices);
        let tag = command_tag("COPY", copied.rows);
        self.record_outcome(&tag, copied.rows, false, data.digest().filter(|_| plan.source == CopySource::Stdin));
        Ok(tag)
    }

    /// COPY TO: sends rows to the client as fast as it reads them, or writes them to a file.
    pub(crate) async fn copy_to(
        &mut self,
        plan: CopyToPlan,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> AttemptResult<StartedStatement> {
        self.transaction_block.transaction();
        let (context, _hold) = self.run_context(statement);
        let _shown = self.backend_guard.backend.show_copy(&context.progress);
        let copier = Arc::clone(self.instance.execution.copier());
        let from_run = |error| AttemptError::from_run(error, &context, statement);
        if plan.target != CopyTarget::Stdout {
            let rows = copier.copy_to_file(&plan, &context).await.map_err(from_run)?;
            return Ok(StartedStatement::Done(command_tag("COPY", rows)));
        }
        let mut out = copier.copy_out(&plan, &context).await.map_err(from_run)?;
        // From here on the client gets rows: the statement cannot be retried.
        client.begin_copy_out(out.format, out.columns);
        let mut rows = 0;
        while let Some(piece) = out.chunks.next().await {
            let piece = piece?;
            client.copy_out(&piece.bytes, &piece.ends).await?;
            rows += piece.rows;
        }
        client.end_copy_out();
        self.instance.metrics.rows_out.inc_by(rows);
        Ok(StartedStatement::Done(command_tag("COPY", rows)))
    }
}

/// Returns the format in which the client sends the data of a COPY.
pub(crate) fn stdin_format(plan: &CopyFromPlan) -> Format {
    if plan.options.format == CopyFormat::Binary { Format::Binary } else { Format::Text }
}

/// Data that the client has sent, as far as a repetition under a token has to match it.
struct CopyInputDigest {
    /// Digest of the data; `None` without a token.
    work: Option<StatementHasher>,
    /// True once the client has ended the data.
    is_complete: bool,
}

impl CopyInputDigest {
    /// Reads the data after the end-of-data marker, for the digest.
    async fn drain(&mut self, client: &mut dyn ResultSink) -> SqlResult<()> {
        while let Some(work) = self.work.as_mut().filter(|_| !self.is_complete) {
            match client.copy_data().await? {
                Some(piece) => work.add_data(&piece),
                None => self.is_complete = true,
            }
        }
        Ok(())
    }

    fn digest(&self) -> Option<StatementDigest> {
        self.work.as_ref().map(StatementHasher::digest)
    }
}

/// Passes the client's data to the parser, up to its end or a failure; then waits to be dropped.
async fn feed_parser(
    client: &mut dyn ResultSink,
    sender: mpsc::Sender<SqlResult<Bytes>>,
    data: &mut CopyInputDigest,
) -> Infallible {
    loop {
        let piece = client.copy_data().await.transpose();
        let Some(piece) = piece else {
            data.is_complete = true;
            break;
        };
        if let (Some(work), Ok(piece)) = (&mut data.work, &piece) {
            work.add_data(piece);
        }
        let failed = piece.is_err();
        // A parser that has failed takes no more data; the client's further data is skipped once the error is reported.
        if sender.send(piece).await.is_err() || failed {
            break;
        }
    }
    drop(sender);
    std::future::pending().await
}
