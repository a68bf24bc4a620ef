//! Last step of a statement with rows: sends them, all at once or in parts.

use types::SqlResult;
use value_codec::encode::Format;

use crate::portal::{Advance, Portal, Progress};
use crate::result_sink::ResultSink;
use crate::rows::Sent;
use crate::session::Session;
use crate::started::{OpenResult, Started, tag};
use crate::statement::Statement;

impl Session {
    /// Sends all rows of a statement of a simple query, as text unless a cursor is binary, and returns its command tag.
    pub(crate) async fn send_all(
        &mut self,
        started: Started,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<String> {
        let mut result = match started {
            Started::Rows(result) => result,
            Started::Done(tag) => return Ok(tag),
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
        Ok(tag(result.word(), sent.rows))
    }

    /// Sends up to `rows_max` rows of a portal, which keeps the others.
    pub(crate) async fn send_part(
        &mut self,
        portal: &mut Portal,
        mut result: OpenResult,
        rows_max: Option<u64>,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<Advance> {
        let sent = self.send(&mut result, &portal.formats, rows_max, statement, client).await?;
        let word = result.word();
        if sent.finished {
            portal.progress = Progress::Finished { word };
            return Ok(Advance::Complete(tag(word, sent.rows)));
        }
        portal.progress = Progress::Open(result, statement.kind());
        Ok(Advance::Suspended)
    }

    async fn send(
        &mut self,
        result: &mut OpenResult,
        formats: &[Format],
        rows_max: Option<u64>,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<Sent> {
        let sent = match result {
            OpenResult::Plan { rows, .. } => {
                statement.resumes(rows);
                client.send(rows, formats, rows_max).await?
            }
            OpenResult::Cursor { name, left } => {
                let rows_max = left.iter().copied().chain(rows_max).min();
                let rows = self.cursor_rows(name)?;
                statement.resumes(rows);
                let sent = client.send(rows, formats, rows_max).await?;
                *left = left.map(|left| left - sent.rows);
                Sent { finished: sent.finished || *left == Some(0), ..sent }
            }
        };
        self.instance.metrics.rows_out.inc_by(sent.rows);
        Ok(sent)
    }
}
