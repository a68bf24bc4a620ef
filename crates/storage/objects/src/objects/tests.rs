use std::time::Duration;

use object_store::memory::InMemory;
use types::SystemClock;
use types::random::SeededRandom;

use super::*;
use crate::{Fault, FaultStore, conformance};

#[tokio::test]
async fn memory_is_a_storage() {
    let (_, objects) = faulty(0);
    conformance::check(&objects).await;
}

/// Returns a fault-injecting store and a handle on it.
pub(crate) fn faulty(seed: u64) -> (Arc<FaultStore>, Objects) {
    let store = Arc::new(FaultStore::new(Arc::new(InMemory::new()), seed));
    let objects = over(Arc::clone(&store) as Arc<dyn ObjectStore>);
    (store, objects)
}

pub(crate) fn over(store: Arc<dyn ObjectStore>) -> Objects {
    Objects::new(
        store,
        Path::from("pre/fix"),
        "memory:///pre/fix/",
        Arc::new(QuickClock),
        Arc::new(SeededRandom::new(1)),
    )
}

/// Clock whose sleeps return at once.
#[derive(Debug)]
struct QuickClock;

impl Clock for QuickClock {
    fn now_us(&self) -> i64 {
        SystemClock::new().now_us()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn one_fault_of_any_kind_at_any_request_changes_nothing() {
    for fault in Fault::DETECTABLE {
        // The eight calls make fewer than sixteen requests in all.
        for request in 0..16 {
            let (store, objects) = faulty(request);
            store.fail_after(request, fault);
            work(&objects).await.unwrap_or_else(|error| panic!("{fault:?} at request {request}: {error:?}"));
        }
    }
}

#[tokio::test]
async fn many_faults_end_in_the_right_answer_or_an_error() {
    let mut failure_count = 0;
    for seed in 0..300 {
        let (store, objects) = faulty(seed);
        store.fail_one_in(3, &Fault::DETECTABLE);
        failure_count += usize::from(work(&objects).await.is_err());
        assert!(0 < store.request_count());
    }
    assert!((1..150).contains(&failure_count), "{failure_count} of 300 failed for good");
}

/// Makes one call of each kind and checks the results of those that succeed.
async fn work(objects: &Objects) -> Result<()> {
    objects.put("a", Bytes::from("one")).await?;
    assert!(objects.put_if_absent("b", Bytes::from("two, by us")).await?, "our own object is not another's");
    assert!(!objects.put_if_absent("a", Bytes::from("three")).await?);
    let (found, version) = objects.get_versioned("b").await?;
    assert_eq!(found, "two, by us");
    let replaced = objects.put_if_matches("b", Bytes::from("four, by us"), &version).await?;
    assert!(replaced.is_some(), "our own update is not another's");
    assert_eq!(objects.put_if_matches("b", Bytes::from("five"), &version).await?, None);
    assert_eq!(objects.get_range("b", 1..4).await?, "our");
    assert_eq!(objects.get_ranges("b", &[0..1, 6..8]).await?, ["f", "by"]);
    let mut names: Vec<_> = objects.list("").await?.into_iter().map(|object| object.name).collect();
    names.sort();
    assert_eq!(names, ["a", "b"]);
    objects.delete("a").await?;
    assert!(matches!(objects.head("a").await, Err(Error::NotFound { .. }) | Err(Error::Request { .. })));
    Ok(())
}

#[tokio::test]
async fn a_storage_that_stays_away_is_given_up() {
    let (store, objects) = faulty(0);
    store.fail_one_in(1, &[Fault::ErrorBeforeEffect]);
    assert!(matches!(objects.get("a").await, Err(Error::Request { operation: "read", .. })));
    assert_eq!(store.request_count(), 5);
}

#[tokio::test]
async fn a_final_answer_is_not_asked_for_twice() {
    let (store, objects) = faulty(0);
    assert!(matches!(objects.get("a").await, Err(Error::NotFound { .. })));
    assert_eq!(store.request_count(), 1);
}

#[tokio::test]
async fn a_body_that_is_always_cut_short_is_an_error() {
    let (store, objects) = faulty(0);
    objects.put("a", Bytes::from("abc")).await.unwrap();
    store.fail_one_in(1, &[Fault::TruncatedBody]);
    assert!(matches!(objects.get("a").await, Err(Error::Truncated { expected: 3, .. })));
    assert!(matches!(objects.get_range("a", 1..3).await, Err(Error::Truncated { expected: 2, .. })));
    assert!(matches!(objects.get_ranges("a", &[0..1, 0..3]).await, Err(Error::Truncated { expected: 3, .. })));
}

#[tokio::test]
async fn names_are_relative_and_errors_name_the_whole_url() {
    let (_, objects) = faulty(0);
    let below = objects.subfolder("tables/16384").unwrap();
    below.put("a.parquet", Bytes::from("x")).await.unwrap();
    assert_eq!(objects.list("").await.unwrap()[0].name, "tables/16384/a.parquet");
    assert_eq!(below.list("").await.unwrap()[0].name, "a.parquet");
    let error = below.get("b").await.unwrap_err();
    assert_eq!(error.to_string(), "memory:///pre/fix/tables/16384/b does not exist");
}
