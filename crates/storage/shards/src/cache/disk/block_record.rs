//! Record of a block in a file: head, block, and the dictionary of its codes (`docs/blocks.md`).

use std::borrow::Cow;

use blocks::{Block, Dictionary, ValueKind};
use bytes::Bytes;
use types::{ColumnId, Oid, ShardId};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::super::BlockKey;
use super::super::block::ColumnBlock;
use super::{arrow_ipc, string_compression};

/// Size of a head in bytes; all parts of a record start at a multiple of it.
pub(super) const RECORD_HEAD_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"KPAG";
/// Version of this layout and of the mapping from types to blocks; blocks have a version of their own.
const VERSION: u16 = 2;
/// Largest size of a part of a record; a head that says more is damaged.
const RECORD_BYTES_MAX: u64 = 1 << 30;

/// Head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cache) struct RecordHead {
    pub(in crate::cache) key: BlockKey,
    /// Table whose scan brought the block.
    pub(in crate::cache) table: Oid,
    kind: BlockKind,
    block_bytes: u64,
    dictionary_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
/// Variant of the stored block; numbers are part of the format.
enum BlockKind {
    Numbers = 0,
    Texts = 1,
    Codes = 2,
    Bytes = 3,
    Arrays = 4,
}

impl BlockKind {
    const ALL: [Self; 5] = [Self::Numbers, Self::Texts, Self::Codes, Self::Bytes, Self::Arrays];
}

impl RecordHead {
    /// Returns the size of the record, all parts included.
    pub(super) fn record_bytes(&self) -> u64 {
        RECORD_HEAD_BYTES as u64
            + round_up_to_head_bytes(self.block_bytes)
            + round_up_to_head_bytes(self.dictionary_bytes)
    }

    /// Parses the head at the start of `bytes`; `None` if it is invalid.
    pub(in crate::cache) fn read(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; RECORD_HEAD_BYTES] = bytes.first_chunk()?;
        let is_whole = head[..4] == MAGIC
            && u16::from_le_bytes(array_at(head, 4)) == VERSION
            && u64::from_le_bytes(array_at(head, 8)) == checksum(head);
        if !is_whole {
            return None;
        }
        let read = Self {
            key: BlockKey {
                shard: ShardId(Uuid::from_bytes(array_at(head, 16))),
                column: ColumnId(i32::from_le_bytes(array_at(head, 32))),
                row_group: u32::from_le_bytes(array_at(head, 36)),
                page: u32::from_le_bytes(array_at(head, 40)),
            },
            table: Oid(u32::from_le_bytes(array_at(head, 44))),
            kind: BlockKind::ALL.into_iter().find(|form| *form as u8 == head[6])?,
            block_bytes: u64::from_le_bytes(array_at(head, 48)),
            dictionary_bytes: u64::from_le_bytes(array_at(head, 56)),
        };
        (read.block_bytes <= RECORD_BYTES_MAX && read.dictionary_bytes <= RECORD_BYTES_MAX).then_some(read)
    }

    fn write(&self) -> [u8; RECORD_HEAD_BYTES] {
        let mut head = [0; RECORD_HEAD_BYTES];
        head[..4].copy_from_slice(&MAGIC);
        head[4..6].copy_from_slice(&VERSION.to_le_bytes());
        head[6] = self.kind as u8;
        head[16..32].copy_from_slice(self.key.shard.0.as_bytes());
        head[32..36].copy_from_slice(&self.key.column.0.to_le_bytes());
        head[36..40].copy_from_slice(&self.key.row_group.to_le_bytes());
        head[40..44].copy_from_slice(&self.key.page.to_le_bytes());
        head[44..48].copy_from_slice(&self.table.0.to_le_bytes());
        head[48..56].copy_from_slice(&self.block_bytes.to_le_bytes());
        head[56..64].copy_from_slice(&self.dictionary_bytes.to_le_bytes());
        let checksum = checksum(&head);
        head[8..16].copy_from_slice(&checksum.to_le_bytes());
        head
    }
}

/// Serializes a block into `record`; `None` for blocks that are not stored.
pub(in crate::cache) fn encode(
    key: BlockKey,
    table: Oid,
    block: &ColumnBlock,
    record: &mut Vec<u8>,
) -> Option<RecordHead> {
    let (form, block, dictionary): (_, Cow<'_, [u8]>, &[u8]) = match block {
        ColumnBlock::Numbers(block) => (BlockKind::Numbers, Cow::Borrowed(block.bytes()), &[]),
        ColumnBlock::Texts(block) => (BlockKind::Texts, string_compression::compress(block)?, &[]),
        ColumnBlock::Bytes(block) => (BlockKind::Bytes, Cow::Borrowed(block.bytes()), &[]),
        ColumnBlock::Dictionary { codes, strings, .. } => {
            (BlockKind::Codes, Cow::Borrowed(codes.bytes()), strings.bytes())
        }
        ColumnBlock::Arrays(values) => (BlockKind::Arrays, Cow::Owned(arrow_ipc::write(values)?), &[]),
        ColumnBlock::Uncached(_) => return None,
    };
    let (block_bytes, dictionary_bytes) = (block.len() as u64, dictionary.len() as u64);
    let head = RecordHead { key, table, kind: form, block_bytes, dictionary_bytes };
    record.clear();
    record.extend_from_slice(&head.write());
    for part in [&*block, dictionary] {
        record.extend_from_slice(part);
        record.resize(record.len().next_multiple_of(RECORD_HEAD_BYTES), 0);
    }
    Some(head)
}

/// Parses a record and validates it completely: whatever the bytes, the result is the block of this key and number of
/// rows, or `None`.
pub(in crate::cache) fn decode(record: &Bytes, key: &BlockKey, rows: usize) -> Option<ColumnBlock> {
    let head = RecordHead::read(record)?;
    if head.key != *key || head.record_bytes() != record.len() as u64 {
        return None;
    }
    let part = |at: usize, bytes: u64| Some(record.slice(at..at.checked_add(usize::try_from(bytes).ok()?)?));
    let first = part(RECORD_HEAD_BYTES, head.block_bytes)?;
    let block = || Block::open(first.clone()).ok().filter(|block| block.header().rows == rows);
    match head.kind {
        BlockKind::Numbers => block()
            .filter(|block| !matches!(block.header().kind, ValueKind::Text | ValueKind::Code))
            .map(ColumnBlock::Numbers),
        BlockKind::Texts => block().and_then(string_compression::decompress).map(ColumnBlock::Texts),
        BlockKind::Bytes => block().filter(|block| block.header().kind == ValueKind::Text).map(ColumnBlock::Bytes),
        BlockKind::Codes => {
            let codes = block()?;
            let at = RECORD_HEAD_BYTES + usize::try_from(round_up_to_head_bytes(head.block_bytes)).ok()?;
            let strings = Dictionary::open(part(at, head.dictionary_bytes)?).ok()?;
            let are_texts = (0..).map_while(|code| strings.get(code)).all(|string| str::from_utf8(string).is_ok());
            let are_codes =
                codes.header().kind == ValueKind::Code && codes.header().max < (strings.len() as i128).max(1);
            (are_texts && are_codes).then(|| ColumnBlock::from_codes(codes, strings))
        }
        BlockKind::Arrays => arrow_ipc::read(&first, rows).map(ColumnBlock::Arrays),
    }
}

/// Computes the checksum of a head, the checksum field excluded.
fn checksum(head: &[u8; RECORD_HEAD_BYTES]) -> u64 {
    xxh3_64_with_seed(&head[16..], u64::from_le_bytes(array_at(head, 0)))
}

fn round_up_to_head_bytes(bytes: u64) -> u64 {
    bytes.next_multiple_of(RECORD_HEAD_BYTES as u64)
}

fn array_at<const N: usize>(bytes: &[u8; RECORD_HEAD_BYTES], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}
