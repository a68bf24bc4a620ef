use proptest::prelude::*;

use super::*;

fn read(text: &str) -> SqlResult<Vec<Option<String>>> {
    let mut elements = Vec::new();
    parse_array(text, &mut |element| {
        elements.push(element.map(str::to_owned));
        Ok(())
    })?;
    Ok(elements)
}

fn write(elements: &[Option<String>]) -> String {
    let mut text = String::new();
    let mut writer = ArrayWriter::start(&mut text);
    for element in elements {
        match element {
            Some(element) => writer.element(element),
            None => writer.null(),
        }
    }
    writer.finish();
    text
}

#[test]
fn elements_are_read_as_postgresql_reads_them() {
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(read("{}"), Ok(vec![]));
    assert_eq!(read(" { 1 , NULL,null, \"NULL\",a b } "), Ok(vec![some("1"), None, None, some("NULL"), some("a b")]));
    assert_eq!(read(r#"{"a\"b","c\\d",e\,f,""}"#), Ok(vec![some("a\"b"), some("c\\d"), some("e,f"), some("")]));
}

#[test]
fn elements_are_quoted_where_needed() {
    let elements: Vec<Option<String>> =
        ["a", "", "null", "a b", "a,b", "{", "q\"", "b\\"].iter().map(|text| Some((*text).to_owned())).collect();
    assert_eq!(write(&elements), r#"{a,"","null","a b","a,b","{","q\"","b\\"}"#);
    assert_eq!(write(&[None]), "{NULL}");
}

#[test]
fn malformed_arrays_are_refused() {
    for text in ["", "1,2", "{1,2", "{1,,2}", "{1,2}x", "{\"a}", "{,}", "{a\"b\"}"] {
        assert_eq!(read(text).unwrap_err().condition, Condition::InvalidTextRepresentation, "{text}");
    }
    for text in ["{{1},{2}}", "[1:2]={1,2}"] {
        assert_eq!(read(text).unwrap_err().condition, Condition::FeatureNotSupported, "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(elements: Vec<Option<String>>) {
        prop_assert_eq!(read(&write(&elements)), Ok(elements));
    }
}
