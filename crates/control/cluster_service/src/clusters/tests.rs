use cluster_model::desired_state::DEFAULT_CLUSTER_NAME;
use cluster_model::{Author, Change, ClusterOptions, Grantee, IfExists, Privilege, RoleRef};
use tempfile::TempDir;
use types::{Oid, QueryId, Random, SystemClock, SystemRandom};
use workload::admission::Request;

use super::*;

/// Clusters of an empty server.
struct TestServer {
    clusters: Arc<Clusters>,
    _folder: TempDir,
}

impl TestServer {
    fn new() -> Self {
        let folder = TempDir::new().expect("create a temporary folder");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let random: Arc<dyn Random> = Arc::new(SystemRandom);
        let config = scheduler::ResourceConfig {
            spill_folder: folder.path().join("spill"),
            threads: 2,
            ..scheduler::ResourceConfig::default()
        };
        let executor = Executor::start(&config, &clock).expect("start the executor");
        let clusters = Clusters::open(&executor, folder.path(), ClusterSettings::default(), None, clock, random);
        Self { clusters: clusters.expect("open clusters in an empty folder"), _folder: folder }
    }

    async fn apply(&self, change: Change) -> SqlResult<()> {
        let done = self.clusters.apply(vec![change], Author::Role(role(10, true))).await.map(drop);
        // The server's reconciliation loop, without its waiting.
        self.clusters.reconcile();
        done
    }

    async fn create(&self, name: &str, options: ClusterOptions) -> SqlResult<()> {
        self.apply(Change::Create { name: name.to_owned(), options, if_exists: IfExists::Refuse }).await
    }

    fn id(&self, name: &str) -> ClusterId {
        self.clusters.plane.desired().cluster_named(name).expect("the cluster exists").id
    }

    fn mode(&self, name: &str) -> AdmissionMode {
        self.clusters.admission(self.id(name)).expect("the cluster has an admission").snapshot().mode
    }
}

fn role(oid: u32, superuser: bool) -> Actor {
    let name = format!("role_{oid}");
    Actor { role: RoleRef { oid: Oid(oid), name }, superuser, create_cluster: false, create_role: false }
}

const ANYONE: Request = Request { statement: QueryId(1), user: Oid(20_000), weight: 1, is_superuser: false };

#[tokio::test(flavor = "multi_thread")]
async fn default_has_a_worker_with_all_resources() {
    let house = TestServer::new();
    let choice = house.clusters.choose(&role(20_000, false), None, None, None).expect("all roles may use default");
    assert_eq!(choice, Choice::Run(house.id(DEFAULT_CLUSTER_NAME)));
    let lease =
        house.clusters.lease(house.id(DEFAULT_CLUSTER_NAME)).expect("default has a worker before the first pass");
    let rows = house.clusters.worker_rows();
    assert_eq!((rows.len(), rows[0].worker.id, rows[0].worker.running), (1, lease.worker(), 0));
    assert_eq!(rows[0].worker.spec.share.millicores, 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn admission_follows_the_clusters_state() {
    let house = TestServer::new();
    house.create("c", ClusterOptions::default()).await.expect("create a cluster");
    let gate = house.clusters.admission(house.id("c")).expect("the cluster has an admission");
    assert_eq!(house.mode("c"), AdmissionMode::Open);
    house.apply(Change::Suspend { name: "c".to_owned() }).await.expect("suspend the cluster");
    assert_eq!(house.mode("c"), AdmissionMode::Holding, "AUTO_RESUME lets statements wait");
    let options = ClusterOptions { auto_resume: Some(false), ..ClusterOptions::default() };
    house.apply(Change::Alter { name: "c".to_owned(), options }).await.expect("the cluster exists");
    assert_eq!(house.mode("c"), AdmissionMode::Closed, "without AUTO_RESUME statements are refused");
    let chosen = house.clusters.find_usable_cluster(&role(10, true), "c").expect("the cluster exists");
    let refused = house.clusters.choose(&role(10, true), Some(&chosen), None, None).expect_err("it is suspended");
    assert_eq!(refused.condition, Condition::ObjectNotInPrerequisiteState);
    house.apply(Change::Resume { name: "c".to_owned() }).await.expect("it is suspended");
    assert_eq!(house.mode("c"), AdmissionMode::Open);
    house.apply(Change::Drop { name: "c".to_owned(), if_exists: false }).await.expect("the cluster exists");
    assert_eq!(gate.snapshot().mode, AdmissionMode::Closed, "waiting statements are refused");
    assert!(gate.try_admit(&ANYONE).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chosen_cluster_survives_a_rename() {
    let house = TestServer::new();
    house.create("old", ClusterOptions::default()).await.expect("create a cluster");
    let (root, user) = (role(10, true), role(20_000, false));
    let denied = house.clusters.find_usable_cluster(&user, "old").expect_err("the role lacks USAGE");
    assert_eq!(denied.condition, Condition::InsufficientPrivilege);
    let chosen = house.clusters.find_usable_cluster(&root, "old").expect("the cluster exists");
    house.apply(Change::Rename { name: "old".to_owned(), to: "new".to_owned() }).await.expect("the cluster exists");
    let choose = || house.clusters.choose(&root, Some(&chosen), None, None);
    assert_eq!(choose().expect("the renamed cluster is the chosen one"), Choice::Run(house.id("new")));
    house.apply(Change::Drop { name: "new".to_owned(), if_exists: false }).await.expect("the cluster exists");
    let gone = choose().expect_err("the chosen cluster is dropped");
    assert_eq!((gone.condition, gone.message.as_str()), (Condition::UndefinedObject, "cluster \"old\" does not exist"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_stays_on_its_written_cluster() {
    let house = TestServer::new();
    let user = role(20_000, false);
    for name in ["a", "b"] {
        house.create(name, ClusterOptions::default()).await.expect("create a cluster");
        let grant = Change::Grant {
            clusters: vec![name.to_owned()],
            privileges: vec![Privilege::Usage],
            to: vec![Grantee::Role(user.role.clone())],
        };
        house.apply(grant).await.expect("the cluster exists");
    }
    let clusters = vec!["a".to_owned(), "b".to_owned()];
    house.apply(Change::SetDefaultClusters { role: user.role.clone(), clusters }).await.expect("both clusters exist");
    let gate = house.clusters.admission(house.id("a")).expect("the cluster has an admission");
    let busy = gate.try_admit(&ANYONE).expect("no statement runs");
    let choose = |written, open| house.clusters.choose(&user, None, written, open).expect("two clusters are usable");
    assert_eq!(choose(None, None), Choice::Run(house.id("b")), "the less busy cluster is chosen");
    assert_eq!(choose(Some(house.id("a")), None), Choice::Run(house.id("a")));
    assert_eq!(choose(None, Some(house.id("a"))), Choice::Run(house.id("a")));
    assert_eq!(
        choose(None, Some(house.id(DEFAULT_CLUSTER_NAME))),
        Choice::Run(house.id("b")),
        "an unusable cluster is ignored"
    );
    drop(busy);
    let change = Change::RemoveRole { role: user.role.oid };
    house.clusters.apply(vec![change], Author::Instance).await.expect("the role owns no clusters");
    assert_eq!(choose(None, None), Choice::Run(house.id(DEFAULT_CLUSTER_NAME)));
    assert!(house.clusters.plane.desired().referenced_roles().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_options_are_refused() {
    let house = TestServer::new();
    let local = ClusterOptions { hardware_instance: Some("local".to_owned()), ..ClusterOptions::default() };
    let refused = house.create("c", local).await.expect_err("processes are not available");
    assert_eq!(refused.condition, Condition::UndefinedObject);
    assert!(refused.hint.expect("the error has a hint").contains("There are: embedded."));
    let spill = ClusterOptions { max_spill_pct: Some(Some(50)), ..ClusterOptions::default() };
    let refused = house.create("c", spill).await.expect_err("embedded workers share the disk");
    assert_eq!(refused.condition, Condition::FeatureNotSupported);
    let all = ClusterOptions { max_spill_pct: Some(None), max_cache_pct: Some(None), ..ClusterOptions::default() };
    house.create("c", all).await.expect("NULL removes the option");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_atomic() {
    let house = TestServer::new();
    house.create("a", ClusterOptions::default()).await.expect("create a cluster");
    let drops = ["a", "b"].map(|name| Change::Drop { name: name.to_owned(), if_exists: false });
    let refused = house.clusters.apply(drops.to_vec(), Author::Role(role(10, true))).await;
    assert_eq!(refused.expect_err("one cluster does not exist").condition, Condition::UndefinedObject);
    assert_eq!(house.mode("a"), AdmissionMode::Open);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_workers_is_limited() {
    let house = TestServer::new();
    let create = |number: usize, nodes| Change::Create {
        name: format!("c{number}"),
        options: ClusterOptions { node_count: Some(nodes), ..ClusterOptions::default() },
        if_exists: IfExists::Refuse,
    };
    let author = || Author::Role(role(10, true));
    // 1 worker of `default` and 46 times 64: 55 of 3,000 are left.
    let changes = (0..46).map(|number| create(number, 64)).collect();
    house.clusters.apply(changes, author()).await.expect("the limit is not reached");
    let refused = house.clusters.apply(vec![create(46, 56)], author()).await.expect_err("the limit is exceeded");
    assert_eq!(refused.condition, Condition::ConfigurationLimitExceeded);
    house.clusters.apply(vec![create(46, 55)], author()).await.expect("the limit is reached exactly");
}
