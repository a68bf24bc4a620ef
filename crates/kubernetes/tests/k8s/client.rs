//! A client outside of all pods, which comes to a warehouse by the address of its service.

use std::net::Ipv4Addr;
use std::time::Duration;

use bench::run;
use k8s_openapi::api::core::v1::Service;
use kubernetes::instance::POSTGRES_PORT;
use tokio_postgres::{Client, Config, NoTls};
use types::{Clock, SystemClock};

use crate::node::Node;
use crate::plane::Cluster;

pub(crate) const PASSWORD: &str = "correct horse battery staple";
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Nothing here takes as long on any machine.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Where a warehouse is.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    address: Ipv4Addr,
    password: Option<String>,
}

impl Door {
    /// Of the instance `dw`, for somebody without a password.
    pub(crate) async fn of(cluster: &Cluster) -> Door {
        let has_address = |service: Option<&Service>| service.is_some_and(|service| address(service).is_some());
        let service = cluster.until("dw", has_address).await.expect("it was waited for");
        Door { address: address(&service).expect("it was waited for"), password: None }
    }

    /// Of the instance `dw` on one of the nodes, for its superuser, who sets a password from within the pod as nobody else may.
    pub(crate) async fn with_password(cluster: &Cluster, node: &Node) -> Door {
        let statement = format!("ALTER ROLE kiln PASSWORD '{PASSWORD}'");
        let done = node.exec("dw-0", &["kiln", "sql", "-c", &statement]).await;
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Door { password: Some(PASSWORD.to_owned()), ..Door::of(cluster).await }
    }

    pub(crate) async fn connect(&self) -> Result<Client, Trouble> {
        let mut config = Config::new();
        let port = u16::try_from(POSTGRES_PORT).expect("ports are small");
        config.host(self.address.to_string()).port(port).user("kiln").dbname("kiln").connect_timeout(CONNECT_TIME_MAX);
        if let Some(password) = &self.password {
            config.password(password);
        }
        let connecting = tokio::time::timeout(CONNECT_TIME_MAX, config.connect(NoTls));
        let (client, connection) = connecting.await.map_err(|_| Trouble::late(CONNECT_TIME_MAX))??;
        tokio::spawn(connection);
        Ok(client)
    }
}

impl Door {
    /// Likewise, when connections are taken again.
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

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// What the server says; nothing where it says nothing any more.
    pub(crate) code: Option<String>,
    pub(crate) text: String,
}

impl Trouble {
    pub(crate) fn late(after: Duration) -> Trouble {
        Trouble { code: None, text: format!("no answer after {} s", after.as_secs()) }
    }
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Trouble {
        match error.as_db_error() {
            Some(told) => Trouble { code: Some(told.code().code().to_owned()), text: told.message().to_owned() },
            None => Trouble { code: None, text: error.to_string() },
        }
    }
}

/// The only value of the answer.
pub(crate) async fn value(client: &Client, statement: &str) -> String {
    let rows = run::query(client, statement).await.expect("it is answered");
    let [row] = &rows[..] else { panic!("{statement} has {} rows", rows.len()) };
    row.last().expect("it has a column").clone().unwrap_or_default()
}

/// Asks until the answer is this one.
pub(crate) async fn until(client: &Client, statement: &str, answer: &str) {
    let (clock, mut last) = (SystemClock::new(), String::new());
    while clock.monotonic() < PATIENCE {
        last = value(client, statement).await;
        if last == answer {
            return;
        }
        clock.sleep(LOOK_EVERY).await;
    }
    let workers = run::query(client, "SELECT cluster, slot, state, hung, version, detail FROM sys.worker").await;
    panic!("{statement} is {last:?} and not {answer:?}: {workers:?}");
}

fn address(service: &Service) -> Option<Ipv4Addr> {
    service.spec.as_ref()?.cluster_ip.as_ref()?.parse().ok()
}
