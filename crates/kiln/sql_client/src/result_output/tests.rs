use super::{Format, JsonForm, ResultRows};

fn answer() -> ResultRows {
    ResultRows {
        columns: vec!["n".to_owned(), "word".to_owned()],
        json_forms: vec![JsonForm::Number, JsonForm::Text],
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
    assert_eq!(text.lines().nth(1), Some(r#"{"n":20,"word":null}"#));
}

#[test]
fn json_keeps_columns_in_order_and_values_whole() {
    let columns = ["z", "a", "a", "yes", "doc", "nan", "q"].map(str::to_owned).to_vec();
    let forms = vec![
        JsonForm::Number,
        JsonForm::Number,
        JsonForm::Text,
        JsonForm::Boolean,
        JsonForm::Document,
        JsonForm::Number,
        JsonForm::Text,
    ];
    let values = ["12345678901234567890.50", "-1e+300", "1", "t", "{\"k\":\n [1]}", "NaN", "say \"x\"\n"];
    let rows = vec![values.map(|value| Some(value.to_owned())).to_vec()];
    assert_eq!(
        ResultRows { columns, json_forms: forms, rows }.render(Format::Json, true),
        r#"{"z":12345678901234567890.50,"a":-1e+300,"a":"1","yes":true,"doc":{"k":  [1]},"nan":"NaN","q":"say \"x\"\n"}"#
            .to_owned()
            + "\n"
    );
}
