use super::*;

#[test]
fn checksums_are_read_as_they_were_written() {
    let checksums = [0, 1, u32::MAX, 0xdead_beef];
    assert_eq!(encode(&checksums), "0000000000000001ffffffffdeadbeef");
    assert_eq!(decode(&encode(&checksums)).unwrap(), checksums);
}

#[test]
fn what_is_no_list_of_checksums_is_refused() {
    for text in ["0", "0000000g", "é000000", "000000000000000", "+0000001x"] {
        assert_eq!(decode(text), None, "{text}");
    }
}
