//! COPY: data between a client and a table, piece by piece.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use execution::encode::Format;
use futures::StreamExt;
use planner::{CopyFormat, CopyFromPlan, CopySource, CopyTarget, CopyToPlan};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use types::SqlResult;

use crate::pg::client::Client;
use crate::session::Session;
use crate::session::run::tag;
use crate::session::statement::Statement;

/// Pieces of the client's data that wait for the parser.
const PIECES_AHEAD: usize = 16;

impl Session {
    /// COPY FROM: rows from the client, or from files and URLs, become part of the transaction.
    pub(crate) async fn copy_from(
        &mut self,
        plan: CopyFromPlan,
        statement: &Statement,
        client: &mut Client,
    ) -> SqlResult<String> {
        self.block.check_writable("COPY FROM")?;
        let (context, _hold) = self.run_context(statement);
        let _shown = self.seat.backend.copying(&context.progress);
        let execution = Arc::clone(&self.gateway.execution);
        let transaction = self.block.transaction();
        let copied = if plan.source == CopySource::Stdin {
            let format = if plan.options.format == CopyFormat::Binary { Format::Binary } else { Format::Text };
            client.begin_copy_in(format, plan.columns.len()).await?;
            let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
            let stdin = ReceiverStream::new(receiver).boxed();
            tokio::select! {
                copied = execution.copy_from(&plan, Some(stdin), transaction, &context) => copied,
                never = feed(client, sender) => match never {},
            }
        } else {
            execution.copy_from(&plan, None, transaction, &context).await
        }?;
        self.gateway.metrics.rows_in.inc_by(copied.rows);
        self.tell(copied.notices);
        Ok(tag("COPY", copied.rows))
    }

    /// COPY TO: rows to the client as fast as it reads them, or to a file.
    pub(crate) async fn copy_to(
        &mut self,
        plan: CopyToPlan,
        statement: &Statement,
        client: &mut Client,
    ) -> SqlResult<String> {
        self.block.transaction();
        let (context, _hold) = self.run_context(statement);
        let _shown = self.seat.backend.copying(&context.progress);
        let execution = Arc::clone(&self.gateway.execution);
        if plan.target != CopyTarget::Stdout {
            return Ok(tag("COPY", execution.copy_to_file(&plan, &context).await?));
        }
        let mut out = execution.copy_out(&plan, &context).await?;
        client.begin_copy_out(out.format, out.columns);
        let mut rows = 0;
        while let Some(piece) = out.pieces.next().await {
            let piece = piece?;
            client.copy_out(&piece.bytes, &piece.ends).await?;
            rows += piece.rows;
        }
        client.end_copy_out();
        self.gateway.metrics.rows_out.inc_by(rows);
        Ok(tag("COPY", rows))
    }
}

/// Hands over what the client sends, up to its end or failure; then waits to be dropped.
async fn feed(client: &mut Client, sender: mpsc::Sender<SqlResult<Bytes>>) -> Infallible {
    loop {
        let piece = client.copy_data().await.transpose();
        let Some(piece) = piece else { break };
        let failed = piece.is_err();
        // A parser that has failed takes no more; the rest is passed over once that is told.
        if sender.send(piece).await.is_err() || failed {
            break;
        }
    }
    drop(sender);
    std::future::pending().await
}
