//! Client that sends exactly the bytes of a test, well-formed or not.

use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Raw connection without protocol logic.
pub(super) struct RawClient {
    stream: TcpStream,
    read: BytesMut,
}

/// Message of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerMessage {
    pub(super) kind: char,
    pub(super) body: Bytes,
}

impl ServerMessage {
    /// Returns a field of an error or a notice.
    pub(super) fn field(&self, code: char) -> Option<String> {
        let mut rest = &self.body[..];
        while let Some((&found, after)) = rest.split_first() {
            if found == 0 {
                break;
            }
            let end = after.iter().position(|byte| *byte == 0).unwrap();
            if found == code as u8 {
                return Some(String::from_utf8(after[..end].to_vec()).unwrap());
            }
            rest = &after[end + 1..];
        }
        None
    }

    /// Returns the first text of the body: a command tag, a setting's name.
    pub(super) fn text(&self) -> String {
        let end = self.body.iter().position(|byte| *byte == 0).unwrap_or(self.body.len());
        String::from_utf8_lossy(&self.body[..end]).into_owned()
    }

    /// Returns the values of a row.
    pub(super) fn values(&self) -> Vec<Option<Bytes>> {
        let mut body = self.body.clone();
        (0..body.get_u16())
            .map(|_| match body.get_i32() {
                -1 => None,
                length => Some(body.split_to(usize::try_from(length).unwrap())),
            })
            .collect()
    }
}

impl RawClient {
    pub(super) async fn open(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), read: BytesMut::new() }
    }

    /// Connects as `kiln` and waits until the server is ready for queries.
    pub(super) async fn start(address: SocketAddr) -> Self {
        let mut wire = Self::open(address).await;
        wire.send_raw(&startup(&[("user", "kiln"), ("database", "kiln")])).await;
        let said = wire.until_ready().await;
        assert_eq!(said.last().unwrap().kind, 'Z', "{said:?}");
        wire
    }

    pub(super) async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Sends bytes that the server may refuse before it has read all.
    pub(super) async fn send_ignoring_errors(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Closes the sending direction.
    pub(super) async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Reads one byte outside of any message, the response to a request for encryption.
    pub(super) async fn byte(&mut self) -> u8 {
        self.stream.read_u8().await.unwrap()
    }

    pub(super) async fn query(&mut self, sql: &str) -> Vec<ServerMessage> {
        self.send_raw(&message('Q', &text(sql))).await;
        self.until_ready().await
    }

    /// Reads the next message; `None` once the server has disconnected.
    pub(super) async fn next(&mut self) -> Option<ServerMessage> {
        loop {
            if self.read.len() >= 5 {
                let length = usize::try_from((&self.read[1..5]).get_u32()).unwrap();
                if self.read.len() > length {
                    let mut body = self.read.split_to(length + 1).freeze();
                    let kind = char::from(body.get_u8());
                    body.advance(4);
                    return Some(ServerMessage { kind, body });
                }
            }
            match self.stream.read_buf(&mut self.read).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Reads all messages up to ReadyForQuery or the end of the connection.
    pub(super) async fn until_ready(&mut self) -> Vec<ServerMessage> {
        let mut said = Vec::new();
        while let Some(next) = self.next().await {
            let ready = next.kind == 'Z';
            said.push(next);
            if ready {
                break;
            }
        }
        said
    }
}

pub(super) fn kinds(said: &[ServerMessage]) -> String {
    said.iter().map(|said| said.kind).collect()
}

pub(super) fn startup(parameters: &[(&str, &str)]) -> BytesMut {
    let mut body = BytesMut::new();
    body.put_u32(3 << 16);
    for (name, value) in parameters {
        body.put_slice(&text(name));
        body.put_slice(&text(value));
    }
    body.put_u8(0);
    let mut packet = BytesMut::new();
    packet.put_u32(u32::try_from(body.len() + 4).unwrap());
    packet.put_slice(&body);
    packet
}

pub(super) fn message(kind: char, body: &[u8]) -> BytesMut {
    let mut message = BytesMut::new();
    message.put_u8(kind as u8);
    message.put_u32(u32::try_from(body.len() + 4).unwrap());
    message.put_slice(body);
    message
}

pub(super) fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

pub(super) fn parse(name: &str, sql: &str, types: &[u32]) -> BytesMut {
    let mut body = BytesMut::new();
    body.put_slice(&text(name));
    body.put_slice(&text(sql));
    body.put_u16(u16::try_from(types.len()).unwrap());
    types.iter().for_each(|oid| body.put_u32(*oid));
    message('P', &body)
}

/// Builds a Bind message with text parameters and these result formats.
pub(super) fn bind(portal: &str, statement: &str, parameters: &[Option<&str>], formats: &[i16]) -> BytesMut {
    let mut body = BytesMut::new();
    body.put_slice(&text(portal));
    body.put_slice(&text(statement));
    body.put_u16(0);
    body.put_u16(u16::try_from(parameters.len()).unwrap());
    for parameter in parameters {
        match parameter {
            Some(value) => {
                body.put_i32(i32::try_from(value.len()).unwrap());
                body.put_slice(value.as_bytes());
            }
            None => body.put_i32(-1),
        }
    }
    body.put_u16(u16::try_from(formats.len()).unwrap());
    formats.iter().for_each(|format| body.put_i16(*format));
    message('B', &body)
}

pub(super) fn execute(portal: &str, rows_max: i32) -> BytesMut {
    let mut body = BytesMut::from(&text(portal)[..]);
    body.put_i32(rows_max);
    message('E', &body)
}

pub(super) fn describe(kind: char, name: &str) -> BytesMut {
    message('D', &[&[kind as u8], &text(name)[..]].concat())
}

pub(super) fn close(kind: char, name: &str) -> BytesMut {
    message('C', &[&[kind as u8], &text(name)[..]].concat())
}

pub(super) fn flush() -> BytesMut {
    message('H', &[])
}

pub(super) fn sync() -> BytesMut {
    message('S', &[])
}
