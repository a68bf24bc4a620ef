use std::process::Command;

use cluster_model::{HardwareInstance, Resources, WorkerOptions};
use types::SystemRandom;

use super::*;
use crate::fixtures::{clock, settings};
use crate::mutual_tls::{Credentials, TlsIdentity};

fn start(slot: u32) -> StartRequest {
    let share = Resources { millicores: 1_000, memory_bytes: 1 << 20 };
    let spec =
        WorkerSpec { hardware_instance: HardwareInstance::LOCAL.to_owned(), share, options: WorkerOptions::default() };
    StartRequest { cluster: ClusterId(2), slot, spec }
}

fn open(folder: &std::path::Path, program: &str) -> Arc<WorkerProcesses> {
    let settings = FleetSettings { program: program.into(), ..settings(folder) };
    std::fs::create_dir_all(&settings.workers_folder).expect("create folder and authority");
    let authority = Arc::new(Authority::open(folder, clock()).expect("create folder and authority"));
    let key = rcgen::KeyPair::generate().expect("generate a key");
    let certificate = authority.sign(CertificateName::Instance, key.public_key_raw()).expect("sign the certificate");
    let identity = TlsIdentity::new(&key, &certificate, authority.certificate()).expect("key and certificate match");
    let dialer = TlsDialer::new(Credentials::new(identity), clock());
    let address = SocketAddr::from(([127, 0, 0, 1], 9));
    WorkerProcesses::open(settings, authority, address, dialer, clock(), Arc::new(SystemRandom))
}

/// Waits until the only worker fulfils a condition.
async fn until(host: &WorkerProcesses, is_so: impl Fn(&Worker) -> bool) -> Worker {
    loop {
        let seen = host.changes().current();
        let worker = host.observe().pop().expect("there is a worker");
        if is_so(&worker) {
            return worker;
        }
        host.changes().wait_for_newer(seen).await;
    }
}

fn is_gone(worker: &Worker) -> bool {
    worker.state == WorkerState::Gone
}

#[tokio::test]
async fn a_missing_program_fails_the_worker() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let host = open(folder.path(), "/nowhere/kiln");
    host.start(&start(0));
    let worker = host.observe().pop().expect("the worker is observed");
    assert!(is_gone(&worker) && worker.failed);
    assert!(worker.detail.expect("the worker has a detail").starts_with("could not start /nowhere/kiln: "));
    host.forget(worker.id);
    assert!(host.observe().is_empty());
}

#[tokio::test]
async fn a_process_that_ends_by_itself_has_failed() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let host = open(folder.path(), "/bin/false");
    host.start(&start(0));
    let worker = until(&host, is_gone).await;
    assert_eq!((worker.failed, worker.detail.as_deref()), (true, Some("ended with exit status 1")));
}

/// Registers a worker with a process that only sleeps.
fn sleeping(host: &WorkerProcesses) -> (WorkerId, Process) {
    let id = host.register_worker(&start(0)).expect("the host is not shutting down").worker;
    (id, give_process(host, id))
}

fn give_process(host: &WorkerProcesses, id: WorkerId) -> Process {
    let process = Process::spawn(Command::new("sleep").arg("600")).expect("start sleep");
    host.state.lock().workers.get_mut(&id).expect("the worker is registered").process = Some(process.clone());
    host.watch_exit(id, process.clone());
    process
}

impl WorkerProcesses {
    /// Gives a worker a process that only sleeps; the returned function kills it.
    pub(crate) fn pretend_process(&self, worker: WorkerId) -> impl FnOnce() + use<> {
        let process = give_process(self, worker);
        self.save_roster();
        move || process.kill()
    }

    /// Sends a stop message and does nothing else.
    pub(crate) fn tell_stop(&self, worker: WorkerId) -> bool {
        self.state.lock().workers[&worker].send(FromInstance::Stop)
    }
}

#[tokio::test]
async fn a_stopped_worker_is_gone_when_its_process_exits() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let host = open(folder.path(), "/nowhere/kiln");
    for (reason, failed) in [(StopReason::Unwanted, false), (StopReason::JoinTimeout, true)] {
        let (id, _) = sleeping(&host);
        host.stop(id, reason);
        host.stop(id, reason);
        let worker = until(&host, is_gone).await;
        assert_eq!((worker.failed, worker.detail), (failed, Some(reason.to_string())));
        host.forget(id);
    }
    let (id, _) = sleeping(&host);
    host.forget(id);
    assert_eq!(host.observe().len(), 1, "only ended workers are forgotten");
    host.close().await;
    assert!(is_gone(&host.observe()[0]));
    host.start(&start(1));
    assert_eq!(host.observe().len(), 1, "no worker is started after close");
}

#[tokio::test]
async fn the_next_instance_takes_over_workers() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let host = open(folder.path(), "/nowhere/kiln");
    let (joined, process) = sleeping(&host);
    host.state.lock().workers.get_mut(&joined).expect("the worker is registered").has_joined = true;
    let (stranger, never_joined) = sleeping(&host);
    host.save_roster();
    drop(host);

    let host = open(folder.path(), "/nowhere/kiln");
    let found = host.observe();
    assert_eq!(found.iter().map(|worker| worker.id).collect::<Vec<_>>(), [joined]);
    assert_eq!((found[0].state, &found[0].spec), (WorkerState::Starting, &start(0).spec));
    assert_ne!(stranger, joined);
    // A worker without a certificate cannot rejoin and is killed.
    never_joined.wait_for_exit().await;
    process.kill();
    let gone = until(&host, is_gone).await;
    assert!(gone.failed, "it exited without an order");
}

#[tokio::test]
async fn statements_count_on_all_workers_of_their_cluster() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let host = open(folder.path(), "/nowhere/kiln");
    let (id, process) = sleeping(&host);
    assert!(host.register_statement(&host.observe()).is_none(), "a worker that has not joined gets no statements");
    let ready = |host: &WorkerProcesses| {
        let mut hosted = host.state.lock();
        hosted
            .workers
            .get_mut(&id)
            .expect("the worker is registered")
            .mark_joined("127.0.0.1:1".to_owned(), Duration::ZERO);
    };
    ready(&host);
    let first = host.register_statement(&host.observe()).expect("the worker is ready");
    let second = host.register_statement(&host.observe()).expect("the worker is ready");
    assert_eq!(first.worker_processes()[0].id, id);
    assert_eq!(host.observe()[0].running, 2);
    drop(second);
    host.drain(id);
    assert_eq!((host.observe()[0].running, host.observe()[0].state), (1, WorkerState::Draining));
    assert!(host.register_statement(&host.observe()).is_none(), "a draining worker gets no statements");
    let seen = host.changes().current();
    assert!(!first.shutdown_token().is_cancelled());
    host.stop(id, StopReason::GracePeriodExceeded);
    assert!(first.shutdown_token().is_cancelled());
    drop(first);
    assert!(seen < host.changes().current(), "the end of the last statement advances the revision");
    process.kill();
    until(&host, is_gone).await;
}

#[tokio::test]
async fn an_unreachable_worker_counts_as_hung_unless_it_is_the_last() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let host = open(folder.path(), "/nowhere/kiln");
    let mut ready = Vec::new();
    for slot in 0..2 {
        let id = host.register_worker(&start(slot)).expect("the host is not shutting down").worker;
        let mut hosted = host.state.lock();
        hosted
            .workers
            .get_mut(&id)
            .expect("the worker is registered")
            .mark_joined("127.0.0.1:1".to_owned(), Duration::ZERO);
        ready.push(id);
    }
    let hung = |host: &WorkerProcesses| -> Vec<WorkerId> {
        host.observe().iter().filter(|worker| worker.hung).map(|worker| worker.id).collect()
    };
    let seen = host.changes().current();
    host.report_unreachable(ready[0]);
    assert_eq!(hung(&host), [ready[0]]);
    assert!(seen < host.changes().current(), "the report advances the revision");
    host.report_unreachable(ready[1]);
    assert_eq!(hung(&host), [ready[0]], "the last worker of a cluster is never marked");
    // Its own heartbeats do not end this state, but time does.
    let mut hosted = host.state.lock();
    let one = hosted.workers.get_mut(&ready[0]).expect("the worker is registered");
    let (now, later) = (clock().monotonic(), Duration::from_secs(1_000_000));
    one.record_contact(now);
    assert_eq!(one.observed(now).detail.as_deref(), Some("a query could not reach it"));
    assert!(!one.observed(later).hung);
}
