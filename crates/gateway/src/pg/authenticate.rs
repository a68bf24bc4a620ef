//! Who may come in: a role with a password proves it, a role without one connects from this machine only.

use std::net::IpAddr;
use std::sync::Arc;

use catalog::{CatalogState, Role, ScramVerifier};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::Authentication;
use pgwire::tokio::server::MaybeTls;
use tokio::io::AsyncWriteExt;
use types::{Condition, SqlError, SqlResult};

use crate::gateway::Gateway;
use crate::pg::scram::{self, Exchange};
use crate::pg::startup::{Opened, read_password};
use crate::pg::tls::Tls;

/// How a client has to show who it is.
enum Proof {
    /// It is on this machine, and its role has no password.
    Local(Arc<Role>),
    Password(Arc<Role>, ScramVerifier),
    /// The role does not exist; the exchange runs all the same, and fails.
    Impossible(ScramVerifier),
}

/// The role that the client has shown itself to be; `None` if it left meanwhile. `tls` is what it was offered.
pub(crate) async fn authenticate(
    opened: &mut Opened,
    gateway: &Gateway,
    tls: Option<&Tls>,
) -> SqlResult<Option<Arc<Role>>> {
    let snapshot = gateway.transactions.current();
    let user = opened.request.user.clone();
    let database = snapshot.state.database().name.clone();
    let (role, verifier) = match demand(&snapshot.state, &user, opened.peer.ip(), &gateway.decoy_secret)? {
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
    admit(&role, gateway)?;
    if opened.request.database != database {
        let message = format!("database \"{}\" does not exist", opened.request.database);
        return Err(SqlError::new(Condition::UndefinedDatabase, message));
    }
    Ok(Some(role))
}

fn demand(state: &CatalogState, user: &str, address: IpAddr, secret: &[u8; 32]) -> SqlResult<Proof> {
    let local = address.to_canonical().is_loopback();
    match state.role_by_name(user) {
        Some(role) => match (&role.scram, local) {
            (Some(verifier), _) => Ok(Proof::Password(Arc::clone(role), verifier.clone())),
            (None, true) => Ok(Proof::Local(Arc::clone(role))),
            (None, false) => {
                let message = format!("role \"{user}\" has no password and may connect from the server's machine only");
                let hint = format!("Connect there and run: ALTER ROLE {user} PASSWORD '...'");
                Err(SqlError::new(Condition::InvalidAuthorization, message).with_hint(hint))
            }
        },
        None if local => Err(SqlError::new(Condition::InvalidAuthorization, format!("role \"{user}\" does not exist"))),
        None => Ok(Proof::Impossible(scram::decoy(user, secret))),
    }
}

/// What a role may lack although its password is right.
fn admit(role: &Role, gateway: &Gateway) -> SqlResult<()> {
    if !role.login {
        let message = format!("role \"{}\" is not permitted to log in", role.name);
        return Err(SqlError::new(Condition::InvalidAuthorization, message));
    }
    if role.valid_until.is_some_and(|until_us| until_us < gateway.clock.now_us()) {
        return Err(failed(&role.name));
    }
    Ok(())
}

fn failed(user: &str) -> SqlError {
    SqlError::new(Condition::InvalidPassword, format!("password authentication failed for user \"{user}\""))
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
    let answer = exchange.first(first, verifier)?;
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
