//! The client of one session, as a running statement sees it: something to tell, and for COPY something to ask.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::{CopyDone, CopyInResponse, CopyOutResponse};
use pgwire::messages::response::CommandComplete;
use types::{Condition, QueryId, SqlError, SqlResult};
use value_codec::encode::Format;

use crate::pg::error_message::{error_response, notice_response};
use crate::pg::frontend::{Frontend, violation};
use crate::pg::rows::format_code;
use crate::pg::transport::{Inbox, Outbox};
use crate::session::notice::Severity;

/// Both directions of one connection.
pub(crate) struct Client {
    pub(crate) inbox: Inbox,
    pub(crate) outbox: Outbox,
}

impl Client {
    pub(crate) fn put(&mut self, message: PgWireBackendMessage) {
        self.outbox.put(message);
    }

    /// `query_id` is that of the statement that failed, where one did.
    pub(crate) fn error(&mut self, severity: Severity, error: &SqlError, query_id: Option<QueryId>) {
        self.put(PgWireBackendMessage::ErrorResponse(error_response(severity, error, query_id)));
    }

    pub(crate) fn notice(&mut self, severity: Severity, notice: &SqlError) {
        self.put(PgWireBackendMessage::NoticeResponse(notice_response(severity, notice)));
    }

    pub(crate) fn complete(&mut self, tag: String) {
        self.put(PgWireBackendMessage::CommandComplete(CommandComplete::new(tag)));
    }

    /// Asks for the data of COPY FROM STDIN.
    pub(crate) async fn begin_copy_in(&mut self, format: Format, columns: usize) -> SqlResult<()> {
        let (code, count, codes) = copy_formats(format, columns);
        self.put(PgWireBackendMessage::CopyInResponse(CopyInResponse::new(code, count, codes)));
        self.outbox.flush().await.map_err(lost)
    }

    /// The next piece of COPY FROM STDIN; `None` at its end.
    ///
    /// # Errors
    /// 57014 where the client gave up, 08P01 where it spoke of something else.
    pub(crate) async fn copy_data(&mut self) -> SqlResult<Option<Bytes>> {
        loop {
            let Some(decoded) = self.inbox.next().await else {
                return Err(SqlError::new(Condition::ConnectionFailure, "unexpected EOF on client connection"));
            };
            let decoded = decoded?;
            return match decoded.message? {
                Frontend::CopyData(bytes) => Ok(Some(bytes)),
                Frontend::CopyDone => Ok(None),
                Frontend::CopyFail(reason) => {
                    Err(SqlError::new(Condition::QueryCanceled, format!("COPY from stdin failed: {reason}")))
                }
                // A client may end its batch before it sends the data.
                Frontend::Flush | Frontend::Sync => continue,
                _ => Err(violation(format!("unexpected message type 0x{:02X} during COPY from stdin", decoded.kind))),
            };
        }
    }

    /// Announces the data of COPY TO STDOUT.
    pub(crate) fn begin_copy_out(&mut self, format: Format, columns: usize) {
        let (code, count, codes) = copy_formats(format, columns);
        self.put(PgWireBackendMessage::CopyOutResponse(CopyOutResponse::new(code, count, codes)));
    }

    /// Sends rows of COPY TO STDOUT, one message up to each of `ends`; the client's pace bounds what is buffered.
    pub(crate) async fn copy_out(&mut self, bytes: &[u8], ends: &[usize]) -> SqlResult<()> {
        put_copy_data(&mut self.outbox.buffer, bytes, ends)?;
        self.outbox.flush_if_full().await.map_err(lost)
    }

    /// Ends the data of COPY TO STDOUT.
    pub(crate) fn end_copy_out(&mut self) {
        self.put(PgWireBackendMessage::CopyDone(CopyDone::new()));
    }
}

/// A CopyData message for each piece that ends at one of `ends`.
fn put_copy_data(buffer: &mut BytesMut, bytes: &[u8], ends: &[usize]) -> SqlResult<()> {
    let mut start = 0;
    for end in ends {
        let data = &bytes[start..*end];
        start = *end;
        let length = i32::try_from(data.len() + 4)
            .map_err(|_| SqlError::new(Condition::ProgramLimitExceeded, "a row is larger than a message can be"))?;
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

/// A socket that failed, as an error of the statement that used it.
pub(crate) fn lost(error: io::Error) -> SqlError {
    SqlError::new(Condition::ConnectionFailure, format!("connection to client lost: {error}"))
}
