//! PostgreSQL client outside of all pods, which connects to a warehouse by the address of its service, encrypted and
//! with a verified certificate.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bench::query_benchmark;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kubernetes::credentials::{AUTHORITY_NAME, CA_CERTIFICATE_KEY, PASSWORD_KEY};
use kubernetes::instance::SERVICE_POSTGRES_PORT;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{ChannelBinding, SslMode};
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use types::{Clock, SystemClock};

use crate::node::Node;
use crate::plane::Cluster;

const PASSWORD: &str = "correct horse battery staple";
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Time limit, longer than any condition takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Connection parameters of a warehouse.
#[derive(Debug, Clone)]
pub(crate) struct ServiceAddress {
    address: Ipv4Addr,
    /// Host name for the verification of the certificate.
    host: String,
    password: String,
    /// TLS configuration, or `None` to connect without TLS.
    trust: Option<Arc<ClientConfig>>,
}

impl ServiceAddress {
    /// Returns the parameters for the superuser of the instance `dw`, once its secret holds a password.
    pub(crate) async fn resolve(cluster: &Cluster) -> ServiceAddress {
        let has_password = |secret: Option<&Secret>| secret.is_some_and(|secret| password(secret).is_some());
        let secret = cluster.until("dw-superuser", has_password).await.expect("it was waited for");
        ServiceAddress {
            password: password(&secret).expect("it was waited for"),
            ..ServiceAddress::without(cluster).await
        }
    }

    /// Returns the parameters for the instance `dw` with a wrong password.
    pub(crate) async fn without(cluster: &Cluster) -> ServiceAddress {
        let has_address = |service: Option<&Service>| service.is_some_and(|service| address(service).is_some());
        let service = cluster.until("dw", has_address).await.expect("it was waited for");
        let map =
            cluster.until(AUTHORITY_NAME, |map: Option<&ConfigMap>| map.is_some()).await.expect("it was waited for");
        ServiceAddress {
            address: address(&service).expect("it was waited for"),
            host: format!("dw.{}.svc", cluster.namespace),
            password: PASSWORD.to_owned(),
            trust: Some(trusting(&map.data.expect("it says something")[CA_CERTIFICATE_KEY])),
        }
    }

    /// Sets a password from inside a pod that has neither a password nor a certificate, and returns the parameters.
    pub(crate) async fn with_password_set_in(cluster: &Cluster, node: &Node) -> ServiceAddress {
        let statement = format!("ALTER ROLE kiln PASSWORD '{PASSWORD}'");
        let done = node.exec("dw-0", &["kiln", "sql", "-c", &statement]).await;
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let has_address = |service: Option<&Service>| service.is_some_and(|service| address(service).is_some());
        let service = cluster.until("dw", has_address).await.expect("it was waited for");
        let address = address(&service).expect("it was waited for");
        ServiceAddress { address, host: address.to_string(), password: PASSWORD.to_owned(), trust: None }
    }

    pub(crate) async fn connect(&self) -> Result<Client, QueryError> {
        let mut config = Config::new();
        let port = u16::try_from(SERVICE_POSTGRES_PORT).expect("ports are small");
        config.host(&self.host).hostaddr(IpAddr::V4(self.address)).port(port);
        config.user("kiln").dbname("kiln").password(&self.password).connect_timeout(CONNECT_TIME_MAX);
        match &self.trust {
            Some(trust) => {
                config.ssl_mode(SslMode::Require).channel_binding(ChannelBinding::Require);
                let connecting = config.connect(MakeRustlsConnect::new(ClientConfig::clone(trust)));
                let (client, connection) = in_time(connecting).await?;
                tokio::spawn(connection);
                Ok(client)
            }
            None => {
                let (client, connection) = in_time(config.connect(NoTls)).await?;
                tokio::spawn(connection);
                Ok(client)
            }
        }
    }
}

async fn in_time<T>(connecting: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, QueryError> {
    let connected = tokio::time::timeout(CONNECT_TIME_MAX, connecting).await;
    Ok(connected.map_err(|_| QueryError::late(CONNECT_TIME_MAX))??)
}

fn password(secret: &Secret) -> Option<String> {
    let value = secret.data.as_ref()?.get(PASSWORD_KEY)?;
    String::from_utf8(value.0.clone()).ok()
}

/// Returns a TLS configuration that trusts only `authority`.
fn trusting(authority: &str) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(authority.as_bytes()).expect("it is a certificate");
    roots.add(certificate).expect("it is an authority's");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Arc::new(versions.expect("ring has them").with_root_certificates(roots).with_no_client_auth())
}

impl ServiceAddress {
    /// Connects as soon as the warehouse accepts connections.
    pub(crate) async fn wait(&self) -> Client {
        let clock = SystemClock::new();
        loop {
            match self.connect().await {
                Ok(client) => return client,
                Err(trouble) => assert!(clock.monotonic() < PATIENCE, "nobody may come in: {trouble:?}"),
            }
            clock.sleep(LOOK_EVERY).await;
        }
    }
}

/// Failure of a connection or a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryError {
    /// SQLSTATE, or `None` if the server did not respond.
    pub(crate) code: Option<String>,
    pub(crate) text: String,
}

impl QueryError {
    pub(crate) fn late(after: Duration) -> QueryError {
        QueryError { code: None, text: format!("no answer after {} s", after.as_secs()) }
    }
}

impl From<tokio_postgres::Error> for QueryError {
    fn from(error: tokio_postgres::Error) -> QueryError {
        match error.as_db_error() {
            Some(told) => QueryError { code: Some(told.code().code().to_owned()), text: told.message().to_owned() },
            None => QueryError { code: None, text: error.to_string() },
        }
    }
}

/// Returns the only value of a query's result.
pub(crate) async fn value(client: &Client, statement: &str) -> String {
    let rows = query_benchmark::run_query(client, statement).await.expect("it is answered");
    let [row] = &rows[..] else { panic!("{statement} has {} rows", rows.len()) };
    row.last().expect("it has a column").clone().unwrap_or_default()
}

/// Repeats a query until its value is `answer`.
pub(crate) async fn until(client: &Client, statement: &str, answer: &str) {
    let (clock, mut last) = (SystemClock::new(), String::new());
    while clock.monotonic() < PATIENCE {
        last = value(client, statement).await;
        if last == answer {
            return;
        }
        clock.sleep(LOOK_EVERY).await;
    }
    let workers =
        query_benchmark::run_query(client, "SELECT cluster, slot, state, hung, version, detail FROM sys.worker").await;
    panic!("{statement} is {last:?} and not {answer:?}: {workers:?}");
}

fn address(service: &Service) -> Option<Ipv4Addr> {
    service.spec.as_ref()?.cluster_ip.as_ref()?.parse().ok()
}
