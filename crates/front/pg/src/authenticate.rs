//! Authentication of a client over its connection.

use std::sync::Arc;

use authentication::{RequiredProof, ScramExchange, Tls, authentication_failed, check_login_allowed, required_proof};
use bytes::Bytes;
use catalog::{Role, ScramVerifier};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::Authentication;
use pgwire::tokio::server::MaybeTls;
use session::extended_query_requests::protocol_violation;
use session::instance::Instance;
use tokio::io::AsyncWriteExt;
use types::{Condition, SqlError, SqlResult};

use crate::frontend_messages::MessageReader;
use crate::startup::{PendingConnection, read_password};

/// Authenticates the client and returns its role; `None` if it has left. `tls` is the certificate that it was shown.
pub(crate) async fn authenticate(
    opened: &mut PendingConnection,
    instance: &Instance,
    tls: Option<&Tls>,
) -> SqlResult<Option<Arc<Role>>> {
    let snapshot = instance.transactions.current();
    let user = opened.request.user.clone();
    let database = snapshot.state.database().name.clone();
    let (role, verifier) =
        match required_proof(&snapshot.state, &user, opened.peer.ip(), instance.credentials.decoy_secret())? {
            RequiredProof::Local(role) => (Some(role), None),
            RequiredProof::Password(role, verifier) => (Some(role), Some(verifier)),
            RequiredProof::Decoy(verifier) => (None, Some(verifier)),
        };
    if let Some(verifier) = verifier {
        match run_scram(opened, tls, &verifier).await {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) if error.condition == Condition::InvalidPassword => return Err(authentication_failed(&user)),
            Err(error) => return Err(error),
        }
    }
    let role = role.ok_or_else(|| authentication_failed(&user))?;
    check_login_allowed(&role, instance.clock.now_us())?;
    if opened.request.database != database {
        let message = format!("database \"{}\" does not exist", opened.request.database);
        return Err(SqlError::new(Condition::UndefinedDatabase, message));
    }
    Ok(Some(role))
}

/// Runs the SCRAM exchange; `false` if the client has left.
async fn run_scram(opened: &mut PendingConnection, tls: Option<&Tls>, verifier: &ScramVerifier) -> SqlResult<bool> {
    let encrypted = matches!(opened.stream, MaybeTls::Tls(_));
    let bound = tls.filter(|_| encrypted).map(|tls| tls.scram.clone());
    let mut exchange = ScramExchange::new(bound);
    if !send(&mut opened.stream, Authentication::SASL(exchange.mechanisms())).await {
        return Ok(false);
    }
    let Some(first) = read_password(&mut opened.stream, &mut opened.unread).await? else { return Ok(false) };
    let message = parse_initial_response(first, &mut exchange)?;
    let answer = exchange.handle_client_first(&message, verifier)?;
    if !send(&mut opened.stream, Authentication::SASLContinue(answer.into())).await {
        return Ok(false);
    }
    let Some(last) = read_password(&mut opened.stream, &mut opened.unread).await? else { return Ok(false) };
    let answer = exchange.handle_client_final(&last)?;
    Ok(send(&mut opened.stream, Authentication::SASLFinal(answer.into())).await)
}

/// Sends a message; `false` if the client has left.
async fn send(stream: &mut MaybeTls, message: Authentication) -> bool {
    let mut bytes = bytes::BytesMut::new();
    PgWireBackendMessage::Authentication(message).encode(&mut bytes).is_ok()
        && stream.write_all(&bytes).await.is_ok()
        && stream.flush().await.is_ok()
}

/// Extracts the client's first SCRAM message from SASLInitialResponse, which also chooses the mechanism.
fn parse_initial_response(body: Bytes, exchange: &mut ScramExchange) -> SqlResult<Bytes> {
    let mut body = MessageReader(body);
    exchange.choose_mechanism(&body.text()?)?;
    let length = body.u32()?;
    if body.0.len() != length as usize || length == 0 {
        return Err(protocol_violation("malformed SASL initial response"));
    }
    Ok(body.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn response(mechanism: &str, length: u32, message: &[u8]) -> Bytes {
        [mechanism.as_bytes(), &[0], &length.to_be_bytes(), message].concat().into()
    }

    #[test]
    fn a_response_chooses_a_mechanism_that_was_offered_and_has_the_length_that_it_says() {
        let refused = |body| parse_initial_response(body, &mut ScramExchange::new(None)).unwrap_err().message;
        let chosen = "client selected an invalid SASL authentication mechanism";
        assert_eq!(refused(Bytes::from_static(b"pencil\0")), chosen);
        assert_eq!(refused(response("SCRAM-SHA-1", 3, b"n,,")), chosen);
        assert_eq!(refused(response("SCRAM-SHA-256", 4, b"n,,")), "malformed SASL initial response");
        assert_eq!(refused(response("SCRAM-SHA-256", u32::MAX, b"")), "malformed SASL initial response");
        let message = parse_initial_response(response("SCRAM-SHA-256", 3, b"n,,"), &mut ScramExchange::new(None));
        assert_eq!(message.unwrap(), Bytes::from_static(b"n,,"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_not_a_panic(raw in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = parse_initial_response(Bytes::from(raw), &mut ScramExchange::new(None));
        }
    }
}
