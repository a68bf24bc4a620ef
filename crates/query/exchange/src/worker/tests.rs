use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit};
use types::{SystemClock, SystemRandom};
use url::Url;

use super::*;
use crate::Dial;
use shards::CacheDisk;

#[derive(Debug)]
struct Nobody;

#[async_trait]
impl Dial for Nobody {
    async fn dial(&self, _: &Url) -> io::Result<Box<dyn ByteStream>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_has_what_it_was_last_told() {
    let folder = tempfile::tempdir().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let objects = Objects::open("memory:///", Arc::clone(&clock), Arc::new(SystemRandom)).unwrap();
    let reserve = Reserve { disk: Arc::new(objects::FolderDisk::of(folder.path())), bytes: 0 };
    let disk = CacheDisk { folder: folder.path().join("cache"), bytes_max: 1 << 20, part: 4, reserve: reserve.clone() };
    let config = Config {
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
    assert_eq!((worker.memory_used(), worker.running()), (800, 0));
    let share = WorkerShare {
        threads: 3,
        memory_bytes: 500,
        cache_bytes: 100,
        cache_disk: DiskPart { bytes_max: 7, part: 1 },
        spill_bytes_max: 30,
    };
    worker.configure(&share).unwrap();
    assert_eq!(worker.inner.threads.read().1, 3);
    taken.try_grow(1).unwrap_err();
    assert_eq!(worker.memory_used(), 800, "nothing is taken back");
    assert!(matches!(pool.memory_limit(), MemoryLimit::Finite(500)));
    assert_eq!(worker.cache_tiers()[0].bytes_max, 100);
    let health = Health::default();
    tokio::select! {
        biased;
        () = worker.keep_spill_room(&reserve, &health) => unreachable!("it is kept for ever"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(worker.inner.runtime.disk_manager.max_temp_directory_size(), 30);
}
