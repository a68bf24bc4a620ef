use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray};
use datafusion::physical_expr::expressions::{in_list, is_not_null, is_null, like, lit};
use plan::datum_to_scalar;
use proptest::prelude::*;
use rowstore::sample_values::all_samples;
use shards::ShardReader;
use shards::predicate::ZoneMapEntry;
use types::ColumnId;
use types::sample_values::all_types;

use super::*;

fn columns() -> Vec<ColumnDef> {
    let column = |id, name: &str, sql_type| ColumnDef {
        id: ColumnId(id),
        name: name.to_owned(),
        sql_type,
        nullable: true,
        missing: None,
    };
    vec![column(1, "n", SqlType::Int8), column(2, "t", SqlType::Text)]
}

/// Conformance of pruning: a literal of each type becomes the datum that statistics have of the same value, and comes
/// back from it, or the type is not pruned.
#[test]
fn all_samples_are_literals_as_in_statistics_or_are_not_pruned() {
    let mut pruned = 0;
    for sql_type in all_types() {
        let column = all_samples(&sql_type);
        for row in 0..column.len() {
            let literal = ScalarValue::try_from_array(&column, row).unwrap();
            let Some(datum) = literal_to_datum(&literal, &sql_type) else { continue };
            assert_eq!(Some(&datum), Datum::from_array(column.as_ref(), row).as_ref(), "{sql_type}");
            if let Some(back) = datum_to_scalar(&datum, &sql_type) {
                assert_eq!(back, literal, "{sql_type}");
            }
            pruned += 1;
        }
        let other = if sql_type == SqlType::Bool { SqlType::Int4 } else { SqlType::Bool };
        let foreign = ScalarValue::try_from_array(&all_samples(&other), 0).unwrap();
        assert_eq!(literal_to_datum(&foreign, &sql_type), None, "a literal of {other} for {sql_type}");
    }
    assert!(100 < pruned, "{pruned}");
}

fn n() -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new("n", 0))
}

fn t() -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new("t", 1))
}

fn number(value: Option<i64>) -> Arc<dyn PhysicalExpr> {
    lit(ScalarValue::Int64(value))
}

fn text(value: Option<String>) -> Arc<dyn PhysicalExpr> {
    lit(ScalarValue::Utf8View(value))
}

fn binary(left: Arc<dyn PhysicalExpr>, op: Operator, right: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(left, op, right))
}

fn filter() -> impl Strategy<Value = Arc<dyn PhysicalExpr>> {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let op = || prop::sample::select(vec![Eq, NotEq, Lt, LtEq, Gt, GtEq]);
    let numbers = || prop::option::weighted(0.9, -4_i64..4);
    let texts = || prop::option::weighted(0.9, "[ab]{0,2}");
    let leaf = prop_oneof![
        (op(), numbers()).prop_map(|(op, value)| binary(n(), op, number(value))),
        (op(), numbers()).prop_map(|(op, value)| binary(number(value), op, n())),
        (op(), texts()).prop_map(|(op, value)| binary(t(), op, text(value))),
        prop::sample::select(vec![0, 1]).prop_map(|which| is_null(if which == 0 { n() } else { t() }).unwrap()),
        Just(is_not_null(n()).unwrap()),
        (prop::collection::vec(numbers(), 1..4), any::<bool>()).prop_map(|(values, negated)| {
            let values = values.into_iter().map(number).collect();
            in_list(n(), values, &negated, &ShardReader::schema(&columns())).unwrap()
        }),
        ("[ab%_]{0,3}", any::<bool>()).prop_map(|(pattern, negated)| {
            like(negated, false, t(), text(Some(pattern)), &ShardReader::schema(&columns())).unwrap()
        }),
        any::<bool>().prop_map(lit),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let op = prop::sample::select(vec![Operator::And, Operator::Or]);
        (inner.clone(), op, inner).prop_map(|(left, op, right)| binary(left, op, right))
    })
}

proptest! {
    #[test]
    fn rows_that_pass_a_filter_pass_its_tests(
        filter in filter(),
        rows in prop::collection::vec((prop::option::of(-4_i64..4), prop::option::of("[ab]{0,2}")), 1..20),
    ) {
        let columns = columns();
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
            Arc::new(rows.iter().map(|row| row.1.clone()).collect::<StringViewArray>()),
        ];
        let batch = RecordBatch::try_new(ShardReader::schema(&columns), arrays).unwrap();
        let passed = filter.evaluate(&batch).unwrap().into_array(rows.len()).unwrap();
        let predicates = extract_predicates(&filter, &columns);
        for row in 0..rows.len() {
            if passed.as_boolean().iter().nth(row).flatten() != Some(true) {
                continue;
            }
            for predicate in &predicates {
                let values = batch.column(if predicate.column == ColumnId(1) { 0 } else { 1 });
                let value = Datum::from_array(values.as_ref(), row);
                let nulls = Some(u64::from(value.is_none()));
                let zone = ZoneMapEntry { rows: 1, nulls, min: value.as_ref(), max: value.as_ref(), exact: true };
                prop_assert!(predicate.test.may_pass(&zone), "{filter} says {predicate:?}, row {row} has {value:?}");
            }
        }
    }
}

fn tests(filter: &Arc<dyn PhysicalExpr>) -> Vec<Test> {
    extract_predicates(filter, &columns()).into_iter().map(|predicate| predicate.test).collect()
}

#[test]
fn filters_become_tests() {
    let seven = Datum::Int(7);
    assert_eq!(
        tests(&binary(number(Some(7)), Operator::Lt, n())),
        [Test::Compare(CompareOp::Greater, seven.clone())],
        "sides may be swapped"
    );
    // The filter of a top-k over two columns, seen from the first.
    let first = binary(t(), Operator::Lt, text(Some("m".to_owned())));
    let second = binary(
        binary(t(), Operator::Eq, text(Some("m".to_owned()))),
        Operator::And,
        binary(n(), Operator::Lt, number(Some(7))),
    );
    let m = Datum::Text("m".to_owned());
    let expected = Test::Any(vec![Test::Compare(CompareOp::Less, m.clone()), Test::Compare(CompareOp::Eq, m)]);
    assert_eq!(tests(&binary(first, Operator::Or, second)), [expected]);
    let prefix = like(false, false, t(), text(Some("ab_%".to_owned())), &ShardReader::schema(&columns())).unwrap();
    assert_eq!(
        tests(&prefix),
        [Test::All(vec![
            Test::Compare(CompareOp::GreaterEq, Datum::Text("ab".to_owned())),
            Test::Compare(CompareOp::Less, Datum::Text("ac".to_owned())),
        ])]
    );
    let other = like(true, false, t(), text(Some("%ab%".to_owned())), &ShardReader::schema(&columns())).unwrap();
    assert_eq!(tests(&other), [Test::Like { pattern: LikePattern::parse("%ab%").unwrap(), is_negated: true }]);
}

#[test]
fn unsupported_filters_give_no_test() {
    assert!(tests(&binary(n(), Operator::Eq, lit(ScalarValue::Int32(Some(7))))).is_empty(), "another type");
    let sum = binary(n(), Operator::Plus, number(Some(1)));
    assert!(tests(&binary(sum, Operator::Eq, number(Some(7)))).is_empty());
    let either = binary(
        binary(n(), Operator::Eq, number(Some(7))),
        Operator::Or,
        binary(t(), Operator::Eq, text(Some("a".to_owned()))),
    );
    assert!(tests(&either).is_empty(), "says nothing of one column alone");
}

#[test]
fn dynamic_filters_use_their_present_state() {
    let dynamic = Arc::new(DynamicFilterPhysicalExpr::new(vec![n()], lit(true)));
    let filter: Arc<dyn PhysicalExpr> = Arc::clone(&dynamic) as _;
    assert!(tests(&filter).is_empty());
    dynamic.update(binary(n(), Operator::GtEq, number(Some(7)))).unwrap();
    assert_eq!(tests(&filter), [Test::Compare(CompareOp::GreaterEq, Datum::Int(7))]);
}
