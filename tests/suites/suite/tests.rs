use super::*;

#[test]
fn files_belong_to_suites_by_their_endings() {
    let has = |suite: Suite, name: &str, slow: bool| suite.has_file(Path::new(name), slow);
    assert!(has(Suite::Duckdb, "a.test", false) && !has(Suite::Duckdb, "a.test_slow", false));
    assert!(has(Suite::Duckdb, "a.test_slow", true) && !has(Suite::Sqlite, "a.test_slow", true));
    assert!(has(Suite::Cockroach, "aggregate", false) && !has(Suite::Cockroach, "BUILD.bazel", false));
    assert!(
        has(Suite::Postgres, "a.sql", false) && has(Suite::Slt, "a.slt", false) && !has(Suite::Slt, "a.sql", false)
    );
}

#[test]
fn files_are_listed_by_name_and_filtered_by_path() {
    let folder = tempfile::TempDir::new().expect("a temporary folder can be made");
    std::fs::create_dir(folder.path().join("sub")).expect("the folder is ours");
    for name in ["b.slt", "a.slt", "sub/c.slt", ".hidden.slt", "d.txt"] {
        std::fs::write(folder.path().join(name), "statement ok\nSELECT 1\n").expect("the folder is ours");
    }
    let names = |only: Option<&str>| {
        let files = Suite::Slt.files(folder.path(), only, false).expect("the folder is there");
        let below = |path: PathBuf| path.strip_prefix(folder.path()).map(|path| path.display().to_string());
        files.into_iter().filter_map(|path| below(path).ok()).collect::<Vec<_>>()
    };
    assert_eq!(names(None), ["a.slt", "b.slt", "sub/c.slt"]);
    assert_eq!(names(Some("sub/")), ["sub/c.slt"]);
    let script = Suite::Slt.parse(&folder.path().join("a.slt"), folder.path(), "/tmp").expect("the file is there");
    assert_eq!(script.steps.len(), 1);
}
