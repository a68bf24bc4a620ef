//! The receiver of results, independent of any protocol.

use binder::OutputColumn;
use bytes::Bytes;
use futures::future::BoxFuture;
use key_lookup::PointRows;
use types::{SqlError, SqlResult};
use value_codec::encode::{Format, TextStyle};

use crate::notice::Severity;
use crate::rows::{Rows, Sent};

/// The client of a session, as a running statement sees it: something to tell, and for COPY something to ask.
pub trait ResultSink: Send {
    /// Tells of something beside results.
    fn notice(&mut self, severity: Severity, notice: &SqlError);

    /// Tells that a statement is done.
    fn complete(&mut self, tag: String);

    /// Tells that there was no statement.
    fn empty(&mut self);

    /// Tells that there are more rows, to be asked for.
    fn suspended(&mut self);

    /// Tells which columns the rows have that follow.
    fn describe(&mut self, columns: &[OutputColumn], formats: &[Format]);

    /// Sends up to `rows_max` rows; the client's pace bounds what is buffered. Dropping the future half-way leaves whole rows.
    fn send<'a>(
        &'a mut self,
        rows: &'a mut Rows,
        formats: &'a [Format],
        rows_max: Option<u64>,
    ) -> BoxFuture<'a, SqlResult<Sent>>;

    /// Buffers rows that are all there; how many they are.
    fn put_all(
        &mut self,
        rows: PointRows,
        columns: &[OutputColumn],
        formats: &[Format],
        style: &TextStyle,
    ) -> SqlResult<u64>;

    /// Asks for the data of COPY FROM STDIN.
    fn begin_copy_in(&mut self, format: Format, columns: usize) -> BoxFuture<'_, SqlResult<()>>;

    /// The next piece of COPY FROM STDIN; `None` at its end.
    ///
    /// # Errors
    /// 57014 where the client gave up, 08P01 where it spoke of something else.
    fn copy_data(&mut self) -> BoxFuture<'_, SqlResult<Option<Bytes>>>;

    /// Announces the data of COPY TO STDOUT.
    fn begin_copy_out(&mut self, format: Format, columns: usize);

    /// Sends rows of COPY TO STDOUT, one up to each of `ends`; the client's pace bounds what is buffered.
    fn copy_out<'a>(&'a mut self, bytes: &'a [u8], ends: &'a [usize]) -> BoxFuture<'a, SqlResult<()>>;

    /// Ends the data of COPY TO STDOUT.
    fn end_copy_out(&mut self);
}
