//! Reads files one after the other on a thread of its own, slightly ahead of the parser.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use external_files::{FileOperation, cannot_open, io_failure};
use futures::StreamExt as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use types::{Condition, SqlError, SqlResult};

use crate::from::{InputItem, InputStream};

/// Bytes of one read.
const READ_BYTES: usize = 1 << 20;
/// Number of reads ahead of the parser.
const READS_AHEAD: usize = 2;

/// Returns the total bytes of all files.
///
/// # Errors
/// PostgreSQL's errors for a file that is missing, not readable or a directory.
pub(crate) fn total_bytes(paths: &[PathBuf]) -> SqlResult<u64> {
    let mut total = 0;
    for path in paths {
        let found = path.metadata().map_err(|error| cannot_open(path, FileOperation::Reading, &error))?;
        if found.is_dir() {
            return Err(SqlError::new(Condition::WrongObjectType, format!("\"{}\" is a directory", path.display())));
        }
        total += found.len();
    }
    Ok(total)
}

/// Reads the files in order; each starts with a [`InputItem::Open`]. Reading stops when the stream is dropped.
pub(crate) fn read_files(paths: Vec<PathBuf>) -> InputStream {
    let (sender, receiver) = mpsc::channel(READS_AHEAD);
    tokio::task::spawn_blocking(move || {
        for path in &paths {
            match read_file(path, &sender) {
                Ok(true) => {}
                // The stream was dropped.
                Ok(false) => return,
                Err(error) => {
                    let _ = sender.blocking_send(Err(error));
                    return;
                }
            }
        }
    });
    ReceiverStream::new(receiver).boxed()
}

/// Sends a file piece by piece; returns `false` if the receiver was dropped.
fn read_file(path: &Path, sender: &mpsc::Sender<SqlResult<InputItem>>) -> SqlResult<bool> {
    let mut file = File::open(path).map_err(|error| cannot_open(path, FileOperation::Reading, &error))?;
    if sender.blocking_send(Ok(InputItem::Open(Some(path.display().to_string())))).is_err() {
        return Ok(false);
    }
    loop {
        let mut piece = Vec::with_capacity(READ_BYTES);
        let limit = u64::try_from(READ_BYTES).expect("a piece's size fits 64 bits");
        let read = file
            .by_ref()
            .take(limit)
            .read_to_end(&mut piece)
            .map_err(|error| io_failure(path, FileOperation::Reading, &error))?;
        if read == 0 {
            return Ok(true);
        }
        if sender.blocking_send(Ok(InputItem::Bytes(Bytes::from(piece)))).is_err() {
            return Ok(false);
        }
    }
}
