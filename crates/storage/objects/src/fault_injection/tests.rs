use object_store::ObjectStoreExt;
use object_store::memory::InMemory;

use super::*;

#[tokio::test]
async fn a_request_fails_as_planned_and_the_next_one_passes() {
    let path = Path::from("a");
    for (fault, is_there) in [
        (Fault::ErrorBeforeEffect, false),
        (Fault::ErrorAfterEffect, true),
        (Fault::TimeoutAfterEffect, true),
        (Fault::FalseConflict, true),
    ] {
        let inner = Arc::new(InMemory::new());
        let store = FaultStore::new(Arc::clone(&inner) as Arc<dyn ObjectStore>, 1);
        store.fail_after(0, fault);
        assert!(store.put(&path, "x".into()).await.is_err(), "{fault:?}");
        assert_eq!(inner.head(&path).await.is_ok(), is_there, "{fault:?}");
        store.put(&path, "y".into()).await.unwrap();
        assert_eq!((store.request_count(), store.fault_count()), (2, 1));
    }
}

#[tokio::test]
async fn bodies_are_damaged_by_one_bit_or_cut() {
    let store = FaultStore::new(Arc::new(InMemory::new()), 1);
    let path = Path::from("a");
    store.put(&path, "some content".into()).await.unwrap();
    store.fail_after(0, Fault::FlippedBit);
    let flipped = store.get(&path).await.unwrap().bytes().await.unwrap();
    let wrong_bits: u32 = flipped.iter().zip(b"some content").map(|(found, sent)| (found ^ sent).count_ones()).sum();
    assert_eq!((flipped.len(), wrong_bits), (12, 1));
    store.fail_after(0, Fault::TruncatedBody);
    let cut = store.get_ranges(&path, &[0..4, 5..12]).await.unwrap();
    assert!(cut[0] == "some" && cut[1].len() < 7, "{cut:?}");
}

#[tokio::test]
async fn the_same_seed_fails_the_same_requests() {
    let failures = async |seed| {
        let store = FaultStore::new(Arc::new(InMemory::new()), seed);
        store.fail_one_in(4, &[Fault::ErrorBeforeEffect]);
        let mut failures = Vec::new();
        for request in 0..50 {
            failures.push(store.put(&Path::from(format!("{request}")), "x".into()).await.is_err());
        }
        failures
    };
    assert_eq!(failures(7).await, failures(7).await);
    assert_ne!(failures(7).await, failures(8).await);
}
