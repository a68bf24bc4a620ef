use datafusion::common::ScalarValue;
use types::SqlType;

use super::fixture::Fixture;

fn types(sql: &str) -> Result<Vec<SqlType>, String> {
    Fixture::small().query(sql).map(|query| query.parameters).map_err(|error| error.message)
}

#[test]
fn a_parameter_has_the_type_its_place_gives_it() {
    use SqlType as T;
    for (sql, expected) in [
        ("SELECT a FROM t WHERE a = $1", vec![T::Int4]),
        ("SELECT a FROM t WHERE b = $1 AND n > $2", vec![T::Text, T::BARE_NUMERIC]),
        ("SELECT a FROM t WHERE a IN ($1, $2)", vec![T::Int4, T::Int4]),
        ("SELECT a FROM t WHERE a BETWEEN $1 AND $2", vec![T::Int4, T::Int4]),
        ("SELECT a FROM t LIMIT $1 OFFSET $2", vec![T::Int8, T::Int8]),
        ("SELECT $1::int, $2", vec![T::Int4, T::Text]),
        ("SELECT a + $1 FROM t", vec![T::Int4]),
        ("SELECT upper($1)", vec![T::Text]),
        ("SELECT CASE WHEN a = 1 THEN $1 ELSE n END FROM t", vec![T::BARE_NUMERIC]),
        ("SELECT a FROM t WHERE $1 IS NULL OR a = $1", vec![T::Int4]),
        ("SELECT a FROM t WHERE b LIKE $1", vec![T::Text]),
        ("SELECT (SELECT max(c) FROM u WHERE u.a = t.a AND c <> $1) FROM t", vec![T::Text]),
    ] {
        assert_eq!(types(sql), Ok(expected), "{sql}");
    }
    assert_eq!(types("SELECT $2::int"), Err("could not determine data type of parameter $1".to_owned()));
}

#[tokio::test]
async fn values_take_the_parameters_places() {
    let fixture = Fixture::small();
    let int = |value| ScalarValue::Int32(Some(value));
    let found = fixture.run("SELECT a FROM t WHERE a > $1 ORDER BY a", vec![int(1)]).await;
    assert_eq!(found, Ok(vec!["2".to_owned(), "3".to_owned()]));
    let found = fixture.run("SELECT a FROM t ORDER BY a LIMIT $1", vec![ScalarValue::Int64(Some(1))]).await;
    assert_eq!(found, Ok(vec!["1".to_owned()]));
    let sql = "SELECT (SELECT c FROM u WHERE u.a = t.a AND c = $1) FROM t ORDER BY a";
    let found = fixture.run(sql, vec![ScalarValue::Utf8View(Some("q".to_owned()))]).await;
    assert_eq!(found, Ok(["NULL", "q", "NULL", "NULL"].map(str::to_owned).to_vec()));
}
