use super::*;
use crate::test_columns::{conditions_on, numbers, words};
use crate::{Block, RowSet, encode_codes};

fn dictionary(words: &[Vec<u8>]) -> (Dictionary, Vec<u32>) {
    let mut builder = DictionaryBuilder::default();
    let numbers: Vec<u32> = words.iter().map(|word| builder.insert(word)).collect();
    let (dictionary, codes) = builder.finish().unwrap();
    (dictionary, numbers.iter().map(|number| codes[*number as usize]).collect())
}

#[test]
fn codes_stand_for_strings_in_order() {
    for count in [0, 1, 2, 500, 5000] {
        let words = words(count, 3);
        let (dictionary, codes) = dictionary(&words);
        for (word, code) in words.iter().zip(&codes) {
            assert_eq!(dictionary.get(*code), Some(word.as_slice()));
            assert_eq!(dictionary.code_of(word), Some(*code));
            assert_eq!(dictionary.hash_of(*code), Some(hash_text(word)));
        }
        let mut distinct = words.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(dictionary.len(), distinct.len());
        assert_eq!((dictionary.get(distinct.len() as u32), dictionary.code_of(b"no such word")), (None, None));
        let again = Dictionary::open(dictionary.bytes().clone()).unwrap();
        assert_eq!(again.content_hash(), dictionary.content_hash());
    }
}

#[test]
fn equal_dictionaries_are_equal_whatever_the_order() {
    let mut some = words(300, 8);
    let (one, _) = dictionary(&some);
    some.reverse();
    let (other, _) = dictionary(&some);
    assert_eq!(one.bytes(), other.bytes());
    some.push(b"another".to_vec());
    assert_ne!(dictionary(&some).0.content_hash(), one.content_hash());
}

#[test]
fn a_condition_is_tried_on_the_dictionary_alone() {
    let words = words(4000, 5);
    let (dictionary, codes) = dictionary(&words);
    let block = Block::open(encode_codes(&codes, None).unwrap()).unwrap();
    for condition in conditions_on(&words, 4) {
        let matcher = TextMatcher::new(&condition);
        let codes = dictionary.matching(&condition);
        let expected = dictionary.codes_matching_predicate(|word| matcher.matches(word));
        assert_eq!(codes, expected, "{condition:?}");
        let mut rows = RowSet::all(words.len());
        block.filter_codes(&codes, &mut rows).unwrap();
        assert!(rows.iter().eq((0..words.len()).filter(|row| matcher.matches(&words[*row]))), "{condition:?}");
    }
}

#[test]
fn damage_is_noticed_and_never_worse() {
    let (dictionary, _) = dictionary(&words(40, 2));
    let bytes = dictionary.bytes();
    for at in 0..bytes.len() {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 0x10;
        assert!(Dictionary::open(Bytes::from(damaged)).is_err(), "byte {at}");
        assert!(Dictionary::open(bytes.slice(..at)).is_err(), "{at} bytes");
    }
    let mut opened = 0;
    for seed in 0..20_000 {
        let mut numbers = numbers(seed);
        let mut next = |below: usize| (numbers.next().unwrap_or_default() % below.max(1) as u64) as usize;
        let mut damaged = bytes.to_vec();
        for _ in 0..=next(3) {
            let at = next(damaged.len());
            damaged[at] = [0, u8::MAX, damaged[at] ^ 1, damaged[at].wrapping_add(1)][next(4)];
        }
        if next(6) == 0 {
            damaged.truncate(HEADER_BYTES + next(damaged.len()));
        }
        let checksum = checksum(&damaged);
        damaged[8..16].copy_from_slice(&checksum.to_le_bytes());
        if let Ok(dictionary) = Dictionary::open(Bytes::from(damaged)) {
            opened += 1;
            for condition in conditions_on(&words(40, 2), seed).iter().take(5) {
                dictionary.matching(condition);
            }
            assert!((0..dictionary.len() as u32).all(|code| dictionary.get(code).is_some()));
        }
    }
    assert!(1000 < opened, "only {opened} damaged dictionaries were looked into");
}
