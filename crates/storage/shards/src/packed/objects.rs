//! The names of shards' files: of those that are named after their shard only what comes before its id.

use std::collections::HashMap;

use types::ShardId;

use crate::packed::numbers::Numbers;

/// The files' names of neighbouring shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Objects {
    names: Box<[Name]>,
    /// Of each shard which name it has.
    which: Numbers,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    /// Followed by the shard's id and the suffix.
    Before(Box<str>),
    Whole(Box<str>),
}

const SUFFIX: &str = ".parquet";

impl Objects {
    pub(super) fn pack<'a>(shards: impl Iterator<Item = (ShardId, &'a str)>) -> Self {
        let mut numbers: HashMap<Name, u64> = HashMap::new();
        let mut names = Vec::new();
        let mut number = |name: Name| {
            *numbers.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() as u64 - 1
            })
        };
        let which: Vec<u64> = shards.map(|(id, object)| number(Name::of(id, object))).collect();
        Self { names: names.into(), which: Numbers::pack(&which) }
    }

    /// The name of the file of the shard `id`, which is at this place.
    pub(super) fn get(&self, shard: usize, id: ShardId) -> String {
        let name = usize::try_from(self.which.get(shard)).expect("they lie in memory");
        match &self.names[name] {
            Name::Before(before) => format!("{before}{id}{SUFFIX}"),
            Name::Whole(name) => name.to_string(),
        }
    }

    /// Bytes beside its own.
    pub(super) fn heap_bytes(&self) -> usize {
        let name = |name: &Name| match name {
            Name::Before(name) | Name::Whole(name) => size_of::<Name>() + name.len(),
        };
        self.names.iter().map(name).sum::<usize>() + self.which.heap_bytes()
    }
}

impl Name {
    fn of(id: ShardId, object: &str) -> Self {
        let before = object.strip_suffix(SUFFIX).and_then(|name| name.strip_suffix(id.to_string().as_str()));
        before.map_or_else(|| Self::Whole(object.into()), |before| Self::Before(before.into()))
    }
}
