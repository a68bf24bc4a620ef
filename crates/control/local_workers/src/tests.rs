use std::collections::BTreeMap;
use std::sync::Arc;

use cluster_model::{
    ClusterId, HardwareInstance, HardwareKind, Inventory, ReconcileSettings, Resources, StopReason, WlmProfile, Worker,
    WorkerId, WorkerOptions, WorkerSpec, WorkerState,
};
use control_plane::LocalControlPlane;
use control_plane::conformance_tests::{self, TestEnvironment};
use control_plane::{ControlPlane, StartRequest, WorkerHost};
use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryConsumer, MemoryPool};
use scheduler::{QueryThreads, WorkerMemory};
use types::random::SeededRandom;
use types::{Oid, SystemClock};

use super::{DesiredStateFile, EmbeddedWorkers};

const MEMORY: u64 = 1 << 20;

fn host(cores: usize) -> Arc<EmbeddedWorkers> {
    let clock: Arc<dyn types::Clock> = Arc::new(SystemClock::new());
    let threads = Arc::new(QueryThreads::start(cores, &clock).unwrap());
    let memory = Arc::new(FairSpillPool::new(usize::try_from(MEMORY).unwrap()));
    EmbeddedWorkers::new(threads, cores, memory, MEMORY, clock, Arc::new(SeededRandom::new(1)))
}

fn spec(millicores: u32, memory_bytes: u64) -> WorkerSpec {
    WorkerSpec {
        hardware_instance: HardwareInstance::EMBEDDED.to_owned(),
        share: Resources { millicores, memory_bytes },
        options: WorkerOptions::default(),
    }
}

fn start(host: &EmbeddedWorkers, slot: u32, spec: WorkerSpec) -> Worker {
    host.start(&StartRequest { cluster: ClusterId(1), slot, spec });
    host.observe().into_iter().find(|worker| worker.slot == slot).unwrap()
}

fn observed(host: &EmbeddedWorkers, id: WorkerId) -> Worker {
    host.observe().into_iter().find(|worker| worker.id == id).unwrap()
}

#[test]
fn a_statement_goes_to_the_least_busy_worker() {
    let host = host(2);
    let workers = [start(&host, 0, spec(1_000, MEMORY / 2)), start(&host, 1, spec(1_000, MEMORY / 2))];
    let leases: Vec<_> = (0..4).map(|_| host.lease(&workers).unwrap()).collect();
    assert!(workers.iter().all(|worker| observed(&host, worker.id).running == 2));
    let of_first: Vec<_> = leases.into_iter().filter(|lease| lease.worker() == workers[0].id).collect();
    assert_eq!(observed(&host, workers[1].id).running, 0, "a dropped lease is released");
    assert_eq!(host.lease(&workers).unwrap().worker(), workers[1].id);
    drop(of_first);
}

#[test]
fn a_draining_worker_ends_what_it_has_and_gets_nothing_new() {
    let host = host(1);
    let worker = start(&host, 0, spec(1_000, MEMORY));
    let lease = host.lease(std::slice::from_ref(&worker)).unwrap();
    host.drain(worker.id);
    assert_eq!(observed(&host, worker.id).state, WorkerState::Draining);
    assert!(host.lease(std::slice::from_ref(&worker)).is_none());
    assert!(!lease.is_worker_shut_down(), "running statements continue");
    host.forget(worker.id);
    assert_eq!(observed(&host, worker.id).running, 1, "only ended workers are forgotten");
    host.stop(worker.id, StopReason::GracePeriodExceeded);
    assert!(lease.is_worker_shut_down());
    let gone = observed(&host, worker.id);
    assert_eq!((gone.state, gone.failed, gone.running), (WorkerState::Gone, false, 0));
    host.forget(worker.id);
    assert!(host.observe().is_empty());
}

#[test]
fn the_worker_with_all_cores_has_the_threads_of_the_process() {
    let host = host(2);
    let is_own = |worker: &Worker| {
        let lease = host.lease(std::slice::from_ref(worker)).unwrap();
        Arc::ptr_eq(lease.threads(), &host.threads)
    };
    let first = start(&host, 0, spec(2_000, MEMORY));
    let second = start(&host, 1, spec(2_000, MEMORY));
    assert!(is_own(&first) && !is_own(&second), "only one worker uses the threads of the process");
    host.configure(first.id, &spec(1_000, MEMORY / 2));
    assert_eq!(observed(&host, first.id).spec, spec(1_000, MEMORY / 2));
    assert!(!is_own(&first), "a worker with fewer cores has separate threads");
    host.configure(first.id, &spec(2_000, MEMORY));
    assert!(is_own(&first), "with all cores it uses the threads of the process again");
    host.stop(first.id, StopReason::Drained);
    host.configure(second.id, &spec(1_000, MEMORY));
    host.configure(second.id, &spec(2_000, MEMORY));
    assert!(is_own(&second), "the threads are free after their worker has ended");
}

#[test]
fn the_number_of_workers_is_limited() {
    let host = host(1);
    for slot in 0..300 {
        host.start(&StartRequest { cluster: ClusterId(1), slot, spec: spec(10, 1) });
    }
    let workers = host.observe();
    let failed: Vec<&Worker> = workers.iter().filter(|worker| worker.failed).collect();
    assert_eq!((workers.len(), failed.len()), (300, 300 - super::WORKERS_MAX));
    let told = failed[0].detail.as_deref().unwrap();
    assert_eq!(told, "the process has 256 workers already");
}

#[test]
fn a_workers_memory_has_a_limit_that_changes() {
    let all: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1_000));
    let memory = WorkerMemory::new(Arc::clone(&all), Some(600));
    let pool: Arc<dyn MemoryPool> = Arc::clone(&memory) as Arc<dyn MemoryPool>;
    let spiller = |name: &str| MemoryConsumer::new(name).with_can_spill(true).register(&pool);
    let (first, second) = (spiller("a"), spiller("b"));
    let fixed = MemoryConsumer::new("c").register(&pool);
    first.try_grow(300).unwrap();
    first.try_grow(1).unwrap_err();
    second.try_grow(200).unwrap();
    fixed.try_grow(100).unwrap();
    fixed.try_grow(1).unwrap_err();
    assert_eq!((memory.used(), all.reserved()), (600, 600));
    memory.set_limit(Some(400));
    second.try_grow(1).unwrap_err();
    memory.set_limit(None);
    second.try_grow(400).unwrap();
    fixed.try_grow(1).unwrap_err();
    assert_eq!(memory.used(), 1_000, "a refused allocation is not counted");
    drop((first, second, fixed));
    assert_eq!((memory.used(), all.reserved()), (0, 0));
}

/// Control plane over workers of this process.
#[derive(Debug)]
struct TestInstance {
    host: Arc<EmbeddedWorkers>,
    folder: tempfile::TempDir,
    plane: Option<LocalControlPlane>,
}

impl TestInstance {
    fn open(&self) -> LocalControlPlane {
        let hardware = HardwareInstance {
            name: HardwareInstance::EMBEDDED.to_owned(),
            kind: HardwareKind::Embedded,
            description: String::new(),
        };
        let profile = WlmProfile { name: "default".to_owned(), max_running: 100 };
        let mut settings = ReconcileSettings::new(self.host.version(), self.host.machine());
        settings.backoff_initial = std::time::Duration::ZERO;
        LocalControlPlane::open(
            Box::new(DesiredStateFile::in_folder(self.folder.path())),
            BTreeMap::from([(HardwareKind::Embedded, Arc::clone(&self.host) as Arc<dyn WorkerHost>)]),
            Inventory::new([hardware], [profile]),
            settings,
            Arc::clone(&self.host.clock),
            Oid(10),
        )
        .unwrap()
    }

    fn plane(&self) -> &LocalControlPlane {
        self.plane.as_ref().unwrap()
    }
}

impl TestEnvironment for TestInstance {
    fn plane(&self) -> &dyn ControlPlane {
        TestInstance::plane(self)
    }

    fn pass(&mut self) {
        TestInstance::plane(self).reconcile(&BTreeMap::new());
    }

    fn kill(&mut self, worker: WorkerId) {
        self.host.stop(worker, StopReason::Hung);
    }

    fn restart(&mut self) {
        // Embedded workers end with the process.
        for worker in self.host.observe() {
            self.host.stop(worker.id, StopReason::Unwanted);
            self.host.forget(worker.id);
        }
        self.plane = None;
        self.plane = Some(self.open());
    }
}

#[test]
fn the_control_plane_of_one_process_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let mut embedded = TestInstance { host: host(2), folder, plane: None };
    embedded.plane = Some(embedded.open());
    conformance_tests::run(&mut embedded, HardwareInstance::EMBEDDED);
}

#[test]
fn a_damaged_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let embedded = TestInstance { host: host(1), folder, plane: None };
    drop(embedded.open());
    let path = DesiredStateFile::in_folder(embedded.folder.path()).path();
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let opened = LocalControlPlane::open(
        Box::new(DesiredStateFile::in_folder(embedded.folder.path())),
        BTreeMap::from([
            (HardwareKind::Embedded, Arc::clone(&embedded.host) as Arc<dyn WorkerHost>),
            (HardwareKind::Local, Arc::clone(&embedded.host) as Arc<dyn WorkerHost>),
        ]),
        Inventory::single_machine(),
        ReconcileSettings::new("1", embedded.host.machine()),
        Arc::clone(&embedded.host.clock),
        Oid(10),
    );
    let error = opened.unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}
