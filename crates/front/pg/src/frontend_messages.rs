//! Messages of clients: frames are cut from the byte stream and decoded with every length checked.
//!
//! `pgwire` encodes the messages that Kiln sends; those that it receives are decoded here, because `pgwire` 0.42.1
//! reads past the end of a message with wrong inner lengths, and replaces text that is not UTF-8.

use bytes::{Buf, Bytes, BytesMut};
use session::extended_query_requests::{BindRequest, Target, protocol_violation};
use types::{Condition, SqlError, SqlResult};

#[cfg(test)]
mod tests;

/// Maximum length in bytes of a message before authentication; PostgreSQL's limit.
pub(crate) const STARTUP_BYTES_MAX: usize = 10_000;
/// Maximum length in bytes of a message of the password exchange.
pub(crate) const PASSWORD_BYTES_MAX: usize = 65_535;
/// Maximum length in bytes of a message of an authenticated client; PostgreSQL's limit.
pub(crate) const MESSAGE_BYTES_MAX: usize = 0x3fff_ffff;

/// Message of a client after startup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FrontendMessage {
    Query(String),
    Parse { name: String, sql: String, parameter_types: Vec<u32> },
    Bind(BindRequest),
    Describe(Target),
    Execute { portal: String, rows_max: i32 },
    Close(Target),
    Flush,
    Sync,
    Password(Bytes),
    CopyData(Bytes),
    CopyDone,
    CopyFail(String),
    Terminate,
}

/// First packet of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FirstPacket {
    /// Request for TLS.
    TlsRequest,
    /// Request for GSSAPI encryption.
    GssRequest,
    /// Request to stop the statement of another connection.
    Cancel { pid: i32, secret: Bytes },
    /// Startup packet: protocol version and parameters as sent; names beginning with `_pq_.` are protocol options.
    Startup { major: u16, minor: u16, parameters: Vec<(String, String)> },
}

const CANCEL_CODE: u32 = 80_877_102;
const TLS_CODE: u32 = 80_877_103;
const GSS_CODE: u32 = 80_877_104;

/// Cuts the first packet off `buffer` and decodes it; `None` while it is incomplete.
///
/// # Errors
/// `08P01` if the bytes are no such packet: the connection must end.
pub(crate) fn decode_first_packet(buffer: &mut BytesMut) -> SqlResult<Option<FirstPacket>> {
    let Some(length) = peek_length(buffer, 0) else { return Ok(None) };
    if !(8..=STARTUP_BYTES_MAX).contains(&length) {
        return Err(protocol_violation("invalid length of startup packet"));
    }
    if buffer.len() < length {
        return Ok(None);
    }
    let mut body = MessageReader(buffer.split_to(length).freeze());
    body.0.advance(4);
    let code = body.u32()?;
    Ok(Some(match code {
        TLS_CODE => FirstPacket::TlsRequest,
        GSS_CODE => FirstPacket::GssRequest,
        CANCEL_CODE => {
            let pid = body.i32()?;
            if !(4..=256).contains(&body.0.len()) {
                return Err(protocol_violation("invalid length of cancel request"));
            }
            FirstPacket::Cancel { pid, secret: body.0 }
        }
        version => {
            let mut parameters = Vec::new();
            loop {
                let name = body.text()?;
                if name.is_empty() {
                    break;
                }
                parameters.push((name, body.text()?));
            }
            if !body.0.is_empty() {
                return Err(protocol_violation("invalid startup packet layout: expected terminator as last byte"));
            }
            let [high, low] = [version >> 16, version & 0xffff].map(|half| u16::try_from(half).expect("16 bits"));
            FirstPacket::Startup { major: high, minor: low, parameters }
        }
    }))
}

/// Cuts one message off `buffer` and decodes it; `None` while it is incomplete.
///
/// # Errors
/// `08P01` if the frame cannot be decoded (unknown type, impossible length): the stream cannot be read any further and
/// the connection must end. If only the content is wrong, the frame is consumed and the error is in [`DecodedMessage`].
pub(crate) fn decode(buffer: &mut BytesMut, bytes_max: usize) -> SqlResult<Option<DecodedMessage>> {
    let Some(&kind) = buffer.first() else { return Ok(None) };
    if !b"QPBDECHSpdcfX".contains(&kind) {
        return Err(protocol_violation(format!("invalid frontend message type {kind}")));
    }
    let Some(length) = peek_length(buffer, 1) else { return Ok(None) };
    if !(4..=bytes_max).contains(&length) {
        return Err(protocol_violation(format!("invalid message length {length}")));
    }
    if buffer.len() < length + 1 {
        return Ok(None);
    }
    let mut body = MessageReader(buffer.split_to(length + 1).freeze());
    body.0.advance(5);
    Ok(Some(DecodedMessage { kind, message: decode_body(kind, body) }))
}

/// Complete frame with its type and its decoded message, or the error of its content.
#[derive(Debug)]
pub(crate) struct DecodedMessage {
    pub(crate) kind: u8,
    pub(crate) message: SqlResult<FrontendMessage>,
}

fn decode_body(kind: u8, mut body: MessageReader) -> SqlResult<FrontendMessage> {
    let message = match kind {
        b'Q' => FrontendMessage::Query(body.text()?),
        b'P' => {
            let (name, sql) = (body.text()?, body.text()?);
            let count = body.count()?;
            FrontendMessage::Parse {
                name,
                sql,
                parameter_types: (0..count).map(|_| body.u32()).collect::<SqlResult<_>>()?,
            }
        }
        b'B' => {
            let (portal, statement) = (body.text()?, body.text()?);
            let parameter_formats = body.formats()?;
            let count = body.count()?;
            let parameters = (0..count).map(|_| body.value()).collect::<SqlResult<_>>()?;
            let result_formats = body.formats()?;
            FrontendMessage::Bind(BindRequest { portal, statement, parameter_formats, parameters, result_formats })
        }
        b'D' => FrontendMessage::Describe(body.target("DESCRIBE")?),
        b'C' => FrontendMessage::Close(body.target("CLOSE")?),
        b'E' => FrontendMessage::Execute { portal: body.text()?, rows_max: body.i32()? },
        b'H' => FrontendMessage::Flush,
        b'S' => FrontendMessage::Sync,
        b'X' => FrontendMessage::Terminate,
        b'c' => FrontendMessage::CopyDone,
        b'f' => FrontendMessage::CopyFail(body.text()?),
        b'p' => return Ok(FrontendMessage::Password(body.0)),
        b'd' => return Ok(FrontendMessage::CopyData(body.0)),
        other => return Err(protocol_violation(format!("invalid frontend message type {other}"))),
    };
    if body.0.is_empty() { Ok(message) } else { Err(protocol_violation("invalid message format")) }
}

/// Returns the length field at `offset`, which counts itself; `None` until all four bytes are buffered.
fn peek_length(buffer: &BytesMut, offset: usize) -> Option<usize> {
    let field = buffer.get(offset..offset + 4)?;
    // A negative length becomes a huge one, which exceeds every limit.
    Some(u32::from_be_bytes(field.try_into().expect("four bytes")) as usize)
}

/// Unread part of a message; reading past its end is an error.
pub(crate) struct MessageReader(pub(crate) Bytes);

impl MessageReader {
    fn take(&mut self, length: usize) -> SqlResult<Bytes> {
        if self.0.len() < length {
            return Err(protocol_violation("insufficient data left in message"));
        }
        Ok(self.0.split_to(length))
    }

    pub(crate) fn u32(&mut self) -> SqlResult<u32> {
        Ok(self.take(4)?.get_u32())
    }

    pub(crate) fn i32(&mut self) -> SqlResult<i32> {
        Ok(self.take(4)?.get_i32())
    }

    fn count(&mut self) -> SqlResult<u16> {
        Ok(self.take(2)?.get_u16())
    }

    fn formats(&mut self) -> SqlResult<Vec<i16>> {
        let count = self.count()?;
        (0..count).map(|_| Ok(self.take(2)?.get_i16())).collect()
    }

    fn value(&mut self) -> SqlResult<Option<Bytes>> {
        match self.i32()? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => self.take(length).map(Some),
                Err(_) => Err(protocol_violation("invalid message format")),
            },
        }
    }

    /// Reads text up to its zero byte.
    pub(crate) fn text(&mut self) -> SqlResult<String> {
        let Some(end) = self.0.iter().position(|byte| *byte == 0) else {
            return Err(protocol_violation("invalid string in message"));
        };
        let text = self.0.split_to(end);
        self.0.advance(1);
        match std::str::from_utf8(&text) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => {
                let bad = text.get(error.valid_up_to()).copied().unwrap_or_default();
                let message = format!("invalid byte sequence for encoding \"UTF8\": 0x{bad:02x}");
                Err(SqlError::new(Condition::CharacterNotInRepertoire, message))
            }
        }
    }

    fn target(&mut self, message: &str) -> SqlResult<Target> {
        match self.take(1)?.get_u8() {
            b'S' => Ok(Target::Statement(self.text()?)),
            b'P' => Ok(Target::Portal(self.text()?)),
            other => Err(protocol_violation(format!("invalid {message} message subtype {other}"))),
        }
    }
}
