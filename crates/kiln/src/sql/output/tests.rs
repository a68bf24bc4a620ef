use super::{Answer, Format};

fn answer() -> Answer {
    Answer {
        columns: vec!["n".to_owned(), "word".to_owned()],
        rows: vec![
            vec![Some("1".to_owned()), Some("a,b".to_owned())],
            vec![Some("20".to_owned()), None],
            vec![Some("3".to_owned()), Some(String::new())],
        ],
    }
}

#[test]
fn tables_align_numbers_right_and_words_left() {
    assert_eq!(answer().render(Format::Table, true), " n  | word\n----+------\n  1 | a,b\n 20 |\n  3 |\n");
}

#[test]
fn csv_tells_null_from_empty_text() {
    assert_eq!(answer().render(Format::Csv, true), "n,word\n1,\"a,b\"\n20,\n3,\"\"\n");
}

#[test]
fn json_gives_one_object_a_line() {
    let text = answer().render(Format::Json, true);
    assert_eq!(text.lines().nth(1), Some("{\"n\":\"20\",\"word\":null}"));
}
