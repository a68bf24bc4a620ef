//! Tests of the PostgreSQL port on a real socket, over a warehouse in a temporary folder.

mod fuzz;
mod protocol;
mod start;
mod throttle;
mod wire;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use authentication::{Credentials, TlsFiles};
use catalog::{Change, Role};
use execution::Execution;
use objects::Objects;
use planner::Planner;
use session::backends::Backends;
use session::instance::Instance;
use session::query_log::QueryLog;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use txn::{Isolation, Transactions};
use types::{Clock, Random, SystemClock, SystemRandom};

use self::wire::RawClient;
use crate::PgSettings;

/// Settings of a test server.
struct TestServerConfig {
    connections_max: usize,
    connections_reserved: usize,
    settings: PgSettings,
    tls: Option<TlsFiles>,
    superuser_password: Option<PathBuf>,
}

impl Default for TestServerConfig {
    fn default() -> Self {
        Self {
            connections_max: 500,
            connections_reserved: Backends::RESERVED_DEFAULT,
            settings: PgSettings::default(),
            tls: None,
            superuser_password: None,
        }
    }
}

/// Server on a loopback port.
struct TestServer {
    address: SocketAddr,
    instance: Arc<Instance>,
    shutdown: CancellationToken,
    served: JoinHandle<std::io::Result<()>>,
    folder: TempDir,
}

impl TestServer {
    async fn start() -> Self {
        Self::start_with(TempDir::new().unwrap(), TestServerConfig::default()).await
    }

    async fn start_with(folder: TempDir, config: TestServerConfig) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let random: Arc<dyn Random> = Arc::new(SystemRandom);
        let storage = format!("file://{}", folder.path().join("storage").display());
        let objects = Objects::open(&storage, Arc::clone(&clock), Arc::clone(&random)).unwrap();
        let kv = kv::wal::open(folder.path().join("catalog.redb"), kv::wal::FILE_BYTES, kv::redb::CACHE_BYTES).unwrap();
        let transactions = Transactions::open(Arc::new(kv), objects.clone(), Arc::clone(&clock)).unwrap();
        let limits = scheduler::ResourceConfig {
            memory_bytes: 256 << 20,
            spill_folder: folder.path().join("spill"),
            threads: 2,
            ..scheduler::ResourceConfig::default()
        };
        let execution =
            Execution::new(objects, Arc::clone(&transactions), Arc::clone(&clock), Arc::clone(&random), limits)
                .unwrap();
        let planner = Arc::new(Planner::new(
            execution.scan_planner(),
            operators::operator_planning(),
            execution.executor().runtime(),
            execution.executor().default_partitions(),
        ));
        let settings = cluster_service::ClusterSettings::default();
        let clusters = {
            let (clock, random) = (Arc::clone(&clock), Arc::clone(&random));
            cluster_service::Clusters::open(execution.executor(), folder.path(), settings, None, clock, random).unwrap()
        };
        let credentials = Credentials::load(
            config.tls.as_ref(),
            config.superuser_password.as_deref(),
            Arc::clone(&transactions),
            Arc::clone(&clock),
            Arc::clone(&random),
        );
        let settings = config.settings;
        let backends = Backends::new(config.connections_max, config.connections_reserved, clock.now_us());
        let instance = Arc::new(Instance {
            planner,
            execution,
            transactions,
            clusters,
            credentials: Arc::new(credentials.unwrap()),
            query_log: QueryLog::new(100),
            backends: Arc::new(backends),
            metrics: Arc::default(),
            services: Arc::new(supervisor::Supervisor::new(Arc::clone(&clock))),
            clock,
            random,
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let served = tokio::spawn({
            let (instance, shutdown) = (Arc::clone(&instance), shutdown.clone());
            async move { crate::serve(instance, settings, listener, shutdown).await }
        });
        Self { address, instance, shutdown, served, folder }
    }

    /// Connects a client that is ready for queries.
    async fn client(&self) -> RawClient {
        RawClient::start(self.address).await
    }

    /// Creates a role that may log in, with an optional password.
    async fn add_role(&self, name: &str, password: Option<&str>) {
        let role = Role {
            oid: self.instance.transactions.allocate_oid(),
            name: name.to_owned(),
            superuser: false,
            login: true,
            create_role: false,
            create_db: false,
            inherit: true,
            connection_limit: -1,
            valid_until: None,
            scram: password.map(|password| authentication::create_verifier(password, &*self.instance.random)),
            settings: std::iter::once(("application_name".to_owned(), "from the role".to_owned())).collect(),
            comment: None,
        };
        let mut transaction = self.instance.transactions.begin(Isolation::ReadCommitted);
        transaction.stage(vec![Change::PutRole(Arc::new(role))]).unwrap();
        transaction.commit().await.unwrap();
    }

    async fn sleep(&self, milliseconds: u64) {
        self.instance.clock.sleep(Duration::from_millis(milliseconds)).await;
    }
}
