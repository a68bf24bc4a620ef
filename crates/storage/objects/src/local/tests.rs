use std::fs;
use std::os::unix::fs::symlink;

use object_store::{ObjectStoreExt, UpdateVersion};
use types::{Disk, SystemClock, SystemRandom};

use super::*;
use crate::{Objects, conformance};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_folder_is_a_storage() {
    let root = tempfile::tempdir().unwrap();
    let url = format!("file://{}", root.path().join("not yet made/storage").display());
    let objects = Objects::open(&url, Arc::new(SystemClock::new()), Arc::new(SystemRandom)).unwrap();
    conformance::check(&objects).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_on_one_folder_keep_each_others_conditions() {
    let root = tempfile::tempdir().unwrap();
    let stores = [store(root.path()), store(root.path())];
    let path = Path::from("count");
    stores[0].put(&path, "0".into()).await.unwrap();
    let workers = (0..4).map(|worker| {
        let (store, path) = (Arc::clone(&stores[worker % 2]), path.clone());
        tokio::spawn(async move {
            let mut done = 0;
            while done < 25 {
                let found = store.get(&path).await.unwrap();
                let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: None };
                let count: u64 = std::str::from_utf8(&found.bytes().await.unwrap()).unwrap().parse().unwrap();
                let next = PutPayload::from((count + 1).to_string());
                match store.put_opts(&path, next, PutMode::Update(version).into()).await {
                    Ok(_) => done += 1,
                    Err(error) => assert!(matches!(error, Error::Precondition { .. }), "{error:?}"),
                }
            }
        })
    });
    for worker in futures::future::join_all(workers).await {
        worker.unwrap();
    }
    assert_eq!(stores[1].get(&path).await.unwrap().bytes().await.unwrap(), "100");
}

#[tokio::test]
async fn each_content_of_a_name_has_its_own_version() {
    let root = tempfile::tempdir().unwrap();
    // The clock does not advance: inode and size repeat, so the modification time must not.
    let store = LocalStore::new(root.path(), Arc::new(StoppedClock)).unwrap();
    let path = Path::from("a");
    let mut versions = std::collections::HashSet::new();
    for round in 0..50 {
        let written = store.put(&path, "x".into()).await.unwrap().e_tag;
        assert_eq!(store.head(&path).await.unwrap().e_tag, written);
        assert!(versions.insert(written), "round {round} has the version of an earlier one");
        if round % 7 == 0 {
            store.delete(&path).await.unwrap();
        }
    }
}

#[derive(Debug)]
struct StoppedClock;

impl Clock for StoppedClock {
    fn now_us(&self) -> i64 {
        1_700_000_000_000_000
    }

    fn monotonic(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    fn sleep(&self, _: std::time::Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn reading_a_folder_leaves_no_traces() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("data.csv"), "1,2").unwrap();
    let readable = store(root.path());
    assert_eq!(readable.get(&Path::from("data.csv")).await.unwrap().bytes().await.unwrap(), "1,2");
    assert_eq!(listed(&readable).await, ["data.csv"]);
    drop(readable);
    assert_eq!(entries(root.path()), ["data.csv"]);

    let absent = root.path().join("absent");
    let store = store(&absent);
    assert!(matches!(store.get(&Path::from("a")).await, Err(Error::NotFound { .. })));
    assert!(listed(&store).await.is_empty());
    assert!(!absent.exists());
}

#[tokio::test]
async fn files_of_dead_writers_are_removed_and_those_of_the_living_stay() {
    let root = tempfile::tempdir().unwrap();
    let living = store(root.path());
    let mut upload = living.put_multipart(&Path::from("a")).await.unwrap();
    upload.put_part("part ".into()).await.unwrap();
    let dead = root.path().join(".kiln/writer-7");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("lock"), "").unwrap();
    fs::write(dead.join("0"), "half an object").unwrap();

    let other = store(root.path());
    assert!(!dead.exists(), "nobody holds its lock");
    upload.put_part("by part".into()).await.unwrap();
    upload.complete().await.unwrap();
    assert_eq!(other.get(&Path::from("a")).await.unwrap().bytes().await.unwrap(), "part by part");
    drop((living, other, upload));
    assert_eq!(entries(&root.path().join(".kiln")), ["lock"], "the living clean up when they go");
}

#[tokio::test]
async fn a_dropped_or_failed_write_leaves_no_file() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    let path = Path::from("a");
    store.put(&path, "first".into()).await.unwrap();
    assert!(store.put_opts(&path, "second".into(), PutMode::Create.into()).await.is_err());
    let mut upload = store.put_multipart(&path).await.unwrap();
    upload.put_part("x".into()).await.unwrap();
    drop(upload);
    let mut upload = store.put_multipart(&path).await.unwrap();
    upload.put_part("x".into()).await.unwrap();
    upload.abort().await.unwrap();
    assert!(upload.complete().await.is_err(), "an aborted upload cannot be completed");
    assert_eq!(entries(&root.path().join(".kiln/writer-0")), ["lock"]);
    assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), "first");
}

#[tokio::test]
async fn an_upload_with_a_part_that_never_ran_is_not_completed() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    let mut upload = store.put_multipart(&Path::from("a")).await.unwrap();
    let skipped = upload.put_part("first".into());
    upload.put_part("second".into()).await.unwrap();
    assert!(upload.complete().await.is_err(), "a part is on its way");
    drop(skipped);
    assert!(matches!(store.head(&Path::from("a")).await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn no_name_leads_out_of_the_folder() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let root = tempfile::tempdir().unwrap();
    symlink(outside.path(), root.path().join("link")).unwrap();
    symlink(outside.path().join("secret"), root.path().join("file-link")).unwrap();
    let store = store(root.path());
    for name in ["link/secret", "file-link"] {
        let path = Path::from(name);
        assert!(matches!(store.get(&path).await, Err(Error::PermissionDenied { .. })), "{name}");
    }
    let inside = Path::from("link/secret");
    assert!(matches!(store.put(&inside, "x".into()).await, Err(Error::PermissionDenied { .. })));
    assert!(matches!(store.put(&Path::from("link/new"), "x".into()).await, Err(Error::PermissionDenied { .. })));
    assert!(matches!(store.delete(&inside).await, Err(Error::PermissionDenied { .. })));
    assert!(store.list(Some(&Path::from("link"))).next().await.unwrap().is_err());
    assert!(listed(&store).await.is_empty(), "links are no objects");
    // A put replaces a symbolic link itself, not the file it points to.
    store.put(&Path::from("file-link"), "ours".into()).await.unwrap();
    assert_eq!(entries(outside.path()), ["secret"]);
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");

    // Names that `Path` accepts in raw form.
    for name in ["..", "a/../../b", "."] {
        let path = Path::from(name);
        store.put(&path, "x".into()).await.unwrap();
        assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), "x", "kept inside, under another name");
    }
    for name in [".kiln/lock", ".kiln"] {
        assert!(store.put(&Path::from(name), "x".into()).await.is_err(), "{name} is the store's own");
        assert!(store.get(&Path::from(name)).await.is_err(), "{name} is the store's own");
    }
}

#[tokio::test]
async fn copies_and_renames_follow_their_mode() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    let [a, b] = ["a", "b"].map(Path::from);
    store.put(&a, "a".into()).await.unwrap();
    store.copy_if_not_exists(&a, &b).await.unwrap();
    assert!(matches!(store.copy_if_not_exists(&a, &b).await, Err(Error::AlreadyExists { .. })));
    store.put(&a, "new".into()).await.unwrap();
    store.rename(&a, &b).await.unwrap();
    assert_eq!(listed(&store).await, ["b"]);
    assert_eq!(store.get(&b).await.unwrap().bytes().await.unwrap(), "new");
}

fn store(root: &FilePath) -> Arc<LocalStore> {
    Arc::new(LocalStore::new(root, Arc::new(SystemClock::new())).unwrap())
}

async fn listed(store: &LocalStore) -> Vec<String> {
    let mut names: Vec<_> = store.list(None).map(|meta| meta.unwrap().location.to_string()).collect().await;
    names.sort();
    names
}

fn entries(folder: &FilePath) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A disk whose free space the test sets.
#[derive(Debug, Default)]
struct SmallDisk(std::sync::atomic::AtomicU64);

impl Disk for SmallDisk {
    fn free_bytes(&self) -> std::io::Result<u64> {
        Ok(self.0.load(std::sync::atomic::Ordering::Relaxed))
    }
}

#[tokio::test]
async fn a_write_for_which_there_is_no_room_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let disk = Arc::new(SmallDisk(100.into()));
    let reserve = DiskReserve { disk: Arc::clone(&disk) as _, bytes: 60 };
    let store = LocalStore::with_reserve(root.path(), Arc::new(SystemClock::new()), Some(reserve)).unwrap();
    let (clock, random) = (Arc::new(SystemClock::new()), Arc::new(SystemRandom));
    let objects = Objects::new(Arc::new(store), Path::default(), "file:///small", clock, random);
    // Single puts may use three quarters of the reserve.
    objects.put("fits", Bytes::from(vec![0; 85])).await.unwrap();
    let refused = objects.put("too much", Bytes::from(vec![0; 86])).await.unwrap_err();
    assert!(refused.is_disk_full(), "{refused:?}");
    // Multipart: the first part fits, the second does not.
    disk.0.store((9 << 20) + 60, std::sync::atomic::Ordering::Relaxed);
    let mut writer = objects.writer("parts").unwrap();
    let mut written = writer.write(Bytes::from(vec![0; 9 << 20])).await;
    disk.0.store(60, std::sync::atomic::Ordering::Relaxed);
    if written.is_ok() {
        written = writer.finish().await.map(|_| ());
    }
    assert!(written.unwrap_err().is_disk_full());
    let names: Vec<String> = objects.list("").await.unwrap().into_iter().map(|object| object.name).collect();
    assert_eq!(names, ["fits"]);
    disk.0.store(1_000, std::sync::atomic::Ordering::Relaxed);
    objects.put("too much", Bytes::from(vec![0; 86])).await.unwrap();
    assert!(!objects.get("not there").await.unwrap_err().is_disk_full());
}

#[test]
fn a_folder_that_is_not_made_yet_has_the_room_of_its_disk() {
    let root = tempfile::tempdir().unwrap();
    assert!(0 < FolderDisk::new(&root.path().join("a/b")).free_bytes().unwrap());
}
