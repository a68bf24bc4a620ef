//! Startup of a connection: encryption, protocol version, user, database and settings.

use std::net::SocketAddr;

use authentication::{ALPN, Tls};
use bytes::{Bytes, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{GssEncResponse, SslResponse};
use pgwire::messages::startup::NegotiateProtocolVersion;
use pgwire::tokio::server::MaybeTls;
use session::extended_query_requests::protocol_violation;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use types::{Condition, SqlError, SqlResult};

use crate::frontend_messages::{self, FirstPacket, FrontendMessage};

#[cfg(test)]
mod tests;

/// Newest minor version of protocol 3 that Kiln speaks: 3.2, whose secrets for CancelRequest are longer than four
/// bytes.
const NEWEST_MINOR: u16 = 2;

/// Connection whose startup packet has been read; the client is not authenticated yet.
pub(crate) struct PendingConnection {
    pub(crate) stream: MaybeTls,
    /// Bytes read after the startup packet.
    pub(crate) unread: BytesMut,
    pub(crate) peer: SocketAddr,
    pub(crate) request: StartupPacket,
}

/// Request of a connection's first packets.
pub(crate) enum StartupRequest {
    /// A new session.
    Session(Box<PendingConnection>),
    /// CancelRequest for the statement of another connection; it gets no reply.
    Cancel { pid: i32, secret: Bytes },
}

/// Content of the startup packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StartupPacket {
    pub(crate) user: String,
    pub(crate) database: String,
    /// Settings for the session, in the order sent.
    pub(crate) settings: Vec<(String, String)>,
    /// Minor version of the protocol: 0 or 2.
    pub(crate) minor: u16,
    /// Message to send before authentication if the client requested an unsupported version or option.
    pub(crate) negotiation: Option<Negotiation>,
}

/// Protocol options of the client that are not supported.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Negotiation {
    pub(crate) unknown_options: Vec<String>,
}

impl Negotiation {
    pub(crate) fn into_message(self) -> PgWireBackendMessage {
        let newest = (3 << 16) | i32::from(NEWEST_MINOR);
        PgWireBackendMessage::NegotiateProtocolVersion(NegotiateProtocolVersion::new(newest, self.unknown_options))
    }
}

/// Error that ends a connection during startup.
pub(crate) enum StartupError {
    /// Refusal to send to the client.
    Refused(Box<(MaybeTls, SqlError)>),
    /// Failure of the connection: the client is gone or speaks another protocol.
    Broken(std::io::Error),
}

impl From<std::io::Error> for StartupError {
    fn from(error: std::io::Error) -> Self {
        StartupError::Broken(error)
    }
}

/// Handles requests for encryption, then reads the startup packet or a CancelRequest. `tls_offer` is `None` if TLS is
/// not configured; returns `None` if the client leaves.
pub(crate) async fn read_startup(
    tcp: TcpStream,
    peer: SocketAddr,
    tls_offer: Option<&Tls>,
) -> Result<Option<StartupRequest>, StartupError> {
    tcp.set_nodelay(true)?;
    let mut first = [0];
    if tcp.peek(&mut first).await? == 0 {
        return Ok(None);
    }
    let mut stream = MaybeTls::Plain(tcp);
    if first == [TLS_HANDSHAKE] {
        stream = accept_tls(stream, tls_offer, true).await?;
    }
    let mut read = BytesMut::new();
    let mut gss_refused = false;
    let mut tls_answered = false;
    loop {
        let opening = match frontend_messages::decode_first_packet(&mut read) {
            Ok(Some(opening)) => opening,
            Ok(None) => {
                if stream.read_buf(&mut read).await? == 0 {
                    return Ok(None);
                }
                continue;
            }
            Err(error) => return Err(StartupError::Refused(Box::new((stream, error)))),
        };
        match opening {
            FirstPacket::TlsRequest if !tls_answered && matches!(stream, MaybeTls::Plain(_)) => {
                tls_answered = true;
                let offered = tls_offer.is_some();
                answer_tls_request(&mut stream, if offered { SslResponse::Accept } else { SslResponse::Refuse })
                    .await?;
                if offered {
                    if !read.is_empty() {
                        // Unencrypted bytes ahead of the handshake could be an attacker's: they must not count as
                        // encrypted.
                        let error = protocol_violation("received unencrypted data after SSL request");
                        return Err(StartupError::Refused(Box::new((stream, error))));
                    }
                    stream = accept_tls(stream, tls_offer, false).await?;
                }
            }
            FirstPacket::GssRequest if !gss_refused => {
                gss_refused = true;
                stream.write_all(&[GssEncResponse::BYTE_REFUSE]).await?;
            }
            FirstPacket::TlsRequest | FirstPacket::GssRequest => {
                let error = protocol_violation("unexpected encryption request");
                return Err(StartupError::Refused(Box::new((stream, error))));
            }
            FirstPacket::Cancel { pid, secret } => return Ok(Some(StartupRequest::Cancel { pid, secret })),
            FirstPacket::Startup { major, minor, parameters } => {
                return match parse_startup(major, minor, parameters) {
                    Ok(request) => Ok(Some(StartupRequest::Session(Box::new(PendingConnection {
                        stream,
                        unread: read,
                        peer,
                        request,
                    })))),
                    Err(error) => Err(StartupError::Refused(Box::new((stream, error)))),
                };
            }
        }
    }
}

/// First byte of a TLS handshake record; no startup packet is so long that it begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

async fn answer_tls_request(stream: &mut MaybeTls, response: SslResponse) -> std::io::Result<()> {
    let byte = match response {
        SslResponse::Accept => SslResponse::BYTE_ACCEPT,
        _ => SslResponse::BYTE_REFUSE,
    };
    stream.write_all(&[byte]).await
}

async fn accept_tls(stream: MaybeTls, tls_offer: Option<&Tls>, direct: bool) -> std::io::Result<MaybeTls> {
    let invalid = |reason| std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
    let MaybeTls::Plain(tcp) = stream else { return Err(invalid("TLS within TLS")) };
    let Some(offer) = tls_offer else { return Err(invalid("TLS is not configured")) };
    let encrypted = offer.acceptor.accept(tcp).await?;
    // Without the protocol name, bytes of a browser or another protocol could be taken for a startup packet.
    if direct && encrypted.get_ref().1.alpn_protocol() != Some(ALPN) {
        return Err(invalid("direct TLS without the postgresql protocol name"));
    }
    Ok(MaybeTls::Tls(Box::new(encrypted)))
}

/// Reads one message of the password exchange; `None` if the client has left.
pub(crate) async fn read_password(stream: &mut MaybeTls, read: &mut BytesMut) -> Result<Option<Bytes>, SqlError> {
    loop {
        if let Some(decoded) = frontend_messages::decode(read, frontend_messages::PASSWORD_BYTES_MAX)? {
            return match decoded.message? {
                FrontendMessage::Password(body) => Ok(Some(body)),
                FrontendMessage::Terminate => Ok(None),
                _ => Err(protocol_violation(format!("expected password response, got message type {}", decoded.kind))),
            };
        }
        match stream.read_buf(read).await {
            Ok(0) | Err(_) => return Ok(None),
            Ok(_) => {}
        }
    }
}

/// Interprets the startup packet.
fn parse_startup(major: u16, minor: u16, parameters: Vec<(String, String)>) -> SqlResult<StartupPacket> {
    if major != 3 {
        let message = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{NEWEST_MINOR}");
        return Err(SqlError::new(Condition::FeatureNotSupported, message));
    }
    let mut user = None;
    let mut database = None;
    let mut settings = Vec::new();
    let mut unknown_options = Vec::new();
    for (name, value) in parameters {
        match name.as_str() {
            "user" => user = Some(value),
            "database" => database = Some(value),
            "options" => settings.extend(parse_options(&value)?),
            "replication" => {
                if !matches!(value.as_str(), "false" | "off" | "no" | "0") {
                    return Err(SqlError::unsupported("replication"));
                }
            }
            option if option.starts_with("_pq_.") => unknown_options.push(option.to_owned()),
            _ => settings.push((name, value)),
        }
    }
    let Some(user) = user.filter(|user| !user.is_empty()) else {
        let message = "no PostgreSQL user name specified in startup packet";
        return Err(SqlError::new(Condition::InvalidAuthorization, message));
    };
    let database = database.filter(|database| !database.is_empty()).unwrap_or_else(|| user.clone());
    // 3.1 was never used; a client that requests it, or a newer version, gets the newest supported one.
    let is_supported = matches!(minor, 0 | NEWEST_MINOR);
    let negotiation = (!is_supported || !unknown_options.is_empty()).then_some(Negotiation { unknown_options });
    let minor = if minor == 0 { 0 } else { NEWEST_MINOR };
    Ok(StartupPacket { user, database, settings, minor, negotiation })
}

/// Splits the `options` parameter: `-c name=value` and `--name=value`, blanks escaped by a backslash.
fn parse_options(text: &str) -> SqlResult<Vec<(String, String)>> {
    let mut settings = Vec::new();
    let mut arguments = split_arguments(text).into_iter();
    while let Some(argument) = arguments.next() {
        let setting = if let Some(long) = argument.strip_prefix("--") {
            long.to_owned()
        } else if argument == "-c" {
            arguments.next().unwrap_or_default()
        } else if let Some(short) = argument.strip_prefix("-c") {
            short.to_owned()
        } else {
            let message = format!("invalid command-line argument for server process: {argument}");
            return Err(SqlError::new(Condition::SyntaxError, message));
        };
        let Some((name, value)) = setting.split_once('=') else {
            return Err(SqlError::new(Condition::SyntaxError, format!("-c {setting} requires a value")));
        };
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

fn split_arguments(text: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut argument = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => argument.extend(characters.next()),
            blank if blank.is_ascii_whitespace() => {
                if !argument.is_empty() {
                    arguments.push(std::mem::take(&mut argument));
                }
            }
            other => argument.push(other),
        }
    }
    if !argument.is_empty() {
        arguments.push(argument);
    }
    arguments
}
