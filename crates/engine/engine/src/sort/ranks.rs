//! Which place a string of a dictionary has among the others.

use crate::Strings;

/// By code the rank of its string, equal ones alike; and the greatest rank. Codes that no row has need none.
pub(super) fn ranks(strings: &Strings, used: impl Iterator<Item = u32>) -> (Vec<u32>, u32) {
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
