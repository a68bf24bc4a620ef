use std::path::PathBuf;

use types::{Condition, QueryId};

use super::glob::matches;
use super::*;

#[test]
fn patterns_match_as_in_a_shell() {
    for (pattern, name, expected) in [
        ("*.csv", "a.csv", true),
        ("*.csv", "a.csv.gz", false),
        ("*.csv", ".hidden.csv", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("[a-c]x", "bx", true),
        ("[!a-c]x", "bx", false),
        ("[]]", "]", true),
        ("[", "[", true),
        ("*a*b*", "xxaxxbxx", true),
        ("*a*b", "ab1", false),
        ("part-*-[0-9]", "part-x-y-7", true),
        ("", "", true),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn a_pattern_names_its_files_in_order() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.csv", "a.csv", "c.txt"] {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    std::fs::create_dir(folder.path().join("d.csv")).unwrap();
    let found = expand(&format!("{}/*.csv", folder.path().display())).unwrap();
    assert_eq!(found, [folder.path().join("a.csv"), folder.path().join("b.csv")]);
    let deep = expand(&format!("{}/[a-b]*", folder.path().display())).unwrap();
    assert_eq!(deep.len(), 2);
    let nothing = expand(&format!("{}/*.parquet", folder.path().display())).unwrap_err();
    assert_eq!(nothing.condition, Condition::UndefinedFile);
}

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
