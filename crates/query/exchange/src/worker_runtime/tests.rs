use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit};
use types::{SystemClock, SystemRandom};
use url::Url;

use super::*;
use crate::Dialer;
use shards::DiskTierSettings;

#[derive(Debug)]
struct Nobody;

#[async_trait]
impl Dialer for Nobody {
    async fn dial(&self, _: &Url) -> io::Result<Box<dyn ByteStream>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_has_what_it_was_last_told() {
    let folder = tempfile::tempdir().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let objects = Objects::open("memory:///", Arc::clone(&clock), Arc::new(SystemRandom)).unwrap();
    let reserve = DiskReserve { disk: Arc::new(objects::FolderDisk::new(folder.path())), bytes: 0 };
    let disk = DiskTierSettings {
        folder: folder.path().join("cache"),
        bytes_max: 1 << 20,
        space_divisor: 4,
        reserve: reserve.clone(),
    };
    let config = ResourceConfig {
        memory_bytes: 1_000,
        cache_bytes: 2_000,
        fragment_cache_bytes: 0,
        cache_disk: Some(disk),
        spill_folder: folder.path().join("spill"),
        spill_bytes_max: 3_000,
        threads: 1,
    };
    let worker = Worker::start(objects, &clock, &config, Channels::new(Arc::new(Nobody)), "1").unwrap();
    let pool = Arc::clone(&worker.inner.runtime.memory_pool);
    let taken = MemoryConsumer::new("a").register(&pool);
    taken.try_grow(800).unwrap();
    assert_eq!((worker.memory_used(), worker.running_queries()), (800, 0));
    let share = WorkerLimits {
        threads: 3,
        memory_bytes: 500,
        cache_bytes: 100,
        cache_disk: DiskQuota { bytes_max: 7, space_divisor: 1 },
        spill_bytes_max: 30,
    };
    worker.configure(&share).unwrap();
    assert_eq!(worker.inner.threads.read().1, 3);
    taken.try_grow(1).unwrap_err();
    assert_eq!(worker.memory_used(), 800, "nothing is taken back");
    assert!(matches!(pool.memory_limit(), MemoryLimit::Finite(500)));
    assert_eq!(worker.cache_tiers()[0].bytes_max, 100);
    let health = ServiceHealth::default();
    tokio::select! {
        biased;
        () = worker.enforce_spill_limit(&reserve, &health) => unreachable!("it is kept for ever"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(worker.inner.runtime.disk_manager.max_temp_directory_size(), 30);
}
