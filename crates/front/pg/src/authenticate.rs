//! A client shows who it is.

use std::sync::Arc;

use authentication::{Exchange, Proof, Tls, admit, demand, failed};
use bytes::Bytes;
use catalog::{Role, ScramVerifier};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::Authentication;
use pgwire::tokio::server::MaybeTls;
use session::bind::violation;
use session::instance::Instance;
use tokio::io::AsyncWriteExt;
use types::{Condition, SqlError, SqlResult};

use crate::frontend::Body;
use crate::startup::{Opened, read_password};

/// The role that the client has shown itself to be; `None` if it left meanwhile. `tls` is what it was offered.
pub(crate) async fn authenticate(
    opened: &mut Opened,
    instance: &Instance,
    tls: Option<&Tls>,
) -> SqlResult<Option<Arc<Role>>> {
    let snapshot = instance.transactions.current();
    let user = opened.request.user.clone();
    let database = snapshot.state.database().name.clone();
    let (role, verifier) = match demand(&snapshot.state, &user, opened.peer.ip(), instance.credentials.decoy_secret())?
    {
        Proof::Local(role) => (Some(role), None),
        Proof::Password(role, verifier) => (Some(role), Some(verifier)),
        Proof::Impossible(verifier) => (None, Some(verifier)),
    };
    if let Some(verifier) = verifier {
        match exchange(opened, tls, &verifier).await {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) if error.condition == Condition::InvalidPassword => return Err(failed(&user)),
            Err(error) => return Err(error),
        }
    }
    let role = role.ok_or_else(|| failed(&user))?;
    admit(&role, instance.clock.now_us())?;
    if opened.request.database != database {
        let message = format!("database \"{}\" does not exist", opened.request.database);
        return Err(SqlError::new(Condition::UndefinedDatabase, message));
    }
    Ok(Some(role))
}

/// Runs SCRAM; `false` if the client left.
async fn exchange(opened: &mut Opened, tls: Option<&Tls>, verifier: &ScramVerifier) -> SqlResult<bool> {
    let encrypted = matches!(opened.stream, MaybeTls::Tls(_));
    let bound = tls.filter(|_| encrypted).map(|tls| tls.scram.clone());
    let mut exchange = Exchange::new(bound);
    if !send(&mut opened.stream, Authentication::SASL(exchange.mechanisms())).await {
        return Ok(false);
    }
    let Some(first) = read_password(&mut opened.stream, &mut opened.read).await? else { return Ok(false) };
    let (mechanism, message) = initial_response(first)?;
    let answer = exchange.first(&mechanism, &message, verifier)?;
    if !send(&mut opened.stream, Authentication::SASLContinue(answer.into())).await {
        return Ok(false);
    }
    let Some(last) = read_password(&mut opened.stream, &mut opened.read).await? else { return Ok(false) };
    let answer = exchange.last(&last)?;
    Ok(send(&mut opened.stream, Authentication::SASLFinal(answer.into())).await)
}

/// Whether the client is still there to get it.
async fn send(stream: &mut MaybeTls, message: Authentication) -> bool {
    let mut bytes = bytes::BytesMut::new();
    PgWireBackendMessage::Authentication(message).encode(&mut bytes).is_ok()
        && stream.write_all(&bytes).await.is_ok()
        && stream.flush().await.is_ok()
}

/// A SASLInitialResponse: the mechanism that the client has chosen, and its first message.
fn initial_response(body: Bytes) -> SqlResult<(String, Bytes)> {
    let mut body = Body(body);
    let mechanism = body.text()?;
    let length = body.u32()?;
    if body.0.len() != length as usize || length == 0 {
        return Err(violation("malformed SASL initial response"));
    }
    Ok((mechanism, body.0))
}
