use std::path::{Path, PathBuf};

use types::{Condition, QueryId};

use super::*;

#[test]
fn missing_files_and_folders_are_refused_in_postgresqls_words() {
    let missing = total_bytes(&[PathBuf::from("/nowhere/x.csv")]).unwrap_err();
    assert_eq!(missing.condition, Condition::UndefinedFile);
    assert_eq!(missing.message, "could not open file \"/nowhere/x.csv\" for reading: No such file or directory");
    let folder = total_bytes(&[PathBuf::from("/tmp")]).unwrap_err();
    assert_eq!((folder.condition, folder.message.as_str()), (Condition::WrongObjectType, "\"/tmp\" is a directory"));
    let relative = FileWriter::create(Path::new("x.csv"), QueryId(1)).unwrap_err();
    assert_eq!(relative.condition, Condition::InvalidName);
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out.csv");
    std::fs::write(&target, "before").unwrap();
    let mut dropped = FileWriter::create(&target, QueryId(1)).unwrap();
    dropped.write(b"half").unwrap();
    drop(dropped);
    assert_eq!(std::fs::read(&target).unwrap(), b"before");
    let mut whole = FileWriter::create(&target, QueryId(2)).unwrap();
    whole.write(b"after").unwrap();
    whole.finish().unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"after");
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
}
