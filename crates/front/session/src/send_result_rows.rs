//! Last step of a statement with rows: sends them, all at once or in parts.

use types::SqlResult;
use value_codec::encode::Format;

use crate::portal::{ExecuteOutcome, Portal, PortalProgress};
use crate::result_rows::SendProgress;
use crate::result_sink::ResultSink;
use crate::running_statement::Statement;
use crate::session::Session;
use crate::started_statement::{OpenResult, StartedStatement, command_tag};

impl Session {
    /// Sends all rows of a statement of a simple query, as text unless a cursor is binary, and returns its command tag.
    pub(crate) async fn send_all(
        &mut self,
        started: StartedStatement,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<String> {
        let mut result = match started {
            StartedStatement::Rows(result) => result,
            StartedStatement::Done(tag) => return Ok(tag),
        };
        let formats = match &result {
            OpenResult::Plan { rows, .. } => {
                let formats = vec![Format::Text; rows.columns.len()];
                client.describe(&rows.columns, &formats);
                formats
            }
            OpenResult::Cursor { name, .. } => {
                let (rows, formats) = self.cursor(name)?;
                client.describe(&rows.columns, formats);
                formats.to_vec()
            }
        };
        let sent = self.send(&mut result, &formats, None, statement, client).await?;
        Ok(command_tag(result.tag_word(), sent.rows))
    }

    /// Sends up to `rows_max` rows of a portal, which keeps the others.
    pub(crate) async fn send_portal_rows(
        &mut self,
        portal: &mut Portal,
        mut result: OpenResult,
        rows_max: Option<u64>,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<ExecuteOutcome> {
        let sent = self.send(&mut result, &portal.formats, rows_max, statement, client).await?;
        let tag_word = result.tag_word();
        if sent.finished {
            portal.progress = PortalProgress::Finished { tag_word };
            return Ok(ExecuteOutcome::Complete(command_tag(tag_word, sent.rows)));
        }
        portal.progress = PortalProgress::Open(result, statement.kind());
        Ok(ExecuteOutcome::Suspended)
    }

    async fn send(
        &mut self,
        result: &mut OpenResult,
        formats: &[Format],
        rows_max: Option<u64>,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<SendProgress> {
        let sent = match result {
            OpenResult::Plan { rows, .. } => {
                statement.adopt_lease_of(rows);
                client.send(rows, formats, rows_max).await?
            }
            OpenResult::Cursor { name, rows_wanted: left } => {
                let rows_max = left.iter().copied().chain(rows_max).min();
                let rows = self.cursor_rows(name)?;
                statement.adopt_lease_of(rows);
                let sent = client.send(rows, formats, rows_max).await?;
                *left = left.map(|left| left - sent.rows);
                SendProgress { finished: sent.finished || *left == Some(0), ..sent }
            }
        };
        self.instance.metrics.rows_out.inc_by(sent.rows);
        Ok(sent)
    }
}
