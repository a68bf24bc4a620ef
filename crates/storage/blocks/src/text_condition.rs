//! Conditions on strings, and keys that bound strings.

use memchr::memmem::Finder;

use crate::key_ranges::PruneResult;
use crate::{Comparison, LikePattern};

/// A condition on strings, which are compared by their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TextCondition {
    /// Comparison with a constant.
    Compare(Comparison, Vec<u8>),
    /// Inclusive range.
    Between(Vec<u8>, Vec<u8>),
    /// Equality with one of several constants.
    In(Vec<Vec<u8>>),
    /// `LIKE`, or `NOT LIKE`.
    Like {
        /// The pattern.
        pattern: LikePattern,
        /// True for `NOT LIKE`.
        is_negated: bool,
    },
    /// `IS NULL`.
    IsNull,
    /// `IS NOT NULL`.
    IsNotNull,
}

/// Returns the first 8 bytes as a key: a smaller key means a smaller string; equal keys decide nothing.
pub(crate) fn prefix_key(value: &[u8]) -> i64 {
    (u64::from_be_bytes(prefix(value)) ^ 1 << 63) as i64
}

/// Returns the first 16 bytes as a key with the same property.
pub(crate) fn wide_prefix_key(value: &[u8]) -> i128 {
    (u128::from_be_bytes(prefix(value)) ^ 1 << 127) as i128
}

/// Returns the first bytes, padded with zeros.
fn prefix<const BYTES: usize>(value: &[u8]) -> [u8; BYTES] {
    if let Some(first) = value.first_chunk() {
        return *first;
    }
    let mut padded = [0; BYTES];
    let taken = value.len().min(BYTES);
    padded[..taken].copy_from_slice(&value[..taken]);
    padded
}

/// A condition prepared for evaluation on many strings.
pub struct TextMatcher<'a> {
    condition: &'a TextCondition,
    /// Searchers of the substrings of a LIKE pattern.
    finders: Vec<Finder<'a>>,
    /// Sorted constants of an IN list.
    sorted_list: Vec<&'a [u8]>,
}

impl<'a> TextMatcher<'a> {
    /// Prepares a condition.
    #[must_use]
    pub fn new(condition: &'a TextCondition) -> Self {
        let finders = match condition {
            TextCondition::Like { pattern, .. } => pattern.parts.iter().map(Finder::new).collect(),
            _ => Vec::new(),
        };
        let mut listed: Vec<&[u8]> = match condition {
            TextCondition::In(values) => values.iter().map(Vec::as_slice).collect(),
            _ => Vec::new(),
        };
        listed.sort_unstable();
        Self { condition, finders, sorted_list: listed }
    }

    /// Whether the condition is true for a string.
    #[must_use]
    pub fn matches(&self, value: &[u8]) -> bool {
        match self.condition {
            TextCondition::Compare(comparison, constant) => match comparison {
                // Comparing for equality first compares lengths, which usually differ.
                Comparison::Equal => value == constant,
                Comparison::NotEqual => value != constant,
                comparison => comparison.holds(value.cmp(constant)),
            },
            TextCondition::Between(low, high) => low.as_slice() <= value && value <= high.as_slice(),
            TextCondition::In(_) => self.sorted_list.binary_search(&value).is_ok(),
            TextCondition::Like { pattern, is_negated } => self.is_like(pattern, value) != *is_negated,
            TextCondition::IsNull => false,
            TextCondition::IsNotNull => true,
        }
    }

    fn is_like(&self, pattern: &LikePattern, value: &[u8]) -> bool {
        let behind = value.strip_prefix(pattern.prefix.as_slice());
        let between = behind.and_then(|value| value.strip_suffix(pattern.suffix.as_slice()));
        between.is_some_and(|value| contains_in_order(&self.finders, value))
    }

    /// Whether the condition only requires substrings anywhere (`'%part%part%'`). [`Self::search`] then also finds
    /// strings that contain a matching string.
    #[must_use]
    pub fn is_substring_search(&self) -> bool {
        let TextCondition::Like { pattern, .. } = self.condition else { return false };
        let is_anywhere = pattern.prefix.is_empty() && pattern.suffix.is_empty();
        is_anywhere && self.finders.first().is_some_and(|first| !first.needle().is_empty())
    }

    /// Whether [`Self::search`] finds the strings for which the condition is false.
    #[must_use]
    pub fn is_negated(&self) -> bool {
        matches!(self.condition, TextCondition::Like { is_negated: true, .. })
    }

    /// Evaluates the condition against strings whose prefix keys lie in `min..=max`.
    pub(crate) fn prune(&self, min: i64, max: i64) -> PruneResult {
        let outside = |low: i64, high: i64| max < low || high < min;
        match self.condition {
            TextCondition::Compare(comparison, constant) => {
                let key = prefix_key(constant);
                let (below, above) = (max < key, key < min);
                if !below && !above {
                    return PruneResult::Some;
                }
                let ordering = if below { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater };
                if comparison.holds(ordering) { PruneResult::All } else { PruneResult::None }
            }
            TextCondition::Between(low, high) => match (prefix_key(low), prefix_key(high)) {
                (low, high) if outside(low, high) => PruneResult::None,
                (low, high) if low < min && max < high => PruneResult::All,
                _ => PruneResult::Some,
            },
            TextCondition::In(values) => {
                let may_be = |value: &Vec<u8>| !outside(prefix_key(value), prefix_key(value));
                if values.iter().any(may_be) { PruneResult::Some } else { PruneResult::None }
            }
            TextCondition::Like { pattern, is_negated } => {
                // Upper bound of the keys of all strings with this prefix.
                let greatest = [pattern.prefix.as_slice(), &[u8::MAX; 8]].concat();
                match (outside(prefix_key(&pattern.prefix), prefix_key(&greatest)), is_negated) {
                    (false, _) => PruneResult::Some,
                    (true, false) => PruneResult::None,
                    (true, true) => PruneResult::All,
                }
            }
            TextCondition::IsNull => PruneResult::None,
            TextCondition::IsNotNull => PruneResult::All,
        }
    }

    /// Calls `found` with the index of each string in a heap for which the condition is true, or false if
    /// [`Self::is_negated`]. `ends` are the end offsets of the strings. The first substring is searched in the whole
    /// heap at once.
    pub fn search(&self, heap: &[u8], ends: &[u32], mut found: impl FnMut(usize)) {
        let Some((first, rest)) = self.finders.split_first().filter(|_| self.is_substring_search()) else {
            let mut start = 0;
            for (number, end) in ends.iter().enumerate() {
                if self.matches(&heap[start..*end as usize]) != self.is_negated() {
                    found(number);
                }
                start = *end as usize;
            }
            return;
        };
        let length = first.needle().len();
        let (mut from, mut number) = (0, 0);
        while let Some(at) = first.find(&heap[from..]) {
            let hit = from + at;
            let Some(passed) = ends[number..].iter().position(|end| hit < *end as usize) else { return };
            number += passed;
            let end = ends[number] as usize;
            if hit + length <= end && contains_in_order(rest, &heap[hit + length..end]) {
                found(number);
                from = end;
            } else if hit + length <= end {
                // The other substrings do not follow this hit, hence no later hit in this string either.
                from = end;
            } else {
                // The hit crosses the string's end; another hit may start inside it.
                from = hit + 1;
            }
        }
    }
}

/// Whether a string contains the substrings in order without overlap.
fn contains_in_order(finders: &[Finder<'_>], mut value: &[u8]) -> bool {
    for finder in finders {
        let Some(at) = finder.find(value) else { return false };
        value = &value[at + finder.needle().len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_columns::like;

    #[test]
    fn prefix_keys_never_order_against_the_strings() {
        let strings: [&[u8]; 8] =
            [b"", b"\0", b"a", b"a\0", b"abcdefgh", b"abcdefghi", b"b", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"];
        assert!(strings.is_sorted());
        assert!(strings.is_sorted_by_key(|string| prefix_key(string)));
        assert!(strings.is_sorted_by_key(|string| wide_prefix_key(string)));
    }

    #[test]
    fn bounds_never_rule_out_a_string_that_passes() {
        let strings: [&[u8]; 6] = [b"", b"a", b"ab", b"abcdefghij", b"\xff", b"\xff\xff\xff\xff\xff\xff\xff\xff\xffz"];
        for (string, constant) in strings.iter().flat_map(|string| strings.map(|constant| (*string, constant.to_vec())))
        {
            let mut conditions = vec![
                like(&constant, &[], b"ab", false),
                like(&constant, &[b"c"], b"", true),
                TextCondition::In(vec![constant.clone()]),
                TextCondition::Between(constant.clone(), b"ac".to_vec()),
                TextCondition::Between(b"aa".to_vec(), constant.clone()),
            ];
            conditions.extend(Comparison::ALL.map(|comparison| TextCondition::Compare(comparison, constant.clone())));
            for condition in conditions {
                let (matcher, key) = (TextMatcher::new(&condition), prefix_key(string));
                let forbidden = if matcher.matches(string) { PruneResult::None } else { PruneResult::All };
                assert_ne!(matcher.prune(key, key), forbidden, "{condition:?} of {string:?}");
            }
        }
    }

    #[test]
    fn a_heap_is_searched_within_its_strings() {
        let strings: [&[u8]; 9] =
            [b"aab", b"", b"xaa", b"b", b"aabaab", b"ab", b"a", b"aaab", b"special unrequests requests"];
        let heap = strings.concat();
        let ends: Vec<u32> = strings
            .iter()
            .scan(0, |end, string| {
                *end += string.len() as u32;
                Some(*end)
            })
            .collect();
        type Parts<'a> = &'a [&'a [u8]];
        let lists: [(&[u8], Parts<'_>, &[u8]); 12] = [
            (b"", &[b"aab"], b""),
            (b"", &[b"ab", b"ab"], b""),
            (b"", &[b""], b""),
            (b"", &[b"", b"b"], b""),
            (b"", &[b"a", b""], b""),
            (b"", &[], b""),
            (b"", &[b"special", b" requests"], b""),
            (b"", &[b"zz"], b""),
            (b"a", &[], b""),
            (b"", &[], b"ab"),
            (b"a", &[], b"ab"),
            (b"a", &[b"b"], b"b"),
        ];
        for (condition, is_negated) in lists.iter().flat_map(|list| [(list, false), (list, true)]) {
            let (prefix, parts, suffix) = *condition;
            let condition = like(prefix, parts, suffix, is_negated);
            let matcher = TextMatcher::new(&condition);
            let mut found = Vec::new();
            matcher.search(&heap, &ends, |number| found.push(number));
            let expected: Vec<usize> =
                (0..strings.len()).filter(|number| matcher.matches(strings[*number]) != is_negated).collect();
            assert_eq!(found, expected, "{condition:?}");
        }
    }
}
