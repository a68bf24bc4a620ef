//! Ranks of dictionary entries in the order of their strings.

use crate::Dictionary;

/// Returns the rank of each code's string, and the largest rank. Equal strings have equal ranks; codes that no row uses
/// have rank 0.
pub(super) fn rank_codes(strings: &Dictionary, used: impl Iterator<Item = u32>) -> (Vec<u32>, u32) {
    let mut is_used = vec![false; strings.len()];
    for code in used {
        if let Some(used) = is_used.get_mut(code as usize) {
            *used = true;
        }
    }
    let mut codes: Vec<u32> = (0..).zip(&is_used).filter(|(_, used)| **used).map(|(code, _)| code).collect();
    codes.sort_unstable_by_key(|code| strings.get(*code));
    let mut ranks = vec![0; strings.len()];
    let mut rank = 0;
    for (place, code) in codes.iter().enumerate() {
        if let Some(before) = place.checked_sub(1)
            && strings.get(codes[before]) != strings.get(*code)
        {
            rank += 1;
        }
        ranks[*code as usize] = rank;
    }
    (ranks, rank)
}
