use arrow_schema::{DataType, Field};

use crate::SqlType;
use crate::sample_values::all_types;

#[test]
fn every_type_survives_the_way_through_arrow() {
    for sql_type in all_types() {
        let field = sql_type.arrow_field("x", true);
        assert_eq!(SqlType::from_arrow_field(&field), Some(sql_type));
    }
}

#[test]
fn arrays_of_one_arrow_type_differ_by_their_own_mark() {
    let array = |element| SqlType::Array(Box::new(element));
    assert_eq!(array(SqlType::Name).arrow_type(), array(SqlType::Text).arrow_type());
    assert!(array(SqlType::Text).arrow_metadata().is_empty(), "text[] needs no mark");
    let names = array(SqlType::Name).arrow_field("x", true);
    assert_eq!(SqlType::from_arrow_field(&names), Some(array(SqlType::Name)));
}

#[test]
fn metadata_that_contradicts_the_values_is_not_believed() {
    let metadata = SqlType::Uuid.arrow_field("x", true).metadata().clone();
    let varchar = SqlType::Varchar(Some(3)).arrow_field("x", true).metadata().clone();
    assert!(metadata.is_empty(), "uuid needs no mark");
    let field = Field::new("x", DataType::Int32, true).with_metadata(varchar);
    assert_eq!(SqlType::from_arrow_field(&field), Some(SqlType::Int4));
}
