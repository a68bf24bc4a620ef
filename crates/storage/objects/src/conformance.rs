//! Conformance tests that every storage must pass. They panic where a storage does not conform.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use uuid::Uuid;

use crate::{Error, Objects, StorageClaim};

/// Number of concurrent writers of one object.
const WRITER_COUNT: usize = 64;

/// Checks the storage of `objects`, whose prefix must be empty.
pub async fn check(objects: &Objects) {
    let part = |name: &str| objects.subfolder(name).expect("a plain name");
    whole_objects_are_written_and_read(&part("whole")).await;
    missing_objects_are_told_apart(&part("missing")).await;
    ranges_are_read(&part("ranges")).await;
    lists_show_what_was_put(&part("lists")).await;
    names_with_odd_characters_are_kept(&part("names")).await;
    deletes_take_effect_at_once(&part("deletes")).await;
    of_many_creators_one_wins(&part("create")).await;
    conditional_updates_lose_nothing(&part("update")).await;
    streams_become_objects_whole_or_not_at_all(&part("streams")).await;
    claims_keep_instances_apart(&part("claims")).await;
}

async fn whole_objects_are_written_and_read(objects: &Objects) {
    objects.put("a/b/c", bytes("first")).await.expect("put");
    assert_eq!(objects.get("a/b/c").await.expect("get"), "first");
    objects.put("a/b/c", bytes("second, longer")).await.expect("put again");
    assert_eq!(objects.get("a/b/c").await.expect("get"), "second, longer");
    objects.put("empty", Bytes::new()).await.expect("put nothing");
    assert_eq!(objects.get("empty").await.expect("get"), "");
    assert_eq!(objects.head("empty").await.expect("head").bytes, 0);

    let found = objects.head("a/b/c").await.expect("head");
    assert_eq!((found.name.as_str(), found.bytes), ("a/b/c", 14));
    assert_eq!(objects.get_versioned("a/b/c").await.expect("get").1, found.version);

    let mut streamed = Vec::new();
    let mut stream = objects.stream("a/b/c").await.expect("stream");
    while let Some(piece) = stream.next().await {
        streamed.extend(piece.expect("a piece"));
    }
    assert_eq!(streamed, b"second, longer");
}

async fn missing_objects_are_told_apart(objects: &Objects) {
    assert!(matches!(objects.get("nothing").await, Err(Error::NotFound { .. })));
    assert!(matches!(objects.head("nothing/here").await, Err(Error::NotFound { .. })));
    assert!(matches!(objects.get_range("nothing", 0..1).await, Err(Error::NotFound { .. })));
    assert!(matches!(objects.stream("nothing").await, Err(Error::NotFound { .. })));
    objects.put("folder/object", bytes("x")).await.expect("put");
    assert!(matches!(objects.get("folder").await, Err(Error::NotFound { .. })), "a folder is no object");
    assert!(matches!(objects.get("folder/object/below").await, Err(Error::NotFound { .. })));
    for name in ["", "/a", "a/", "a//b", "a/../b", ".."] {
        assert!(matches!(objects.get(name).await, Err(Error::InvalidName { .. })), "{name}");
        assert!(matches!(objects.put(name, bytes("x")).await, Err(Error::InvalidName { .. })), "{name}");
    }
}

async fn ranges_are_read(objects: &Objects) {
    let content = pattern(3 * 1024 * 1024);
    objects.put("object", content.clone()).await.expect("put");
    let length = content.len() as u64;
    for range in [0..1, 0..length, length - 1..length, 5..5, 1_048_570..1_048_590, 262_144..524_288] {
        let found = objects.get_range("object", range.clone()).await.expect("get_range");
        assert!(found == content.slice(range.start as usize..range.end as usize), "{range:?}");
    }
    for range in [0..length + 1, length..length + 1, length + 5..length + 6] {
        assert!(objects.get_range("object", range.clone()).await.is_err(), "{range:?} is not all there");
    }
    let ranges = [10..20, 0..5, 2_000_000..2_000_100, 15..30];
    let found = objects.get_ranges("object", &ranges).await.expect("get_ranges");
    for (range, found) in ranges.iter().zip(&found) {
        assert!(*found == content.slice(range.start as usize..range.end as usize), "{range:?}");
    }
    assert!(objects.get_ranges("object", &[]).await.expect("no ranges").is_empty());
}

async fn lists_show_what_was_put(objects: &Objects) {
    assert!(names(objects, "").await.is_empty());
    for name in ["t/1/a", "t/1/b", "t/10/a", "t/1c", "u"] {
        objects.put(name, bytes(name)).await.expect("put");
        assert!(names(objects, "").await.contains(&name.to_owned()), "{name} is listed once it is put");
    }
    assert_eq!(names(objects, "").await, ["t/1/a", "t/1/b", "t/10/a", "t/1c", "u"]);
    assert_eq!(names(objects, "t").await, ["t/1/a", "t/1/b", "t/10/a", "t/1c"]);
    assert_eq!(names(objects, "t/1").await, ["t/1/a", "t/1/b"], "a prefix ends at a slash");
    assert!(names(objects, "v").await.is_empty());
    let found = objects.list("t/10").await.expect("list");
    assert_eq!(found, [objects.head("t/10/a").await.expect("head")]);
}

async fn names_with_odd_characters_are_kept(objects: &Objects) {
    let odd = ["space here", "percent%41", "plus+and&", "umlaut-ä", "dot.", "a=1,b=2", "quote'"];
    for name in odd {
        objects.put(name, bytes(name)).await.expect("put");
        assert_eq!(objects.get(name).await.expect("get"), name);
    }
    let mut expected = odd.map(str::to_owned);
    expected.sort();
    assert_eq!(names(objects, "").await, expected);
}

async fn deletes_take_effect_at_once(objects: &Objects) {
    objects.put("a", bytes("x")).await.expect("put");
    objects.put("b", bytes("x")).await.expect("put");
    objects.delete("a").await.expect("delete");
    assert!(matches!(objects.get("a").await, Err(Error::NotFound { .. })));
    assert_eq!(names(objects, "").await, ["b"]);
    objects.delete("a").await.expect("deleting nothing is fine");
    assert!(objects.put_if_absent("a", bytes("y")).await.expect("put_if_absent"), "the name is free again");
}

async fn of_many_creators_one_wins(objects: &Objects) {
    for round in 0..4 {
        let name = format!("round-{round}");
        let attempts = (0..WRITER_COUNT).map(|writer| {
            let (objects, name) = (objects.clone(), name.clone());
            tokio::spawn(async move { objects.put_if_absent(&name, bytes(&format!("writer {writer}"))).await })
        });
        let mut winners = Vec::new();
        for (writer, attempt) in join_all(attempts).await.into_iter().enumerate() {
            if attempt.expect("a writer").expect("put_if_absent") {
                winners.push(writer);
            }
        }
        assert_eq!(winners.len(), 1, "{name}: {winners:?} won");
        let found = objects.get(&name).await.expect("get");
        assert_eq!(found, format!("writer {}", winners[0]), "{name}: the winner's object stays");
    }
}

async fn conditional_updates_lose_nothing(objects: &Objects) {
    const STEP_COUNT: usize = 10;
    objects.put("count", bytes("0 start")).await.expect("put");
    let workers = (0..8).map(|worker| {
        let objects = objects.clone();
        tokio::spawn(async move {
            let mut done = 0;
            while done < STEP_COUNT {
                let (found, version) = objects.get_versioned("count").await.expect("get");
                let next = format!("{} worker {worker} step {done}", count(&found) + 1);
                done +=
                    usize::from(objects.put_if_matches("count", bytes(&next), &version).await.expect("put").is_some());
            }
        })
    });
    for worker in join_all(workers).await {
        worker.expect("a worker");
    }
    let (last, version) = objects.get_versioned("count").await.expect("get");
    assert_eq!(count(&last), 8 * STEP_COUNT, "an update was lost");

    let next =
        objects.put_if_matches("count", bytes("81 a"), &version).await.expect("put").expect("the version is right");
    assert_eq!(objects.put_if_matches("count", bytes("81 b"), &version).await.expect("put"), None, "it is old now");
    assert_eq!(objects.head("count").await.expect("head").version, next);
    objects.delete("count").await.expect("delete");
    assert_eq!(objects.put_if_matches("count", bytes("82"), &next).await.expect("put"), None, "it is gone");
    assert!(matches!(objects.get("count").await, Err(Error::NotFound { .. })));
}

async fn streams_become_objects_whole_or_not_at_all(objects: &Objects) {
    let content = pattern(20 * 1024 * 1024 + 12_345);
    let write = async |name: &str, piece_bytes: usize, content: &Bytes| {
        let mut writer = objects.writer(name).expect("writer");
        for start in (0..content.len()).step_by(piece_bytes) {
            let piece = content.slice(start..content.len().min(start + piece_bytes));
            writer.write(piece).await.expect("write");
        }
        assert!(matches!(objects.head(name).await, Err(Error::NotFound { .. })), "{name} appears only when finished");
        assert_eq!(writer.byte_count(), content.len() as u64);
        writer
    };
    let size = write("large", 700_000, &content).await.finish().await.expect("finish");
    assert_eq!(size, content.len() as u64);
    assert!(objects.get("large").await.expect("get") == content, "the parts are in order");
    write("small", 10, &content.slice(..95)).await.finish().await.expect("finish");
    assert_eq!(objects.get("small").await.expect("get"), content.slice(..95));
    write("empty", 1, &Bytes::new()).await.finish().await.expect("finish");
    assert_eq!(objects.get("empty").await.expect("get"), "");

    write("aborted", 1 << 20, &content).await.abort().await.expect("abort");
    write("aborted, small", 10, &content.slice(..95)).await.abort().await.expect("abort");
    drop(write("dropped", 1 << 20, &content).await);
    assert_eq!(names(objects, "").await, ["empty", "large", "small"]);

    let mut writer = objects.writer("small").expect("writer");
    writer.write(content.clone()).await.expect("write");
    assert_eq!(objects.get("small").await.expect("get"), content.slice(..95), "the old object stays until the end");
    writer.finish().await.expect("finish");
    assert!(objects.get("small").await.expect("get") == content);
}

async fn claims_keep_instances_apart(objects: &Objects) {
    let (ours, theirs) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let first = StorageClaim::acquire(objects, ours, "host a, folder /a").await.expect("an empty prefix is free");
    assert_eq!(first.epoch(), 1);
    first.check_owned().await.expect("held");
    let refusal =
        StorageClaim::acquire(objects, theirs, "host b").await.expect_err("another instance is refused").to_string();
    assert!(refusal.contains(&ours.to_string()) && refusal.contains("host a, folder /a"), "{refusal}");
    assert!(refusal.contains("kiln-claim.json"), "it says how to release the prefix: {refusal}");

    let second = StorageClaim::acquire(objects, ours, "host a, folder /a").await.expect("the holder comes back");
    assert_eq!(second.epoch(), 2);
    assert!(matches!(first.check_owned().await, Err(Error::ClaimLost { .. })), "its earlier life is over");
    assert!(matches!(first.release().await, Err(Error::ClaimLost { .. })), "and may not release");
    second.check_owned().await.expect("held");
    second.release().await.expect("release");
    let other = StorageClaim::acquire(objects, theirs, "host b").await.expect("a released prefix is free");
    assert_eq!(other.epoch(), 1);
    other.release().await.expect("release");

    let instances = (0..8).map(|instance| {
        let objects = Arc::new(objects.clone());
        tokio::spawn(async move { StorageClaim::acquire(&objects, Uuid::from_u128(100 + instance), "racer").await })
    });
    let outcomes: Vec<_> = join_all(instances).await.into_iter().map(|outcome| outcome.expect("a racer")).collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    for outcome in outcomes {
        match outcome {
            Ok(claim) => claim.check_owned().await.expect("the winner holds the prefix"),
            Err(error) => assert!(matches!(error, Error::Claimed { .. }), "{error:?}"),
        }
    }
}

async fn names(objects: &Objects, prefix: &str) -> Vec<String> {
    let mut names: Vec<_> = objects.list(prefix).await.expect("list").into_iter().map(|found| found.name).collect();
    names.sort();
    names
}

fn count(content: &[u8]) -> usize {
    let text = std::str::from_utf8(content).expect("text");
    text.split(' ').next().expect("a first word").parse().expect("a number")
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Returns test bytes that differ by position.
fn pattern(length: usize) -> Bytes {
    (0..length as u64).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}
