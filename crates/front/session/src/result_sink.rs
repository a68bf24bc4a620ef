//! Receiver of results, independent of any protocol.

use binder::OutputColumn;
use bytes::Bytes;
use futures::future::BoxFuture;
use key_lookup::KeyLookupRows;
use types::{SqlError, SqlResult};
use value_codec::encode::{Format, TextStyle};

use crate::message_severity::Severity;
use crate::result_rows::{Rows, SendProgress};

/// Client of a session as a running statement sees it: receives results, and for COPY sends data.
pub trait ResultSink: Send {
    /// Sends a notice.
    fn notice(&mut self, severity: Severity, notice: &SqlError);

    /// Reports that a statement is complete.
    fn complete(&mut self, tag: String);

    /// Reports that the query string was empty.
    fn empty_query(&mut self);

    /// Reports that the portal has more rows, for another Execute.
    fn portal_suspended(&mut self);

    /// Describes the columns of the rows that follow.
    fn describe(&mut self, columns: &[OutputColumn], formats: &[Format]);

    /// Sends up to `rows_max` rows; waits for the client, so that buffered rows are bounded. Dropping the future leaves
    /// complete rows in the buffer.
    fn send<'a>(
        &'a mut self,
        rows: &'a mut Rows,
        formats: &'a [Format],
        rows_max: Option<u64>,
    ) -> BoxFuture<'a, SqlResult<SendProgress>>;

    /// Buffers complete rows without waiting, and returns their number.
    fn send_key_lookup_rows(
        &mut self,
        rows: KeyLookupRows,
        columns: &[OutputColumn],
        formats: &[Format],
        style: &TextStyle,
    ) -> SqlResult<u64>;

    /// Requests the data of COPY FROM STDIN.
    fn begin_copy_in(&mut self, format: Format, columns: usize) -> BoxFuture<'_, SqlResult<()>>;

    /// Returns the next chunk of data of COPY FROM STDIN; `None` at its end.
    ///
    /// # Errors
    /// 57014 if the client aborts the COPY, 08P01 if it sends another message.
    fn copy_data(&mut self) -> BoxFuture<'_, SqlResult<Option<Bytes>>>;

    /// Announces the data of COPY TO STDOUT.
    fn begin_copy_out(&mut self, format: Format, columns: usize);

    /// Sends data of COPY TO STDOUT, a message for each row that ends at one of `ends`; waits for the client, so that
    /// buffered data is bounded.
    fn copy_out<'a>(&'a mut self, bytes: &'a [u8], ends: &'a [usize]) -> BoxFuture<'a, SqlResult<()>>;

    /// Ends the data of COPY TO STDOUT.
    fn end_copy_out(&mut self);
}
