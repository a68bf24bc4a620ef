//! Smoke tests of `kiln bench`: each mode runs once at a small size, prints its results and ends.

use std::process::{Command, Output};

use tempfile::TempDir;

use crate::server::kiln;

fn bench(arguments: &[&str]) -> (String, TempDir) {
    let workspace = TempDir::with_prefix("kiln-test-bench-").expect("a temporary folder can be made");
    let output = Command::new(kiln())
        .args(["bench", "tpch", "--sf", "0.01", "--runs", "1", "--workspace"])
        .arg(workspace.path())
        .args(arguments)
        .output()
        .expect("the program starts");
    (output_text(&output), workspace)
}

fn output_text(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    told
}

#[test]
fn cold_queries_are_measured_on_fresh_servers() {
    let (told, _workspace) = bench(&["--cold", "--queries", "1,6"]);
    assert!(told.contains("q01        4 rows") && told.contains("q06        1 rows"), "{told}");
}

#[test]
fn streams_are_measured_beside_one() {
    let (told, _workspace) = bench(&["--streams", "3", "--queries", "1,3,6", "--seconds", "1", "--warm", "0"]);
    assert!(told.contains("\n3 streams") && told.contains("p99 of the short query"), "{told}");
}

#[test]
fn loads_are_measured_from_both_kinds_of_files() {
    let (told, workspace) = bench(&["--load"]);
    let rows = |format: &str| {
        let line = told.lines().find(|line| line.starts_with(&format!("kiln {format}"))).expect(format);
        line.split_whitespace().nth_back(1).map(str::to_owned)
    };
    assert_eq!(rows("csv"), rows("parquet"), "{told}");
    assert!(!workspace.path().join("kiln-load-tpch-0.01").exists(), "what was loaded is taken away");
}
