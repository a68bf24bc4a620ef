//! Unifies the string dictionaries of several workers.
//!
//! Each worker numbers the strings of its keys in its own way. Before flushed groups of several workers are merged,
//! their strings get new numbers that are common to all workers. The strings are divided into shards by their hashes,
//! which can be numbered in parallel.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, StringViewArray};
use arrow::compute::concat;

use super::AggregateSpec;
use super::flushed_groups::{FlushedGroups, FlushedRun, PARTITIONS, partition_of};
use super::key_encoding::KeyEncoding;
use super::partitioned_merge::PartitionedGroups;
use crate::vector::StringInterner;
use crate::{Dictionary, Error, Result};

/// Approximate number of strings in a shard: its hash table fits in the CPU cache.
const TASK_STRINGS: usize = 1 << 14;

/// Flushed groups of one worker, the strings of its keys divided into radix partitions.
pub struct WorkerGroups {
    keys: Vec<KeyEncoding>,
    runs: Vec<FlushedRun>,
    /// Strings of each key; `None` for keys of other types.
    strings: Vec<Option<PartitionedStrings>>,
}

/// Strings of a worker's key, copied to radix partitions by their hashes: a shard reads them sequentially.
struct PartitionedStrings {
    count: usize,
    parts: Vec<PartitionStrings>,
}

#[derive(Default)]
struct PartitionStrings {
    /// Number, hash and end offset in `text` of each string.
    strings: Vec<(u32, u64, usize)>,
    text: String,
}

/// Flushed groups of all workers, whose strings are about to be unified.
pub struct StringUnifier {
    spec: Arc<AggregateSpec>,
    workers: Vec<WorkerGroups>,
    /// Key of each shard, and the radix partitions of its strings.
    tasks: Vec<(usize, Range<usize>)>,
}

/// Distinct strings of one key and some of its radix partitions, from all workers.
pub struct UnifiedStrings {
    strings: StringViewArray,
    /// Numbers in this shard of each worker's strings, in the worker's order.
    numbers: Vec<Vec<u32>>,
}

/// Translation of one worker's string numbers for a key to those common to all workers.
#[derive(Debug)]
pub(super) struct StringTranslation {
    numbers: Vec<u32>,
}

impl FlushedGroups {
    /// Divides the strings of the keys into radix partitions.
    #[must_use]
    pub fn partition_strings(self) -> WorkerGroups {
        let Self { keys, runs: pieces } = self;
        let strings = keys.iter().map(|key| key.numbered_texts().map(PartitionedStrings::from_texts)).collect();
        let keys = keys.iter().map(KeyEncoding::empty).collect();
        WorkerGroups { keys, runs: pieces, strings }
    }
}

impl PartitionedStrings {
    fn from_texts(texts: &StringInterner) -> Self {
        let mut sizes = vec![(0, 0); PARTITIONS];
        for (text, hash) in texts.iter().zip(texts.hashes()) {
            let (count, bytes) = &mut sizes[partition_of(hash)];
            *count += 1;
            *bytes += text.len();
        }
        let part = |(count, bytes)| PartitionStrings {
            strings: Vec::with_capacity(count),
            text: String::with_capacity(bytes),
        };
        let mut parts: Vec<PartitionStrings> = sizes.into_iter().map(part).collect();
        for (number, (text, hash)) in (0..).zip(texts.iter().zip(texts.hashes())) {
            let PartitionStrings { strings, text: all } = &mut parts[partition_of(hash)];
            all.push_str(text);
            strings.push((number, hash, all.len()));
        }
        Self { count: texts.len(), parts }
    }
}

impl PartitionStrings {
    /// Iterates over the strings, each with its hash.
    fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let mut start = 0;
        self.strings.iter().map(move |(_, hash, end)| {
            let text = &self.text[start..*end];
            start = *end;
            (text, *hash)
        })
    }
}

impl StringUnifier {
    /// Collects the flushed groups of workers that aggregated by the same `spec`.
    ///
    /// # Errors
    /// [`Error::Internal`] if workers encoded a key in different forms.
    pub fn try_new(spec: &Arc<AggregateSpec>, workers: Vec<WorkerGroups>) -> Result<Self> {
        let workers: Vec<WorkerGroups> = workers.into_iter().filter(|worker| !worker.runs.is_empty()).collect();
        let mut shards = Vec::new();
        for key in 0..spec.keys.len() {
            let forms = || workers.iter().map(|worker| &worker.keys[key]);
            let kind = |form: &KeyEncoding| std::mem::discriminant(form);
            if forms().any(|form| forms().next().map(kind) != Some(kind(form))) {
                return Err(Error::Internal("two workers encoded the same group key with different physical types"));
            }
            let strings = || workers.iter().filter_map(|worker| worker.strings[key].as_ref());
            let count: usize = strings().map(|strings| strings.count).sum();
            if strings().next().is_some() {
                let count = (count / TASK_STRINGS).clamp(1, PARTITIONS);
                shards.extend(
                    (0..count).map(|shard| (key, shard * PARTITIONS / count..(shard + 1) * PARTITIONS / count)),
                );
            }
        }
        Ok(Self { spec: Arc::clone(spec), workers, tasks: shards })
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn task_count(&self) -> usize {
        self.tasks.len()
    }

    /// Numbers the distinct strings of a shard, from all workers.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there are more strings than 32-bit numbers.
    pub fn unify_strings(&self, number: usize) -> Result<UnifiedStrings> {
        let (key, parts) = &self.tasks[number];
        let mut all = StringInterner::default();
        let mut numbers = Vec::with_capacity(self.workers.len());
        for worker in &self.workers {
            let strings = worker.strings[*key].iter().flat_map(|strings| &strings.parts[parts.clone()]);
            let strings = strings.flat_map(PartitionStrings::iter);
            numbers.push(strings.map(|(text, hash)| all.intern_hashed(text, hash)).collect::<Result<_>>()?);
        }
        Ok(UnifiedStrings { strings: all.to_array(), numbers })
    }

    /// Partitions the groups of all workers, with translations of their string numbers. `shards` are all shards in
    /// order.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if a key has more strings than 32-bit numbers.
    pub fn partition_groups(self, shards: Vec<UnifiedStrings>) -> Result<PartitionedGroups> {
        let mut keys = Vec::with_capacity(self.spec.keys.len());
        let mut translations: Vec<Vec<Option<StringTranslation>>> = self.workers.iter().map(|_| Vec::new()).collect();
        let mut shards = self.tasks.iter().zip(shards).peekable();
        for key in 0..self.spec.keys.len() {
            let mut arrays = Vec::new();
            let none = |worker: &WorkerGroups| vec![0; worker.strings[key].as_ref().map_or(0, |strings| strings.count)];
            let mut numbers: Vec<Vec<u32>> = self.workers.iter().map(none).collect();
            let mut first = 0;
            while let Some(((_, parts), shard)) = shards.next_if(|((of, _), _)| *of == key) {
                for ((worker, all), of_shard) in self.workers.iter().zip(&mut numbers).zip(&shard.numbers) {
                    let strings = worker.strings[key].iter().flat_map(|strings| &strings.parts[parts.clone()]);
                    let strings = strings.flat_map(|part| &part.strings);
                    for ((string, _, _), number) in strings.zip(of_shard) {
                        all[*string as usize] = first + number;
                    }
                }
                let count = u32::try_from(shard.strings.len()).ok().and_then(|count| first.checked_add(count));
                first = count.ok_or(Error::OutOfMemory("the distinct strings of a column"))?;
                arrays.push(shard.strings);
            }
            let is_text = !arrays.is_empty();
            keys.push(match self.workers.first() {
                _ if is_text => KeyEncoding::SharedTexts(Dictionary::new(concat_strings(arrays)?)),
                Some(worker) => worker.keys[key].empty(),
                None => KeyEncoding::Unknown,
            });
            for (of_worker, numbers) in translations.iter_mut().zip(numbers) {
                of_worker.push(is_text.then_some(StringTranslation { numbers }));
            }
        }
        let pieces = self.workers.into_iter().map(|worker| worker.runs).zip(translations).collect();
        Ok(PartitionedGroups::from_runs(&self.spec, vec![false; keys.len()], keys, pieces))
    }
}

fn concat_strings(arrays: Vec<StringViewArray>) -> Result<StringViewArray> {
    if let [one] = arrays.as_slice() {
        return Ok(one.clone());
    }
    let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array as &dyn Array).collect();
    let all = concat(&arrays)?;
    Ok(all.as_any().downcast_ref::<StringViewArray>().expect("concat returns the type of its inputs").clone())
}

impl StringTranslation {
    /// Translates the word at index `at` of each key. `is_null` returns whether the value is NULL, given the null word
    /// of its key.
    pub(super) fn translate(
        &self,
        words: &mut [i64],
        stride: usize,
        at: usize,
        is_null: impl Fn(i64) -> bool,
    ) -> Result<()> {
        for key in words.chunks_exact_mut(stride) {
            // The word of a NULL is 0 for every worker, although 0 also numbers a string.
            if !is_null(key[stride - 1]) {
                let number = usize::try_from(key[at]).ok().and_then(|number| self.numbers.get(number));
                key[at] = (*number
                    .ok_or(Error::Internal("the number that encodes a string group key has no string"))?)
                .into();
            }
        }
        Ok(())
    }
}
