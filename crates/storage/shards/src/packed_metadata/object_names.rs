//! File names of shards; those that contain the shard's id are stored as a prefix only.

use std::collections::HashMap;

use types::ShardId;

use crate::packed_metadata::integer_packing::PackedNumbers;

/// Packed file names of neighbouring shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackedObjectNames {
    /// Distinct names.
    names: Box<[Name]>,
    /// Name of each shard.
    name_index: PackedNumbers,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
/// Stored form of a file name.
enum Name {
    /// Prefix, followed by the shard's id and the suffix.
    Prefix(Box<str>),
    /// Complete name.
    Full(Box<str>),
}

const SHARD_FILE_SUFFIX: &str = ".parquet";

impl PackedObjectNames {
    pub(super) fn pack<'a>(shards: impl Iterator<Item = (ShardId, &'a str)>) -> Self {
        let mut numbers: HashMap<Name, u64> = HashMap::new();
        let mut names = Vec::new();
        let mut number = |name: Name| {
            *numbers.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() as u64 - 1
            })
        };
        let which: Vec<u64> = shards.map(|(id, object)| number(Name::new(id, object))).collect();
        Self { names: names.into(), name_index: PackedNumbers::pack(&which) }
    }

    /// Returns the file name of the shard `id` at this position.
    pub(super) fn get(&self, shard: usize, id: ShardId) -> String {
        let name = usize::try_from(self.name_index.get(shard)).expect("offsets into memory fit usize");
        match &self.names[name] {
            Name::Prefix(before) => format!("{before}{id}{SHARD_FILE_SUFFIX}"),
            Name::Full(name) => name.to_string(),
        }
    }

    /// Returns the heap size in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let name = |name: &Name| match name {
            Name::Prefix(name) | Name::Full(name) => size_of::<Name>() + name.len(),
        };
        self.names.iter().map(name).sum::<usize>() + self.name_index.heap_bytes()
    }
}

impl Name {
    fn new(id: ShardId, object: &str) -> Self {
        let before = object.strip_suffix(SHARD_FILE_SUFFIX).and_then(|name| name.strip_suffix(id.to_string().as_str()));
        before.map_or_else(|| Self::Full(object.into()), |before| Self::Prefix(before.into()))
    }
}
