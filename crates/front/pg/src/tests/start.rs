//! Tests of startup, authentication and shutdown.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use authentication::TlsFiles;
use catalog::Role;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio_postgres::config::{ChannelBinding, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::wire::{RawClient, ServerMessage, kinds, message, startup, text};
use super::{TestServer, TestServerConfig};
use crate::PgSettings;

async fn refusal(door: &TestServer, parameters: &[(&str, &str)]) -> (String, String) {
    let mut wire = RawClient::open(door.address).await;
    wire.send_raw(&startup(parameters)).await;
    let said = wire.until_ready().await;
    let last = said.last().expect("an answer");
    assert_eq!((last.kind, last.field('S').as_deref()), ('E', Some("FATAL")), "{said:?}");
    (last.field('C').unwrap(), last.field('M').unwrap())
}

fn setting(said: &[ServerMessage], name: &str) -> Option<String> {
    let status = said.iter().find(|said| said.kind == 'S' && said.text() == name)?;
    let value = &status.body[name.len() + 1..];
    Some(String::from_utf8(value[..value.len() - 1].to_vec()).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_told_settings_and_its_key() {
    let door = TestServer::start().await;
    let mut wire = RawClient::open(door.address).await;
    let parameters = [("user", "kiln"), ("options", r"-c TimeZone=Europe/Rome"), ("application_name", "a test")];
    wire.send_raw(&startup(&parameters)).await;
    let said = wire.until_ready().await;
    assert_eq!(kinds(&said), format!("R{}KZ", "S".repeat(13)));
    assert_eq!(setting(&said, "TimeZone").as_deref(), Some("Europe/Rome"));
    assert_eq!(setting(&said, "application_name").as_deref(), Some("a test"));
    assert_eq!(setting(&said, "is_superuser").as_deref(), Some("on"));
    assert_eq!(setting(&said, "integer_datetimes").as_deref(), Some("on"));
    assert_eq!(setting(&said, "server_encoding").as_deref(), Some("UTF8"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_unknown_or_asks_for_the_impossible_is_refused() {
    let door = TestServer::start().await;
    let code = |refusal: (String, String)| refusal.0;
    assert_eq!(refusal(&door, &[("user", "nobody")]).await, ("28000".into(), "role \"nobody\" does not exist".into()));
    assert_eq!(
        refusal(&door, &[("user", "kiln"), ("database", "other")]).await,
        ("3D000".into(), "database \"other\" does not exist".into())
    );
    assert_eq!(code(refusal(&door, &[]).await), "28000");
    assert_eq!(code(refusal(&door, &[("user", "kiln"), ("no_such_setting", "1")]).await), "42704");
    assert_eq!(code(refusal(&door, &[("user", "kiln"), ("client_encoding", "LATIN1")]).await), "0A000");
    assert_eq!(code(refusal(&door, &[("user", "kiln"), ("replication", "true")]).await), "0A000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_proved_by_scram() {
    let door = TestServer::start().await;
    door.add_role("ada", Some("pencil")).await;
    let connect = |password: &'static str| {
        let mut config = Config::new();
        config.host("127.0.0.1").port(door.address.port()).user("ada").dbname("kiln").password(password);
        async move { config.connect(NoTls).await.map(drop) }
    };
    connect("pencil").await.unwrap();
    let error = connect("pen").await.unwrap_err();
    assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("28P01"));
    let mut cleartext = RawClient::open(door.address).await;
    cleartext.send_raw(&startup(&[("user", "ada"), ("database", "kiln")])).await;
    assert_eq!(cleartext.next().await.unwrap().kind, 'R');
    cleartext.send_raw(&message('p', &text("pencil"))).await;
    let refused = cleartext.next().await.unwrap();
    assert_eq!(refused.field('C').as_deref(), Some("08P01"));
    let message = "client selected an invalid SASL authentication mechanism";
    assert_eq!(refused.field('M').as_deref(), Some(message));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_a_role_hold_unless_the_client_says_otherwise() {
    let door = TestServer::start().await;
    door.add_role("ada", None).await;
    for (own, expected) in [(None, "from the role"), (Some("mine"), "mine")] {
        let mut wire = RawClient::open(door.address).await;
        let parameters: Vec<_> = [("user", "ada"), ("database", "kiln")]
            .into_iter()
            .chain(own.map(|name| ("application_name", name)))
            .collect();
        wire.send_raw(&startup(&parameters)).await;
        let said = wire.until_ready().await;
        assert_eq!(setting(&said, "application_name").as_deref(), Some(expected));
        assert_eq!(setting(&said, "is_superuser").as_deref(), Some("off"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_connections_are_reserved_and_one_more_is_refused() {
    let config = TestServerConfig { connections_max: 3, connections_reserved: 1, ..TestServerConfig::default() };
    let door = TestServer::start_with(TempDir::new().unwrap(), config).await;
    door.add_role("ada", None).await;
    let (_first, _second) = (door.client().await, door.client().await);
    let (code, message) = refusal(&door, &[("user", "ada"), ("database", "kiln")]).await;
    assert_eq!((code.as_str(), message.as_str()), ("53300", "remaining connection slots are reserved for superusers"));
    let third = door.client().await;
    assert_eq!(refusal(&door, &[("user", "kiln")]).await.1, "sorry, too many clients already");
    drop(third);
    for _ in 0..100 {
        if door.instance.backends.count() == 2 {
            break;
        }
        door.sleep(20).await;
    }
    door.client().await;
}

/// Creates a certificate for `localhost` and the files that the server reads.
fn certificate() -> (TempDir, TlsFiles, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = TempDir::new().unwrap();
    let files = TlsFiles { certificate: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
    fs::write(&files.certificate, made.cert.pem()).unwrap();
    fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    (folder, files, made.cert.der().clone())
}

/// Logs in as the role `ada` with this password, trusting only `root`, by SCRAM with channel binding.
async fn log_in(
    door: &TestServer,
    root: &CertificateDer<'static>,
    password: &str,
) -> Result<(), tokio_postgres::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut config = Config::new();
    config.host("localhost").hostaddr(door.address.ip()).port(door.address.port());
    config.user("ada").dbname("kiln").password(password);
    config.ssl_mode(SslMode::Require).channel_binding(ChannelBinding::Require);
    config.connect(MakeRustlsConnect::new(client)).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_with_a_password_bound_to_the_certificate() {
    let (_files, tls, root) = certificate();
    let config = TestServerConfig { tls: Some(tls), ..TestServerConfig::default() };
    let door = TestServer::start_with(TempDir::new().unwrap(), config).await;
    door.add_role("ada", Some("pencil")).await;
    log_in(&door, &root, "pencil").await.unwrap();
    let refused = log_in(&door, &root, "pen").await.unwrap_err();
    assert_eq!(refused.code().map(tokio_postgres::error::SqlState::code), Some("28P01"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_is_replaced_is_shown_to_those_that_come_after() {
    let (_files, tls, first) = certificate();
    let config = TestServerConfig { tls: Some(tls.clone()), ..TestServerConfig::default() };
    let door = TestServer::start_with(TempDir::new().unwrap(), config).await;
    let health = types::ServiceHealth::default();
    door.add_role("ada", Some("pencil")).await;
    assert!(log_in(&door, &first, "pencil").await.is_ok());

    // Neither a key without its certificate nor a missing certificate can be used: the previous certificate stays.
    let (_others, other, second) = certificate();
    fs::copy(&other.key, &tls.key).unwrap();
    door.instance.credentials.reload_certificate_if_changed(&health).await;
    assert!(log_in(&door, &first, "pencil").await.is_ok());
    fs::remove_file(&tls.certificate).unwrap();
    door.instance.credentials.reload_certificate_if_changed(&health).await;
    assert!(log_in(&door, &first, "pencil").await.is_ok());

    fs::copy(&other.certificate, &tls.certificate).unwrap();
    door.instance.credentials.reload_certificate_if_changed(&health).await;
    assert!(log_in(&door, &second, "pencil").await.is_ok());
    assert!(log_in(&door, &first, "pencil").await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_superusers_password_is_that_of_its_file() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "pencil\n").unwrap();
    let config = TestServerConfig { superuser_password: Some(file.clone()), ..TestServerConfig::default() };
    let door = TestServer::start_with(TempDir::new().unwrap(), config).await;
    let connect = async |password: &str| {
        let mut config = Config::new();
        config.host("localhost").hostaddr(door.address.ip()).port(door.address.port());
        config.user("kiln").dbname("kiln").password(password);
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok::<_, tokio_postgres::Error>(client)
    };
    let code = |error: tokio_postgres::Error| error.code().map(|code| code.code().to_owned()).unwrap();
    let role = || {
        let state = door.instance.transactions.current().state;
        Arc::clone(state.role(Role::BOOTSTRAP).unwrap())
    };
    door.instance.credentials.set_superuser_password().await.unwrap();
    let client = connect("pencil").await.unwrap();
    assert_eq!(code(connect("pen").await.map(drop).unwrap_err()), "28P01");

    // Setting the same password again, as at a restart, changes nothing.
    let before = role();
    door.instance.credentials.set_superuser_password().await.unwrap();
    assert!(Arc::ptr_eq(&before, &role()));

    // SQL can still change the role's settings, and other roles' passwords.
    for statement in
        ["ALTER ROLE kiln PASSWORD 'x'", "ALTER ROLE kiln PASSWORD NULL", "ALTER USER kiln NOCREATEDB PASSWORD ''"]
    {
        assert_eq!(code(client.batch_execute(statement).await.unwrap_err()), "55000", "{statement}");
    }
    client
        .batch_execute("ALTER ROLE kiln SET statement_timeout = 0; CREATE ROLE ada LOGIN PASSWORD 'x'")
        .await
        .unwrap();

    // An invalid file leaves the previous password in force, but is an error at the start.
    let health = types::ServiceHealth::default();
    fs::write(&file, "").unwrap();
    door.instance.credentials.reload_superuser_password_if_changed(&health).await;
    assert!(health.last_failure().is_some_and(|trouble| trouble.contains("holds no password")));
    connect("pencil").await.unwrap();
    let refused = door.instance.credentials.set_superuser_password().await.unwrap_err();
    assert!(matches!(refused, authentication::PasswordError::NoPassword { .. }), "{refused}");
    fs::remove_file(&file).unwrap();
    let refused = door.instance.credentials.set_superuser_password().await.unwrap_err();
    assert!(matches!(refused, authentication::PasswordError::Read { .. }), "{refused}");

    // Then another password, and a verifier in place of a password.
    fs::write(&file, "quill").unwrap();
    door.instance.credentials.reload_superuser_password_if_changed(&health).await;
    assert_eq!(code(connect("pencil").await.map(drop).unwrap_err()), "28P01");
    connect("quill").await.unwrap();
    let of_pencil = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$\
                     WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
    fs::write(&file, of_pencil).unwrap();
    door.instance.credentials.reload_superuser_password_if_changed(&health).await;
    connect("pencil").await.unwrap();
    let before = role();
    door.instance.credentials.set_superuser_password().await.unwrap();
    assert!(Arc::ptr_eq(&before, &role()), "it has that verifier");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_certificate_encryption_is_declined_and_the_client_goes_on() {
    let door = TestServer::start().await;
    let mut wire = RawClient::open(door.address).await;
    for code in [80_877_104_u32, 80_877_103] {
        wire.send_raw(&[&8_u32.to_be_bytes()[..], &code.to_be_bytes()[..]].concat()).await;
        assert_eq!(wire.byte().await, b'N');
    }
    wire.send_raw(&startup(&[("user", "kiln")])).await;
    assert_eq!(wire.until_ready().await.last().unwrap().kind, 'Z');
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_ends_idle_sessions_with_57p01() {
    let settings = PgSettings { shutdown_grace: Duration::from_millis(200), ..PgSettings::default() };
    let config = TestServerConfig { settings, ..TestServerConfig::default() };
    let door = TestServer::start_with(TempDir::new().unwrap(), config).await;
    let mut idle = door.client().await;
    door.shutdown.cancel();
    let said = idle.next().await.unwrap();
    assert_eq!((said.field('S').unwrap(), said.field('C').unwrap()), ("FATAL".into(), "57P01".into()));
    assert_eq!(idle.next().await, None);
    door.served.await.unwrap().unwrap();
    drop(door.folder);
}
