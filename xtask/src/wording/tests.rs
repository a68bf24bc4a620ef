//! The rules of plain words, each on text that breaks it and on text that keeps it.

use std::path::PathBuf;

use super::*;
use crate::workspace::Crate;

fn workspace(source: &str) -> Workspace {
    let folder = PathBuf::from("/kiln/crates/engine");
    Workspace {
        root: PathBuf::from("/kiln"),
        crates: vec![Crate {
            name: "engine".to_owned(),
            folder: folder.clone(),
            dependencies: Vec::new(),
            dev_dependencies: Vec::new(),
        }],
        locked_packages: Vec::new(),
        architecture_text: String::new(),
        sources: vec![(folder.join("src/lib.rs"), source.to_owned())],
    }
}

fn shown(source: &str) -> Vec<String> {
    find_offences(&workspace(source)).expect("it parses").iter().map(ToString::to_string).collect()
}

#[test]
fn riddles_at_the_start_of_a_doc_comment_are_found_and_sentences_within_are_not() {
    let source = "//! Engine.\n\n/// What is kept.\n/// Of nothing.\nfn sum() {}\n/// Sums a column.\n/// How: by lanes.\nfn f() {}\n";
    assert_eq!(shown(source), ["crates/engine/src/lib.rs:3: doc-opening: a doc comment opens with \"What\""]);
}

#[test]
fn a_sentence_of_over_forty_words_is_found_and_a_list_is_not_one_sentence() {
    let long = "word ".repeat(41);
    assert_eq!(shown(&format!("/// {long}\nfn f() {{}}\n")).len(), 1);
    let list = "/// - a few words here\n".repeat(30);
    assert_eq!(shown(&format!("{list}fn f() {{}}\n")), [""; 0]);
    let wrapped = format!("{} 128-bit\n/// 64-bit {}", "word ".repeat(20), "word ".repeat(20));
    assert_eq!(shown(&format!("/// {wrapped}\nfn f() {{}}\n")).len(), 1, "a number at the start of a line");
    assert_eq!(shown(&format!("/// ```\n/// {long}\n/// ```\nfn f() {{}}\n")), [""; 0]);
}

#[test]
fn types_of_one_name_are_found_where_a_whole_crate_sees_them() {
    let source = "mod a { pub(crate) struct Rows; }\nmod b { pub(crate) enum Rows {} struct Page; }\nstruct Page;\n#[cfg(test)] mod tests { pub struct Rows; }\n";
    assert_eq!(
        shown(source),
        ["crates/engine/src/lib.rs:2: same-name: Rows is a type in crates/engine/src/lib.rs:1 too"]
    );
}

#[test]
fn a_log_text_begins_with_its_subject() {
    let source =
        "fn f() { tracing::warn!(table, \"something went wrong\"); info!(\"could not flush table {table}\"); }\n";
    assert_eq!(shown(source).len(), 1);
    assert!(shown(source)[0].contains("log-subject: \"something went wrong\""));
    let nested = "fn f() { tokio::select! { _ = done => { tracing::info!(\"it was done\") } } }\n";
    assert_eq!(shown(nested).len(), 1);
}

#[test]
fn the_baseline_refuses_more_and_asks_to_be_lowered_for_fewer() {
    let (two, one) = ("/// What.\nfn f() {}\n/// What.\nfn g() {}\n", "/// What.\nfn f() {}\n");
    let counts = |source: &str| count_by_rule(&find_offences(&workspace(source)).expect("it parses"));
    let found = find_offences(&workspace(two)).expect("it parses");
    let high = Baseline::new(counts(two));
    assert_eq!(high.compare(&counts(two), &found), [""; 0]);
    assert_eq!(high.compare(&counts(one), &[]).len(), 1);
    let low = high.lowered(&counts(one));
    assert_eq!(low.compare(&counts(two), &found).len(), 3);
    assert_eq!(low.lowered(&counts(two)).compare(&counts(one), &[]), [""; 0]);
}

#[test]
fn a_seed_draws_the_same_sample_each_time() {
    let workspace = workspace("fn f() { error!(\"disk full\"); }\nstruct A;\nenum B { C }\n");
    let first = draw_sample(&workspace, 7).expect("it parses");
    assert_eq!(first, draw_sample(&workspace, 7).expect("it parses"));
    assert!(first.contains("variant B::C") && first.contains("disk full"));
}
