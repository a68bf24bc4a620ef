use types::random::SeededRandom;

use super::*;

#[test]
fn the_id_is_drawn_once() {
    let folder = tempfile::tempdir().unwrap();
    let first = load_or_create(folder.path(), &SeededRandom::new(1)).unwrap();
    let second = load_or_create(folder.path(), &SeededRandom::new(2)).unwrap();
    assert_eq!(first, second);
    assert!(!folder.path().join("instance.new").exists());
}

#[test]
fn a_damaged_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE_NAME), "not an id").unwrap();
    let error = load_or_create(folder.path(), &SeededRandom::new(1)).unwrap_err();
    assert!(error.to_string().contains("no UUID"), "{error:#}");
}
