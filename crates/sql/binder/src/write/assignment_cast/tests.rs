use types::SqlType as T;

use super::is_assignable;

#[test]
fn numbers_narrow_and_everything_becomes_text() {
    for from in [T::Int2, T::Int8, T::BARE_NUMERIC, T::Float4, T::Float8] {
        assert!(is_assignable(&from, &T::Int2), "{from}");
        assert!(is_assignable(&from, &T::Float4), "{from}");
        assert!(is_assignable(&from, &T::Varchar(Some(3))), "{from}");
    }
    for from in [T::Bool, T::Date, T::Uuid, T::Jsonb, T::Bytea, T::Array(Box::new(T::Int4))] {
        assert!(is_assignable(&from, &T::Text), "{from}");
    }
}

#[test]
fn text_becomes_nothing_by_itself() {
    for to in [T::Int4, T::BARE_NUMERIC, T::Date, T::Bool, T::Json, T::Interval, T::Uuid] {
        assert!(!is_assignable(&T::Text, &to), "{to}");
        assert!(is_assignable(&T::Unknown, &to), "{to}");
    }
}

#[test]
fn times_lose_what_the_column_has_no_room_for_but_gain_nothing() {
    assert!(is_assignable(&T::TimestampTz, &T::Date));
    assert!(is_assignable(&T::Timestamp, &T::Time));
    assert!(is_assignable(&T::Interval, &T::Time));
    assert!(!is_assignable(&T::Time, &T::Timestamp));
    assert!(!is_assignable(&T::Date, &T::Time));
    assert!(!is_assignable(&T::Bool, &T::Int4));
    assert!(!is_assignable(&T::Int4, &T::Bool));
}

#[test]
fn arrays_go_by_their_elements() {
    let array = |element: T| T::Array(Box::new(element));
    assert!(is_assignable(&array(T::Int8), &array(T::Int2)));
    assert!(!is_assignable(&array(T::Text), &array(T::Int4)));
    assert!(!is_assignable(&T::Int4, &array(T::Int4)));
}
