//! Words of several workers' keys made those of one: numbers of strings are each worker's own. Strings are numbered anew in shards, side by side.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, StringViewArray};
use arrow::compute::concat;

use super::AggregateSpec;
use super::divided::Divided;
use super::keys::KeyForm;
use super::pieces::{Aside, PARTS, Piece, part_of};
use crate::vector::TextNumbers;
use crate::{Error, Result, Strings};

/// Strings of a shard, about: a cache holds what finds them.
const SHARD_STRINGS: usize = 1 << 14;

/// What one worker has put aside, its strings by parts.
pub struct Sorted {
    keys: Vec<KeyForm>,
    pieces: Vec<Piece>,
    /// Those of each key whose words are numbers of strings.
    strings: Vec<Option<SortedStrings>>,
}

/// A worker's strings, part by part: what is copied once in a row is read in a row by those who look it up.
struct SortedStrings {
    count: usize,
    parts: Vec<PartStrings>,
}

#[derive(Default)]
struct PartStrings {
    /// Of each string its number, its hash and where it ends.
    strings: Vec<(u32, u64, usize)>,
    text: String,
}

/// What workers have put aside.
pub struct Common {
    spec: Arc<AggregateSpec>,
    workers: Vec<Sorted>,
    /// Of each shard its key, and the parts of its strings.
    shards: Vec<(usize, Range<usize>)>,
}

/// Some of the strings of a key, each once.
pub struct Shard {
    strings: StringViewArray,
    /// The numbers here of each worker's strings, in the order in which it has those of the shard.
    numbers: Vec<Vec<u32>>,
}

/// The words of one worker's strings as those of all.
#[derive(Debug)]
pub(super) struct Translation {
    numbers: Vec<u32>,
}

impl Aside {
    /// Brings its strings in the order of parts.
    #[must_use]
    pub fn sorted(self) -> Sorted {
        let Self { keys, pieces } = self;
        let strings = keys.iter().map(|key| key.texts().map(SortedStrings::of)).collect();
        let keys = keys.iter().map(KeyForm::empty).collect();
        Sorted { keys, pieces, strings }
    }
}

impl SortedStrings {
    fn of(texts: &TextNumbers) -> Self {
        let mut sizes = vec![(0, 0); PARTS];
        for (text, hash) in texts.iter().zip(texts.hashes()) {
            let (count, bytes) = &mut sizes[part_of(hash)];
            *count += 1;
            *bytes += text.len();
        }
        let part =
            |(count, bytes)| PartStrings { strings: Vec::with_capacity(count), text: String::with_capacity(bytes) };
        let mut parts: Vec<PartStrings> = sizes.into_iter().map(part).collect();
        for (number, (text, hash)) in (0..).zip(texts.iter().zip(texts.hashes())) {
            let PartStrings { strings, text: all } = &mut parts[part_of(hash)];
            all.push_str(text);
            strings.push((number, hash, all.len()));
        }
        Self { count: texts.len(), parts }
    }
}

impl PartStrings {
    /// Each string with its hash.
    fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let mut start = 0;
        self.strings.iter().map(move |(_, hash, end)| {
            let text = &self.text[start..*end];
            start = *end;
            (text, *hash)
        })
    }
}

impl Common {
    /// What workers have put aside, who have grouped by one `spec`.
    ///
    /// # Errors
    /// Where keys have several forms.
    pub fn of(spec: &Arc<AggregateSpec>, workers: Vec<Sorted>) -> Result<Self> {
        let workers: Vec<Sorted> = workers.into_iter().filter(|worker| !worker.pieces.is_empty()).collect();
        let mut shards = Vec::new();
        for key in 0..spec.keys.len() {
            let forms = || workers.iter().map(|worker| &worker.keys[key]);
            let kind = |form: &KeyForm| std::mem::discriminant(form);
            if forms().any(|form| forms().next().map(kind) != Some(kind(form))) {
                return Err(Error::Form("keys of several forms"));
            }
            let strings = || workers.iter().filter_map(|worker| worker.strings[key].as_ref());
            let count: usize = strings().map(|strings| strings.count).sum();
            if strings().next().is_some() {
                let count = (count / SHARD_STRINGS).clamp(1, PARTS);
                shards.extend((0..count).map(|shard| (key, shard * PARTS / count..(shard + 1) * PARTS / count)));
            }
        }
        Ok(Self { spec: Arc::clone(spec), workers, shards })
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The strings of a shard, of all workers.
    ///
    /// # Errors
    /// Where they are too many.
    pub fn shard(&self, number: usize) -> Result<Shard> {
        let (key, parts) = &self.shards[number];
        let mut all = TextNumbers::default();
        let mut numbers = Vec::with_capacity(self.workers.len());
        for worker in &self.workers {
            let strings = worker.strings[*key].iter().flat_map(|strings| &strings.parts[parts.clone()]);
            let strings = strings.flat_map(PartStrings::iter);
            numbers.push(strings.map(|(text, hash)| all.number_hashed(text, hash)).collect::<Result<_>>()?);
        }
        Ok(Shard { strings: all.array(), numbers })
    }

    /// The groups of all workers, whose words are one's. `shards` are all shards in their order.
    ///
    /// # Errors
    /// Where strings are too many.
    pub fn divided(self, shards: Vec<Shard>) -> Result<Divided> {
        let mut keys = Vec::with_capacity(self.spec.keys.len());
        let mut translations: Vec<Vec<Option<Translation>>> = self.workers.iter().map(|_| Vec::new()).collect();
        let mut shards = self.shards.iter().zip(shards).peekable();
        for key in 0..self.spec.keys.len() {
            let mut arrays = Vec::new();
            let none = |worker: &Sorted| vec![0; worker.strings[key].as_ref().map_or(0, |strings| strings.count)];
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
                first = count.ok_or(Error::Memory("distinct strings"))?;
                arrays.push(shard.strings);
            }
            let is_text = !arrays.is_empty();
            keys.push(match self.workers.first() {
                _ if is_text => KeyForm::Codes(Strings::new(in_one(arrays)?)),
                Some(worker) => worker.keys[key].empty(),
                None => KeyForm::Unknown,
            });
            for (of_worker, numbers) in translations.iter_mut().zip(numbers) {
                of_worker.push(is_text.then_some(Translation { numbers }));
            }
        }
        let pieces = self.workers.into_iter().map(|worker| worker.pieces).zip(translations).collect();
        Ok(Divided::of_words(&self.spec, vec![false; keys.len()], keys, pieces))
    }
}

fn in_one(arrays: Vec<StringViewArray>) -> Result<StringViewArray> {
    if let [one] = arrays.as_slice() {
        return Ok(one.clone());
    }
    let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array as &dyn Array).collect();
    let all = concat(&arrays)?;
    Ok(all.as_any().downcast_ref::<StringViewArray>().expect("an array of its own type").clone())
}

impl Translation {
    /// Translates the word at `at` of each key; `is_null` tells of a key's last word whether its value here is NULL.
    pub(super) fn translate(
        &self,
        words: &mut [i64],
        stride: usize,
        at: usize,
        is_null: impl Fn(i64) -> bool,
    ) -> Result<()> {
        for key in words.chunks_exact_mut(stride) {
            // A NULL has the word 0 everywhere, whatever string has the number 0.
            if !is_null(key[stride - 1]) {
                let number = usize::try_from(key[at]).ok().and_then(|number| self.numbers.get(number));
                key[at] = (*number.ok_or(Error::Form("a string's number"))?).into();
            }
        }
        Ok(())
    }
}
