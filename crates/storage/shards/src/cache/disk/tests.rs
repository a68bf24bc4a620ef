use std::fs;
use std::time::Duration;

use arrow::array::{ArrayRef, BinaryArray, Int64Array, ListArray, StringViewArray};
use arrow::datatypes::Int32Type;
use arrow::record_batch::RecordBatch;
use objects::Objects;
use proptest::prelude::*;
use tempfile::TempDir;
use types::random::SeededRandom;
use types::{CachePolicy, Clock, ColumnId, Disk as Room, Random, ShardId, SystemClock};
use uuid::Uuid;

use super::super::tests::{many_rows, read_cached, shard};
use super::super::{BlockCache, CacheStats, RetentionPolicy};
use super::*;
use crate::writer::tests::{all_samples_of_all_types, bucket};
use crate::{ColumnDef, ShardReader};

const MEMORY: u64 = 64 << 20;

/// Disk with a settable amount of free space.
#[derive(Debug)]
struct Free(AtomicU64);

impl Room for Free {
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}

fn settings(folder: &TempDir, bytes_max: u64) -> DiskTierSettings {
    let disk = Arc::new(Free(AtomicU64::new(1 << 40)));
    DiskTierSettings {
        folder: folder.path().join("cache"),
        bytes_max,
        space_divisor: 1,
        reserve: DiskReserve { disk, bytes: 0 },
    }
}

fn cache(memory: u64, settings: DiskTierSettings) -> Arc<BlockCache> {
    Arc::new(BlockCache::with_disk(memory, settings).unwrap())
}

fn on_disk(cache: &BlockCache) -> CacheStats {
    cache.disk.as_ref().unwrap().shared.index.lock().counts().sum()
}

/// Waits until a condition holds that another thread brings about.
async fn until(is_so: impl Fn() -> bool) {
    let clock = SystemClock::new();
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        clock.sleep(Duration::from_millis(5)).await;
    }
    panic!("it is never so");
}

async fn filled(folder: &TempDir) -> (Objects, Vec<ColumnDef>, RecordBatch, ShardReader) {
    let objects = bucket();
    let (columns, batch) = many_rows();
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let cache = cache(MEMORY, settings(folder, 1 << 30));
    assert_eq!(read_cached(&reader, &cache, &columns, &[], None).await, batch);
    until(|| on_disk(&cache).blocks == 20).await;
    (objects, columns, batch, reader)
}

#[tokio::test]
async fn blocks_outlive_memory_and_runs() {
    let folder = TempDir::new().unwrap();
    let (objects, columns, batch, reader) = filled(&folder).await;
    // The object is gone, so that only the cache can answer.
    objects.delete("tables/1/7.parquet").await.unwrap();
    for memory in [MEMORY, 1] {
        let cache = cache(memory, settings(&folder, 1 << 30));
        until(|| on_disk(&cache).blocks == 20).await;
        for round in 1..3 {
            assert_eq!(read_cached(&reader, &cache, &columns, &[], None).await, batch);
            let (of_disk, of_memory) = (on_disk(&cache), cache.memory_stats());
            let from_disk = if memory == 1 { 20 * round } else { 20 };
            assert_eq!((of_disk.hits, of_disk.misses, of_disk.evictions), (from_disk, 0, 0));
            assert_eq!(of_memory.hits, 20 * round - from_disk);
        }
    }
}

#[tokio::test]
async fn every_type_comes_back() {
    let folder = TempDir::new().unwrap();
    let objects = bucket();
    let (columns, batch) = all_samples_of_all_types();
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let mut kept = 0;
    for _ in 0..2 {
        let cache = cache(MEMORY, settings(&folder, 1 << 30));
        until(|| on_disk(&cache).blocks == kept).await;
        let mut read = 0;
        // Blocks that find the queue of writes full are not kept.
        for part in columns.chunks(WRITE_QUEUE_LENGTH / 2) {
            let positions: Vec<usize> = (read..read + part.len()).collect();
            assert_eq!(read_cached(&reader, &cache, part, &[], None).await, batch.project(&positions).unwrap());
            read += part.len();
            until(|| on_disk(&cache).blocks == kept.max(read as u64)).await;
        }
        assert_eq!(on_disk(&cache).hits, kept);
        kept = columns.len() as u64;
    }
}

/// Damages a file as a disk, a crash or a foreign program would.
fn damage(path: &Path, random: &dyn Random) {
    let mut bytes = fs::read(path).unwrap();
    let draw = |below: usize| usize::try_from(random.next_u64() % below as u64).unwrap();
    let (from, length) = (draw(bytes.len()), bytes.len());
    match draw(6) {
        0 => bytes.truncate(from),
        1 => bytes[from] ^= 1 << draw(8),
        2 => bytes[from..length.min(from + 4096)].fill(0),
        3 => random.fill(&mut bytes[from..]),
        4 => drop(bytes.drain(from..length.min(from + 64))),
        _ => (0..40).for_each(|_| bytes[draw(length)] ^= 0x55),
    }
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn damaged_and_missing_files_change_no_answer() {
    let folder = TempDir::new().unwrap();
    let (_objects, columns, batch, reader) = filled(&folder).await;
    let files: Vec<_> = fs::read_dir(folder.path().join("cache")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let whole: Vec<_> = files.iter().map(|path| fs::read(path).unwrap()).collect();
    let random = SeededRandom::new(5);
    let mut hits = 0;
    for round in 0..40 {
        fs::read_dir(folder.path().join("cache"))
            .unwrap()
            .for_each(|entry| fs::remove_file(entry.unwrap().path()).unwrap());
        files.iter().zip(&whole).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        let before = |files: &[PathBuf]| files.iter().for_each(|path| damage(path, &random));
        // The files are damaged before the cache scans them, or after.
        let cache = if round % 2 == 0 {
            before(&files);
            cache(MEMORY, settings(&folder, 1 << 30))
        } else {
            let cache = cache(MEMORY, settings(&folder, 1 << 30));
            until(|| on_disk(&cache).blocks == 20).await;
            if round == 1 {
                files.iter().for_each(|path| fs::remove_file(path).unwrap())
            } else {
                before(&files)
            }
            cache
        };
        assert_eq!(read_cached(&reader, &cache, &columns, &[], None).await, batch, "round {round}");
        hits += on_disk(&cache).hits;
        assert_eq!(on_disk(&cache).hits + on_disk(&cache).misses, 20);
        // Lost blocks are written again.
        until(|| on_disk(&cache).blocks == 20).await;
    }
    assert!(0 < hits, "what is whole is used");
}

#[test]
fn a_record_is_that_block_or_none_whatever_its_bytes() {
    let key = BlockKey { shard: ShardId(Uuid::from_u128(3)), column: ColumnId(2), row_group: 1, page: 4 };
    let numbers: ArrayRef = Arc::new((0..3000).map(|n| (n % 7 != 0).then_some(n * n)).collect::<Int64Array>());
    let words: ArrayRef = Arc::new((0..3000).map(|n| Some(["ä", "b", "cc"][n % 3])).collect::<StringViewArray>());
    let texts: ArrayRef = Arc::new((0..3000).map(|n| Some(format!("text {n}"))).collect::<StringViewArray>());
    let long = (0..3000).map(|n| (n % 9 != 0).then(|| format!("ä text that is long enough to be compressed {n}")));
    let long: ArrayRef = Arc::new(long.collect::<StringViewArray>());
    let strings: ArrayRef =
        Arc::new((0..3000_u16).map(|n| (n % 5 != 0).then_some(n.to_be_bytes())).collect::<BinaryArray>());
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
        (0..3000).map(|n| (n % 5 != 0).then(|| (0..n % 4).map(move |m| (m != 1).then_some(n * m)))),
    ));
    let values = [numbers, words, texts, long, strings, lists];
    let records: Vec<Vec<u8>> = values
        .iter()
        .map(|values| {
            let mut record = Vec::new();
            let head = encode(key, Oid(9), &ColumnBlock::from_array(values).unwrap(), &mut record).unwrap();
            assert_eq!(head.record_bytes(), record.len() as u64);
            assert_eq!(RecordHead::read(&record), Some(head));
            let whole = bytes::Bytes::from(record.clone());
            let all = blocks::RowSet::all(3000);
            let read = decode(&whole, &key, 3000).unwrap().gather(&all, values.data_type()).unwrap();
            assert_eq!(&read, values);
            assert!(decode(&whole, &key, 2999).is_none(), "another number of rows");
            assert!(decode(&whole, &BlockKey { page: 5, ..key }, 3000).is_none(), "another page");
            record
        })
        .collect();
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) }, |(which in 0..6_usize, changes in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..6), cut in prop::option::of(any::<prop::sample::Index>()))| {
        let mut record = records[which].clone();
        let mut is_padding = true;
        for (at, bits) in changes {
            let at = at.index(record.len());
            record[at] ^= bits;
            is_padding &= 64 < at;
        }
        if let Some(cut) = cut {
            record.truncate(cut.index(record.len()));
        }
        let is_short = record.len() < records[which].len();
        let read = decode(&bytes::Bytes::from(record), &key, 3000);
        // Padding between sections is not checked.
        prop_assert!(read.is_none() || (is_padding && !is_short));
    });
}

#[test]
fn long_strings_are_compressed_on_disk_alone() {
    let key = BlockKey { shard: ShardId(Uuid::from_u128(3)), column: ColumnId(2), row_group: 1, page: 4 };
    let long = (0..3000).map(|n| Some(format!("carefully final deposits {} sleep furiously", n * 7919 % 3000)));
    let short = (0..3000).map(|n| Some(format!("{}", n * 7919 % 3000)));
    let texts = |texts: StringViewArray| ColumnBlock::from_array(&(Arc::new(texts) as ArrayRef)).unwrap();
    for (block, is_smaller) in [(texts(long.collect()), true), (texts(short.collect()), false)] {
        let mut record = Vec::new();
        encode(key, Oid(9), &block, &mut record).unwrap();
        assert_eq!((record.len() as u64) * 2 < block.memory_bytes(), is_smaller);
        let Some(ColumnBlock::Texts(read)) = decode(&record.into(), &key, 3000) else { panic!("strings") };
        let ColumnBlock::Texts(block) = &block else { panic!("strings") };
        assert_eq!(read.bytes(), block.bytes(), "as it was in memory");
    }
}

#[tokio::test]
async fn files_take_no_more_than_they_may() {
    let folder = TempDir::new().unwrap();
    let objects = bucket();
    let (columns, batch) = many_rows();
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let room = Arc::new(Free(AtomicU64::new(1 << 40)));
    let reserve = DiskReserve { disk: Arc::clone(&room) as Arc<dyn Room>, bytes: 1 << 20 };
    let (limit, memory) = (4 << 20, 1);
    let cache = cache(memory, DiskTierSettings { reserve, ..settings(&folder, limit) });
    let bytes = || -> u64 {
        let files = fs::read_dir(folder.path().join("cache")).unwrap().flatten();
        files.map(|file| file.metadata().map_or(0, |file| file.len())).sum()
    };
    // One block stands for pages of many shards.
    let values = batch.column(0);
    let block = Arc::new(ColumnBlock::from_array(&values.slice(0, blocks::BLOCK_ROWS)).unwrap());
    let key = |number| BlockKey { shard: meta.id, column: ColumnId(1), row_group: 9, page: number };
    let table = cache.for_table(Oid(1), CachePolicy::Normal);
    for number in 0..60 {
        table.insert(key(number), &block);
        until(|| cache.disk.as_ref().unwrap().shared.index.lock().contains(&key(number))).await;
        assert!(bytes() <= limit, "{} bytes after {number} blocks", bytes());
        // The first block is read all the time, and stays.
        assert!(table.find_on_disk(&key(0)).is_some_and(|found| found.read(blocks::BLOCK_ROWS).is_some()), "{number}");
    }
    assert!(0 < on_disk(&cache).evictions);
    assert_eq!(read_cached(&reader, &cache, &columns, &[], None).await, batch);

    // Files shrink before the reserve is touched.
    room.0.store(1 << 20, Ordering::Relaxed);
    until(|| bytes() <= 3 << 20).await;
    room.0.store(0, Ordering::Relaxed);
    until(|| bytes() <= 2 << 20).await;
    assert_eq!(read_cached(&reader, &cache, &columns, &[], None).await, batch);
}

#[tokio::test]
async fn what_no_table_has_is_neither_found_nor_kept() {
    let folder = TempDir::new().unwrap();
    let (_objects, columns, batch, reader) = filled(&folder).await;
    let none = Arc::new(RetentionPolicy::default());
    let other = cache(MEMORY, settings(&folder, 1 << 30));
    other.apply_retention(&none);
    assert_eq!(read_cached(&reader, &other, &columns, &[], None).await, batch);
    until(|| on_disk(&other).blocks == 20).await;
    assert_eq!(on_disk(&other).hits, 0);
    other.apply_retention(&none);
    assert_eq!((on_disk(&other).blocks, on_disk(&other).bytes, other.memory_stats().blocks), (0, 0, 0));
    drop(other);
    // With a capacity of 0, the files are deleted.
    drop(cache(MEMORY, settings(&folder, 0)));
    assert_eq!(fs::read_dir(folder.path().join("cache")).unwrap().count(), 0);
}
