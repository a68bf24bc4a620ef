//! Message framing: a four-byte big-endian length, then the message as JSON.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Longest message, which bounds the memory that an unauthenticated peer can take.
pub(crate) const FRAME_BYTES_MAX: usize = 64 << 10;
/// Length of the length prefix.
const LENGTH_BYTES: usize = 4;

/// Failure to read or write a message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("a join protocol message of {bytes} bytes exceeds the limit of {FRAME_BYTES_MAX} bytes")]
    TooLong { bytes: usize },
    #[error("a join protocol message is not valid JSON of the expected form")]
    Malformed(#[from] serde_json::Error),
}

/// Reads the next message; `None` if the peer has closed the connection between two messages.
///
/// Not cancel safe: after a future was dropped halfway, the remaining bytes would be read as a new message.
pub(crate) async fn read_message<M: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
) -> Result<Option<M>, FrameError> {
    let mut head = [0; LENGTH_BYTES];
    let first = from.read(&mut head).await?;
    if first == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[first..]).await?;
    let bytes = usize::try_from(u32::from_be_bytes(head)).unwrap_or(usize::MAX);
    if FRAME_BYTES_MAX < bytes {
        return Err(FrameError::TooLong { bytes });
    }
    let mut body = vec![0; bytes];
    from.read_exact(&mut body).await?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// Writes a message.
pub(crate) async fn write_message<M: Serialize + Sync>(
    to: &mut (impl AsyncWrite + Unpin),
    message: &M,
) -> Result<(), FrameError> {
    let mut frame = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut frame, message)?;
    let bytes = frame.len() - LENGTH_BYTES;
    if FRAME_BYTES_MAX < bytes {
        return Err(FrameError::TooLong { bytes });
    }
    let head = u32::try_from(bytes).expect("a frame is not longer than FRAME_BYTES_MAX");
    frame[..LENGTH_BYTES].copy_from_slice(&head.to_be_bytes());
    to.write_all(&frame).await?;
    Ok(to.flush().await?)
}
