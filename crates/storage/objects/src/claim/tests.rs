use super::*;
use crate::objects::tests::faulty;
use crate::{Fault, FaultStore};

const OURS: Uuid = Uuid::from_u128(1);
const THEIRS: Uuid = Uuid::from_u128(2);

#[tokio::test]
async fn an_instance_recognises_its_claim_after_any_lost_answer() {
    for fault in Fault::DETECTABLE {
        for request in 0..6 {
            let (store, objects) = faulty(request);
            store.fail_after(request, fault);
            let first = StorageClaim::acquire(&objects, OURS, "here").await.unwrap();
            let second = StorageClaim::acquire(&objects, OURS, "here").await.unwrap();
            second.check_owned().await.unwrap();
            assert_eq!((first.epoch(), second.epoch()), (1, 2), "{fault:?} at request {request}: one write, one epoch");
            assert!(first.check_owned().await.is_err());
        }
    }
}

#[tokio::test]
async fn under_many_faults_two_instances_never_both_hold_a_prefix() {
    let mut held_count = 0;
    for seed in 0..200 {
        let (store, objects) = faulty(seed);
        store.fail_one_in(3, &Fault::DETECTABLE);
        let (ours, theirs) =
            tokio::join!(StorageClaim::acquire(&objects, OURS, "one"), StorageClaim::acquire(&objects, THEIRS, "two"));
        assert!(ours.is_err() || theirs.is_err(), "seed {seed}: both hold it");
        FaultStore::clear_faults(&store);
        if let Ok(claim) = ours.or(theirs) {
            claim.check_owned().await.unwrap();
            held_count += 1;
        }
    }
    assert!(100 < held_count, "the faults leave most claims standing: {held_count} of 200");
}

#[tokio::test]
async fn a_claim_that_is_not_understood_is_not_overwritten() {
    let newer = r#"{"format": 2, "instance": "00000000-0000-0000-0000-000000000001", "epoch": 1,
        "token": "00000000-0000-0000-0000-000000000001", "about": "", "claimed_us": 0}"#;
    for content in ["", "{", "{}", "[1]", "\u{0}", newer] {
        let (_, objects) = faulty(0);
        objects.put(CLAIM_NAME, Bytes::from(content)).await.unwrap();
        let refusal = StorageClaim::acquire(&objects, OURS, "here").await;
        assert!(matches!(refusal, Err(Error::ClaimMalformed { .. })), "{content}");
        assert_eq!(objects.get(CLAIM_NAME).await.unwrap(), content);
    }
}

#[tokio::test]
async fn a_claim_taken_away_by_hand_is_noticed() {
    let (_, objects) = faulty(0);
    let claim = StorageClaim::acquire(&objects, OURS, "here").await.unwrap();
    objects.delete(CLAIM_NAME).await.unwrap();
    assert!(matches!(claim.check_owned().await, Err(Error::ClaimLost { .. })));
    StorageClaim::acquire(&objects, THEIRS, "there").await.unwrap();
    let lost = claim.check_owned().await.unwrap_err().to_string();
    assert!(lost.contains("there") && lost.contains(&THEIRS.to_string()), "{lost}");
}

/// Checks the stored format of the claim: later versions may add fields and must still read this one.
#[test]
fn a_claim_is_stored_as_ever() {
    let stored = r#"{
  "format": 1,
  "instance": "00000000-0000-0000-0000-000000000001",
  "epoch": 3,
  "token": "00000000-0000-0000-0000-000000000002",
  "about": "host:/data",
  "claimed_us": 1700000000000000
}"#;
    let record = ClaimRecord {
        format: FORMAT,
        instance: OURS,
        epoch: 3,
        token: THEIRS,
        about: "host:/data".to_owned(),
        claimed_us: 1_700_000_000_000_000,
    };
    let (_, objects) = faulty(1);
    assert_eq!(parse_record(&objects, stored.as_bytes()).unwrap(), record);
    assert_eq!(serde_json::to_string_pretty(&record).unwrap(), stored);
    let newer = stored.replace("\"format\": 1", "\"format\": 2");
    assert!(matches!(parse_record(&objects, newer.as_bytes()), Err(Error::ClaimMalformed { .. })));
}
