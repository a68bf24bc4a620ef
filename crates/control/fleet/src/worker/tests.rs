use std::path::Path;

use cluster_model::{ClusterId, HardwareInstance, Resources, StopReason, WorkerOptions, WorkerSpec, WorkerState};
use control_plane::{StartRequest, TokenVerifier, TokenWorkerHost, VerifiedWorker, VerifyFuture, WorkerHost};
use exchange::NewShards;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use types::SystemRandom;

use super::*;
use crate::certificate_authority::Authority;
use crate::fixtures::{clock, settings};
use crate::fleet::{Fleet, FleetError, FleetSettings};
use crate::join::{FromInstance, HEARTBEAT_INTERVAL, Hello, PROTOCOL_VERSION, read_message, write_message};
use crate::join_ticket::Ticket;
use crate::mutual_tls::{CertificateName, dial_unauthenticated, with_timeout};
use crate::task_dialer::task_url;

/// Time limit for expected state changes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Instance whose workers are tasks of the test process.
struct TestInstance {
    fleet: Fleet,
    folder: TempDir,
    clock: Arc<dyn Clock>,
}

impl TestInstance {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let fleet = open(folder.path()).await;
        Self { fleet, folder, clock: clock() }
    }

    fn address(&self) -> SocketAddr {
        crate::WorkerProcesses::previous_address(&settings(self.folder.path())).expect("the roster exists")
    }

    fn invite(&self) -> Ticket {
        let spec = spec(1 << 20);
        self.fleet
            .processes()
            .register_worker(&StartRequest { cluster: ClusterId(2), slot: 0, spec })
            .expect("the host is open")
    }

    fn worker(&self, ticket: &Ticket, patience: Duration) -> WorkerSettings {
        let (join, way_in) = (self.address().to_string(), JoinCredential::Ticket(ticket.clone()));
        WorkerSettings {
            instance_address: join,
            credential: way_in,
            folder: None,
            listen: None,
            reconnect_timeout: patience,
            version: "1".to_owned(),
        }
    }

    fn work(&self, ticket: &Ticket, patience: Duration) -> JoinHandle<Result<WorkerExit, WorkerError>> {
        let settings = self.worker(ticket, patience);
        tokio::spawn(run(settings, clock(), Arc::new(SystemRandom), Box::pin(std::future::pending())))
    }

    /// Waits until the worker is in this state.
    async fn until(&self, id: WorkerId, state: WorkerState) -> cluster_model::Worker {
        let processes = self.fleet.processes();
        let waiting = async {
            loop {
                let seen = processes.changes().current();
                let found = processes.observe().into_iter().find(|worker| worker.id == id);
                if let Some(worker) = found.filter(|worker| worker.state == state) {
                    return Ok(worker);
                }
                processes.changes().wait_for_newer(seen).await;
            }
        };
        with_timeout(&self.clock, PATIENCE, waiting).await.expect("the worker reaches the state in time")
    }

    /// Whether the instance can open a task connection to the worker.
    async fn is_reached(&self, worker: &cluster_model::Worker) -> bool {
        let url = task_url(worker).expect("the worker has joined");
        let dialled = self.fleet.processes().dialer().dial(&url).await;
        speaks_http2(dialled.expect("connect to the worker")).await
    }
}

async fn open(folder: &Path) -> Fleet {
    Fleet::open(settings(folder), clock(), Arc::new(SystemRandom)).await.expect("open the instance in its folder")
}

fn spec(memory_bytes: u64) -> WorkerSpec {
    WorkerSpec {
        hardware_instance: HardwareInstance::LOCAL.to_owned(),
        share: Resources { millicores: 1_000, memory_bytes },
        options: WorkerOptions::default(),
    }
}

/// Whether the peer answers the HTTP/2 connection preface.
async fn speaks_http2(mut stream: impl ByteStream) -> bool {
    let mut frame = [0; 9];
    let hello = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    stream.write_all(&hello).await.is_ok() && stream.read_exact(&mut frame).await.is_ok() && frame[3] == 4
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_joins_takes_tasks_and_ends_when_told() {
    let house = TestInstance::new().await;
    let ticket = house.invite();
    let working = house.work(&ticket, PATIENCE);
    let worker = house.until(ticket.worker, WorkerState::Ready).await;
    assert_eq!((worker.version.as_deref(), worker.failed), (Some("1"), false));
    assert!(house.is_reached(&worker).await);
    let other = cluster_model::Worker { id: WorkerId(worker.id.0 ^ 1), ..worker.clone() };
    let url = task_url(&other).expect("the worker has joined");
    let refused = house.fleet.processes().dialer().dial(&url).await.err().expect("another id is rejected");
    assert!(refused.to_string().contains("not valid for name"), "{refused}");
    house.fleet.processes().configure(ticket.worker, &spec(2 << 20));
    house.fleet.processes().renew_certificates();
    assert!(house.is_reached(&worker).await, "a renewed certificate works");
    // It has no process whose exit could be watched.
    house.fleet.processes().drain(ticket.worker);
    assert_eq!(house.until(ticket.worker, WorkerState::Draining).await.spec, spec(2 << 20));
    assert!(house.fleet.processes().tell_stop(ticket.worker));
    assert_eq!(working.await.expect("no panic").expect("no failure"), WorkerExit::Stopped);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_is_single_use() {
    let house = TestInstance::new().await;
    let ticket = house.invite();
    let forged = Ticket { secret: [7; 32], ..ticket.clone() };
    let unknown = Ticket { worker: WorkerId(ticket.worker.0 ^ 1), ..ticket.clone() };
    let is_refused = async |ticket: &Ticket| {
        let ended = house.work(ticket, PATIENCE).await.expect("no panic").expect("no failure");
        assert!(matches!(ended, WorkerExit::Refused(_)), "{ended:?}");
    };
    is_refused(&forged).await;
    is_refused(&unknown).await;
    let working = house.work(&ticket, PATIENCE);
    let worker = house.until(ticket.worker, WorkerState::Ready).await;
    is_refused(&ticket).await;
    assert!(house.is_reached(&worker).await && !working.is_finished(), "the first worker keeps running");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_another_authority_are_rejected() {
    let (house, other) = (TestInstance::new().await, TestInstance::new().await);
    let ticket = house.invite();
    let misled = Ticket { authority: other.invite().authority, ..ticket.clone() };
    let ended = house.work(&misled, Duration::ZERO).await.expect("no panic").expect("no failure");
    assert_eq!(ended, WorkerExit::InstanceUnreachable, "the worker does not send its secret");
    let working = house.work(&ticket, PATIENCE);
    let worker = house.until(ticket.worker, WorkerState::Ready).await;
    let url = task_url(&worker).expect("the worker has joined");
    other.fleet.processes().dialer().dial(&url).await.err().expect("the worker rejects another instance");
    assert!(house.is_reached(&worker).await && !working.is_finished());
}

/// Clock in the year 2001, for certificates that have expired.
#[derive(Debug)]
struct LongAgo;

impl Clock for LongAgo {
    fn now_us(&self) -> i64 {
        1_000_000_000_000_000
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_connections_are_rejected() {
    let house = TestInstance::new().await;
    let ticket = house.invite();
    let working = house.work(&ticket, PATIENCE);
    let worker = house.until(ticket.worker, WorkerState::Ready).await;
    let tasks: SocketAddr = worker.address.as_deref().expect("the worker has joined").parse().expect("valid address");

    // Connections that do not speak TLS.
    for address in [tasks, house.address()] {
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 5_000], &[22, 3, 1, 255, 255, 1, 0], &[]] {
            let mut stream = TcpStream::connect(address).await.expect("it is listening");
            // It may have closed the connection already.
            let _ = stream.write_all(bytes).await;
            drop(stream);
        }
    }
    // No certificate, and an expired one.
    let authority = &ticket.authority;
    let is_let_in = async |dialled: io::Result<tokio_rustls::client::TlsStream<TcpStream>>| match dialled {
        Ok(stream) => speaks_http2(stream).await,
        Err(_) => false,
    };
    let stranger = dial_unauthenticated(authority, tasks, CertificateName::Worker(worker.id), &house.clock).await;
    assert!(!is_let_in(stranger).await, "task connections need a certificate");
    let key = KeyPair::generate().expect("generate a key");
    for (since, may_come_in) in [(Arc::new(LongAgo) as Arc<dyn Clock>, false), (clock(), true)] {
        let signing = Authority::open(house.folder.path(), since).expect("load the stored authority");
        let certificate = signing.sign(CertificateName::Instance, key.public_key_raw()).expect("sign the certificate");
        let shown =
            Credentials::new(TlsIdentity::new(&key, &certificate, authority).expect("key and certificate match"));
        let dialled = shown.dial(tasks, CertificateName::Worker(worker.id), &house.clock).await;
        assert_eq!(is_let_in(dialled).await, may_come_in);
    }
    // Another protocol version, then malformed messages.
    let hello = |protocol| Hello {
        protocol,
        version: "9".to_owned(),
        worker: ticket.worker,
        secret: None,
        token: None,
        public_key: Base64Bytes(Vec::new()),
    };
    for protocol in [PROTOCOL_VERSION, PROTOCOL_VERSION + 1] {
        let mut stream = dial_unauthenticated(authority, house.address(), CertificateName::Instance, &house.clock)
            .await
            .expect("it is listening");
        write_message(&mut stream, &hello(protocol)).await.expect("it is listening");
        let answer = read_message::<FromInstance>(&mut stream).await.expect("the instance answers");
        assert!(matches!(answer, Some(FromInstance::Refused(_))), "{answer:?}");
    }
    for nonsense in [&[255; 100][..], b"\0\0\0\x02{}", b"\0\0\0\x09{\"protoco"] {
        let mut stream = dial_unauthenticated(authority, house.address(), CertificateName::Instance, &house.clock)
            .await
            .expect("it is listening");
        stream.write_all(nonsense).await.expect("it is listening");
        // It may have hung up already.
        let _ = stream.shutdown().await;
        assert!(
            !matches!(read_message::<FromInstance>(&mut stream).await, Ok(Some(_))),
            "malformed messages get no answer"
        );
    }
    assert!(house.is_reached(&worker).await && !working.is_finished());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_protocol_version_is_refused() {
    let house = TestInstance::new().await;
    let ticket = house.invite();
    let hello = Hello {
        protocol: PROTOCOL_VERSION + 1,
        version: "9".to_owned(),
        worker: ticket.worker,
        secret: Some(Base64Bytes(ticket.secret.to_vec())),
        token: None,
        public_key: Base64Bytes(Vec::new()),
    };
    let authority = &ticket.authority;
    let mut stream = dial_unauthenticated(authority, house.address(), CertificateName::Instance, &house.clock)
        .await
        .expect("it is listening");
    write_message(&mut stream, &hello).await.expect("it is listening");
    let answer = read_message::<FromInstance>(&mut stream).await.expect("the instance answers");
    assert!(matches!(answer, Some(FromInstance::Refused(_))), "{answer:?}");
    let seen = house.until(ticket.worker, WorkerState::Starting).await;
    assert_eq!(seen.version.as_deref(), Some("9"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_rejoins_the_next_instance() {
    let mut house = TestInstance::new().await;
    let ticket = house.invite();
    let working = house.work(&ticket, PATIENCE);
    let before = house.until(ticket.worker, WorkerState::Ready).await;
    let process = house.fleet.processes().pretend_process(ticket.worker);
    let folder = house.folder.path().to_owned();
    house.fleet.abandon().await;
    house.fleet = open(&folder).await;
    let after = house.until(ticket.worker, WorkerState::Ready).await;
    assert_eq!((after.id, &after.address, &after.spec), (before.id, &before.address, &before.spec));
    assert!(house.is_reached(&after).await);
    house.fleet.processes().stop(ticket.worker, StopReason::Unwanted);
    assert_eq!(working.await.expect("no panic").expect("no failure"), WorkerExit::Stopped);
    process();
    assert!(!house.until(ticket.worker, WorkerState::Gone).await.failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_an_instance_ends() {
    let house = TestInstance::new().await;
    let ticket = house.invite();
    let working = house.work(&ticket, Duration::from_millis(300));
    house.until(ticket.worker, WorkerState::Ready).await;
    drop(house.fleet);
    assert_eq!(working.await.expect("no panic").expect("no failure"), WorkerExit::InstanceUnreachable);
}

/// Returns new shards of a table with this number of columns.
fn new_shards(shards: u64, columns: usize) -> NewShards {
    let shard = |number: u64| {
        serde_json::json!({
            "id": u128::from(number).to_be_bytes(), "object": format!("tables/1/{number}.parquet"), "rows": 1,
            "bytes": 1, "tail_bytes": 1, "tail_checksum": u64::MAX, "columns": [], "row_groups": [{ "rows": 1, "bytes": 1 }],
        })
    };
    let column = |id: usize| {
        let name = format!("a column of a name that is rather long {id}");
        serde_json::json!({ "id": id, "name": name, "sql_type": "Int4", "nullable": true, "missing": null })
    };
    let (shards, columns): (Vec<_>, Vec<_>) = ((0..shards).map(shard).collect(), (1..=columns).map(column).collect());
    let new = serde_json::json!({ "table": 1, "cache": "Normal", "columns": columns, "shards": shards });
    serde_json::from_value(new).expect("deserialize new shards")
}

#[tokio::test(flavor = "multi_thread")]
async fn unannounced_shards_count_as_dropped() {
    let house = TestInstance::new().await;
    let ticket = house.invite();
    let _working = house.work(&ticket, PATIENCE);
    let worker = house.until(ticket.worker, WorkerState::Ready).await;
    let processes = house.fleet.processes();
    let left_out = || processes.cache_statistics(worker.id).expect("the worker has statistics").warming.dropped;
    processes.announce_shards(&worker, &[0], vec![new_shards(100, 3), new_shards(1, 1)]).await;
    assert_eq!(left_out(), 0);
    processes.announce_shards(&worker, &[0], vec![new_shards(7, 2_000), new_shards(1, 1)]).await;
    assert_eq!(left_out(), 7, "a table with many columns exceeds the message limit");
    let nowhere = cluster_model::Worker { address: None, ..worker.clone() };
    processes.announce_shards(&nowhere, &[0], vec![new_shards(2, 1)]).await;
    assert_eq!(left_out(), 9);
}

#[test]
fn a_busy_worker_sends_heartbeats() {
    let here = tokio::runtime::Runtime::new().expect("build a runtime");
    let one = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let one = one.expect("build a runtime");
    here.block_on(async {
        let house = TestInstance::new().await;
        let ticket = house.invite();
        let settings = house.worker(&ticket, PATIENCE);
        let working = one.spawn(run(settings, clock(), Arc::new(SystemRandom), Box::pin(std::future::pending())));
        house.until(ticket.worker, WorkerState::Ready).await;
        let ((busy, is_busy), (release, released)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
        one.spawn(async move {
            busy.send(()).expect("the receiver waits");
            released.recv()
        });
        is_busy.recv().expect("the task occupies the only thread");
        let since = house.clock.monotonic();
        let hearing = async {
            // Two intervals, because one heartbeat may have been in flight.
            while house.fleet.processes().observe()[0].last_heartbeat < since + 2 * HEARTBEAT_INTERVAL {
                house.clock.sleep(HEARTBEAT_INTERVAL / 4).await;
            }
            Ok(())
        };
        with_timeout(&house.clock, PATIENCE, hearing).await.expect("heartbeats arrive in time");
        assert!(!working.is_finished());
        drop(release);
    });
}

#[tokio::test]
async fn a_wildcard_join_address_is_refused() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let settings = FleetSettings { join_address: SocketAddr::from(([0, 0, 0, 0], 0)), ..settings(folder.path()) };
    let refused = Fleet::open(settings, clock(), Arc::new(SystemRandom)).await.expect_err("it is a wildcard");
    assert!(matches!(refused, FleetError::WildcardAddress { .. }), "{refused}");
}

#[test]
fn instance_urls_are_parsed() {
    assert_eq!(parse_instance_url("kiln://127.0.0.1:4711").as_deref(), Ok("127.0.0.1:4711"));
    assert_eq!(parse_instance_url("kiln://[::1]:4711/").as_deref(), Ok("[::1]:4711"));
    for wrong in ["127.0.0.1:4711", "http://127.0.0.1:4711", "kiln://127.0.0.1", "kiln://a:1/b", ""] {
        assert!(parse_instance_url(wrong).is_err(), "{wrong}");
    }
}

/// Verifier that accepts tokens `good LIFE`.
#[derive(Debug)]
struct TestVerifier;

impl TokenVerifier for TestVerifier {
    fn verify<'a>(&'a self, token: &'a str) -> VerifyFuture<'a> {
        let vouched = token.strip_prefix("good ").map(|life| VerifiedWorker {
            cluster: ClusterId(2),
            slot: 3,
            spec: spec(1 << 20),
            host_uid: life.to_owned(),
        });
        Box::pin(std::future::ready(vouched.ok_or_else(|| "nobody knows it".to_owned())))
    }
}

/// Opens an instance that accepts workers with tokens.
async fn open_with_tokens(folder: &Path) -> TestInstance {
    let data = tempfile::tempdir().expect("create a temporary folder");
    let settings = FleetSettings { token_verifier: Some(Arc::new(TestVerifier)), ..settings(folder) };
    let fleet = Fleet::open(settings, clock(), Arc::new(SystemRandom)).await.expect("open the instance in its folder");
    std::fs::write(folder.join("known.pem"), fleet.authority_pem()).expect("open the instance in its folder");
    TestInstance { fleet, folder: data, clock: clock() }
}

/// Starts a worker with this token; returns its id, a sender that asks it to terminate, and its task.
fn spawn_token_worker(
    house: &TestInstance,
    folder: &Path,
    token: &str,
    patience: Duration,
) -> (WorkerId, tokio::sync::oneshot::Sender<()>, JoinHandle<Result<WorkerExit, WorkerError>>) {
    let path = folder.join("token");
    std::fs::write(&path, token).expect("open the instance in its folder");
    let token = crate::TokenFile::new(path, &folder.join("known.pem"), &SystemRandom).expect("read the certificate");
    let settings = WorkerSettings {
        instance_address: crate::WorkerProcesses::previous_address(&settings(folder))
            .expect("the roster exists")
            .to_string(),
        credential: JoinCredential::Token(token),
        folder: Some(house.folder.path().to_owned()),
        listen: None,
        reconnect_timeout: patience,
        version: "1".to_owned(),
    };
    let (id, (tell, told)) = (settings.id(), tokio::sync::oneshot::channel());
    let working = tokio::spawn(run(settings, clock(), Arc::new(SystemRandom), Box::pin(async { drop(told.await) })));
    (id, tell, working)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_a_token_joins_and_drains() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let house = open_with_tokens(folder.path()).await;
    let processes = house.fleet.processes();
    let (id, tell, working) = spawn_token_worker(&house, folder.path(), "good pod-1\n", PATIENCE);
    let worker = house.until(id, WorkerState::Ready).await;
    assert_eq!((worker.cluster, worker.slot), (ClusterId(2), 3));
    assert_eq!(processes.host_uid(id).as_deref(), Some("pod-1"));
    assert!(house.is_reached(&worker).await);
    assert!(house.folder.path().join("2-3").exists(), "the cache is in the worker's own folder");

    // Its process is restarted in the same pod: another worker replaces it.
    let (next, tell_next, next_working) = spawn_token_worker(&house, folder.path(), "good pod-1", PATIENCE);
    house.until(next, WorkerState::Ready).await;
    let before = house.until(id, WorkerState::Gone).await;
    assert!(before.failed, "it ended without an order");
    drop((tell, working));

    // The process is asked to terminate: it exits when the instance allows it.
    drop(tell_next);
    house.until(next, WorkerState::Draining).await;
    assert!(!next_working.is_finished());
    processes.stop(next, StopReason::Drained);
    assert_eq!(next_working.await.expect("no panic").expect("no failure"), WorkerExit::Stopped);
    let gone = house.until(next, WorkerState::Gone).await;
    assert_eq!((gone.failed, gone.detail.as_deref()), (false, Some("drained")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_an_invalid_token_is_refused() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let house = open_with_tokens(folder.path()).await;
    let (_, _tell, working) = spawn_token_worker(&house, folder.path(), "forged", Duration::ZERO);
    let ended = working.await.expect("no panic").expect("no failure");
    assert_eq!(ended, WorkerExit::Refused("nobody knows it".to_owned()));
    let (_, tell, working) = spawn_token_worker(&house, folder.path(), "forged", PATIENCE);
    drop(tell);
    assert_eq!(working.await.expect("no panic").expect("no failure"), WorkerExit::Stopped);
    assert!(house.fleet.processes().observe().is_empty());
    // An instance without a verifier accepts no tokens.
    let other = tempfile::tempdir().expect("create a temporary folder");
    let fleet = open(other.path()).await;
    std::fs::write(other.path().join("known.pem"), fleet.authority_pem()).expect("open the instance in its folder");
    let alone = TestInstance { fleet, folder: tempfile::tempdir().expect("create a temporary folder"), clock: clock() };
    let (_, _tell, working) = spawn_token_worker(&alone, other.path(), "good pod-1", Duration::ZERO);
    let ended = working.await.expect("no panic").expect("no failure");
    assert!(matches!(ended, WorkerExit::Refused(_)), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_a_token_rejoins_until_its_pod_is_gone() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let house = open_with_tokens(folder.path()).await;
    let (id, _tell, working) = spawn_token_worker(&house, folder.path(), "good pod-1", PATIENCE);
    house.until(id, WorkerState::Ready).await;
    let TestInstance { fleet, folder: disk, clock } = house;
    // The instance shuts down; workers that it has not started reconnect to the next one.
    fleet.close().await;
    fleet.abandon().await;
    let next = open_with_tokens(folder.path()).await;
    let house = TestInstance { fleet: next.fleet, folder: disk, clock };
    house.until(id, WorkerState::Ready).await;
    assert_eq!(house.fleet.processes().host_uid(id).as_deref(), Some("pod-1"));
    assert!(!working.is_finished());
    house.fleet.processes().mark_lost(id, "its pod is gone");
    let gone = house.until(id, WorkerState::Gone).await;
    assert_eq!((gone.failed, gone.detail.as_deref()), (true, Some("its pod is gone")));
}
