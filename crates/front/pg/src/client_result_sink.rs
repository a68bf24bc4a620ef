//! Client of one session over PostgreSQL's wire protocol.

use std::io;

use binder::OutputColumn;
use bytes::{BufMut, Bytes, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;
use key_lookup::KeyLookupRows;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::{CopyDone, CopyInResponse, CopyOutResponse};
use pgwire::messages::extendedquery::PortalSuspended;
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse};
use session::extended_query_requests::protocol_violation;
use session::message_severity::Severity;
use session::result_rows::{Rows, SendProgress};
use session::result_sink::ResultSink;
use types::{Condition, QueryId, SqlError, SqlResult};
use value_codec::encode::{Format, TextStyle};

use crate::buffered_transport::{Inbox, Outbox};
use crate::data_rows::{self, format_code, row_description};
use crate::error_message::{error_response, notice_response};
use crate::frontend_messages::FrontendMessage;

/// Both directions of one client's connection.
pub(crate) struct ClientSink {
    pub(crate) inbox: Inbox,
    pub(crate) outbox: Outbox,
}

impl ClientSink {
    pub(crate) fn put(&mut self, message: PgWireBackendMessage) {
        self.outbox.put(message);
    }

    /// Buffers an error; `query_id` is that of the failed statement, if any.
    pub(crate) fn error(&mut self, severity: Severity, error: &SqlError, query_id: Option<QueryId>) {
        self.put(PgWireBackendMessage::ErrorResponse(error_response(severity, error, query_id)));
    }
}

impl ResultSink for ClientSink {
    fn notice(&mut self, severity: Severity, notice: &SqlError) {
        self.put(PgWireBackendMessage::NoticeResponse(notice_response(severity, notice)));
    }

    fn complete(&mut self, tag: String) {
        self.put(PgWireBackendMessage::CommandComplete(CommandComplete::new(tag)));
    }

    fn empty_query(&mut self) {
        self.put(PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()));
    }

    fn portal_suspended(&mut self) {
        self.put(PgWireBackendMessage::PortalSuspended(PortalSuspended::new()));
    }

    fn describe(&mut self, columns: &[OutputColumn], formats: &[Format]) {
        self.put(PgWireBackendMessage::RowDescription(row_description(columns, formats)));
    }

    fn send<'a>(
        &'a mut self,
        rows: &'a mut Rows,
        formats: &'a [Format],
        rows_max: Option<u64>,
    ) -> BoxFuture<'a, SqlResult<SendProgress>> {
        data_rows::send(rows, &mut self.outbox, formats, rows_max).boxed()
    }

    fn send_key_lookup_rows(
        &mut self,
        rows: KeyLookupRows,
        columns: &[OutputColumn],
        formats: &[Format],
        style: &TextStyle,
    ) -> SqlResult<u64> {
        data_rows::send_key_lookup_rows(rows, columns, formats, style, &mut self.outbox.buffer)
    }

    fn begin_copy_in(&mut self, format: Format, columns: usize) -> BoxFuture<'_, SqlResult<()>> {
        let (code, count, codes) = copy_formats(format, columns);
        self.put(PgWireBackendMessage::CopyInResponse(CopyInResponse::new(code, count, codes)));
        async { self.outbox.flush().await.map_err(connection_lost) }.boxed()
    }

    fn copy_data(&mut self) -> BoxFuture<'_, SqlResult<Option<Bytes>>> {
        next_copy_data(&mut self.inbox).boxed()
    }

    fn begin_copy_out(&mut self, format: Format, columns: usize) {
        let (code, count, codes) = copy_formats(format, columns);
        self.put(PgWireBackendMessage::CopyOutResponse(CopyOutResponse::new(code, count, codes)));
    }

    fn copy_out<'a>(&'a mut self, bytes: &'a [u8], ends: &'a [usize]) -> BoxFuture<'a, SqlResult<()>> {
        async move {
            put_copy_data(&mut self.outbox.buffer, bytes, ends)?;
            self.outbox.flush_if_full().await.map_err(connection_lost)
        }
        .boxed()
    }

    fn end_copy_out(&mut self) {
        self.put(PgWireBackendMessage::CopyDone(CopyDone::new()));
    }
}

/// Reads the next chunk of COPY data; `None` at its end.
async fn next_copy_data(inbox: &mut Inbox) -> SqlResult<Option<Bytes>> {
    loop {
        let Some(decoded) = inbox.next().await else {
            return Err(SqlError::new(Condition::ConnectionFailure, "unexpected EOF on client connection"));
        };
        let decoded = decoded?;
        return match decoded.message? {
            FrontendMessage::CopyData(bytes) => Ok(Some(bytes)),
            FrontendMessage::CopyDone => Ok(None),
            FrontendMessage::CopyFail(reason) => {
                Err(SqlError::new(Condition::QueryCanceled, format!("COPY from stdin failed: {reason}")))
            }
            // A client may end its batch before it sends the data.
            FrontendMessage::Flush | FrontendMessage::Sync => continue,
            _ => Err(protocol_violation(format!(
                "unexpected message type 0x{:02X} during COPY from stdin",
                decoded.kind
            ))),
        };
    }
}

/// Appends a CopyData message for each chunk that ends at one of `ends`.
fn put_copy_data(buffer: &mut BytesMut, bytes: &[u8], ends: &[usize]) -> SqlResult<()> {
    let mut start = 0;
    for end in ends {
        let data = &bytes[start..*end];
        start = *end;
        let length = i32::try_from(data.len() + 4).map_err(|_| {
            SqlError::new(Condition::ProgramLimitExceeded, "a row is larger than a protocol message can be")
        })?;
        buffer.put_u8(b'd');
        buffer.put_i32(length);
        buffer.put_slice(data);
    }
    Ok(())
}

fn copy_formats(format: Format, columns: usize) -> (i8, i16, Vec<i16>) {
    let code = format_code(format);
    let count = i16::try_from(columns).unwrap_or(i16::MAX);
    (i8::try_from(code).expect("0 or 1"), count, vec![code; columns])
}

/// Converts a socket error to the error of the statement that used the socket (`08006`).
pub(crate) fn connection_lost(error: io::Error) -> SqlError {
    SqlError::new(Condition::ConnectionFailure, format!("connection to client lost: {error}"))
}
