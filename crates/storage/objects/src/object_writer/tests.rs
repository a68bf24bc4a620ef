use super::*;
use crate::Fault;
use crate::objects::tests::faulty;

#[tokio::test]
async fn a_fault_at_any_request_of_an_upload_leaves_it_whole_or_absent() {
    let content = Bytes::from(vec![7; 2 * PART_BYTES + 1]);
    for fault in Fault::DETECTABLE {
        for request in 0..8 {
            let (store, objects) = faulty(request);
            store.fail_after(request, fault);
            let mut writer = objects.writer("a").unwrap();
            let outcome = match writer.write(content.clone()).await {
                Ok(()) => writer.finish().await,
                Err(error) => Err(error),
            };
            match (outcome, objects.get("a").await) {
                (Ok(size), Ok(found)) => assert!(size == content.len() as u64 && found == content),
                (Err(_), Err(Error::NotFound { .. })) => {}
                (outcome, found) => {
                    panic!("{fault:?} at request {request}: {outcome:?}, found {:?}", found.map(|found| found.len()))
                }
            }
        }
    }
}

#[tokio::test]
async fn an_upload_whose_completion_was_not_heard_of_is_recognised() {
    let (store, objects) = faulty(1);
    let mut writer = objects.writer("a").unwrap();
    writer.write(Bytes::from(vec![7; PART_BYTES])).await.unwrap();
    writer.join_parts(0).await.unwrap();
    store.fail_after(0, Fault::ErrorAfterEffect);
    assert_eq!(writer.finish().await.unwrap(), PART_BYTES as u64);
}

#[tokio::test]
async fn parts_are_of_one_size_and_a_small_object_is_one_request() {
    let (store, objects) = faulty(1);
    let mut writer = objects.writer("small").unwrap();
    writer.write(Bytes::from("abc")).await.unwrap();
    writer.finish().await.unwrap();
    assert_eq!(store.request_count(), 1);

    let mut writer = objects.writer("large").unwrap();
    for _ in 0..9 {
        writer.write(Bytes::from(vec![1; PART_BYTES / 4])).await.unwrap();
    }
    writer.finish().await.unwrap();
    // One head, one start, three parts, one completion.
    assert_eq!(store.request_count(), 1 + 6);
}
