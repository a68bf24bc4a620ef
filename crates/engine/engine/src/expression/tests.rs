use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{ArrayRef, AsArray, Int64Array, StringViewArray};
use arrow::datatypes::DataType;

use super::{ArithmeticOperation, ArrowFunction, CallCosts, Comparison, Expression, ExpressionState, Fallback};
use crate::{Batch, Bitmap, Bounds, Column, ColumnData, Dictionary, Error, Result};

fn ints(values: &[Option<i64>]) -> Column {
    let validity = Some(Arc::new(Bitmap::from_fn(values.len(), |row| values[row].is_some())));
    let values: Vec<i64> = values.iter().map(|value| value.unwrap_or(0)).collect();
    let bounds =
        values.iter().fold(Bounds::from_value(0), |bounds, value| bounds.union(Bounds::from_value((*value).into())));
    Column { data: ColumnData::Ints { values: Arc::new(values), bounds }, validity }
}

fn batch(columns: Vec<Column>) -> Batch {
    Batch { rows: columns[0].rows(), columns }
}

fn column(at: usize) -> Box<Expression> {
    Box::new(Expression::Column(at))
}

fn constant(value: i64) -> Box<Expression> {
    Box::new(Expression::Constant(Column::new(ColumnData::Ints {
        values: Arc::new(vec![value]),
        bounds: Bounds::from_value(value.into()),
    })))
}

fn values(column: &Column) -> Vec<Option<i128>> {
    let value = |row: usize| match &column.data {
        ColumnData::Ints { values, .. } => i128::from(values[row]),
        ColumnData::WideInts(values) => values[row],
        ColumnData::Bools(bits) => i128::from(bits.get(row)),
        other => panic!("{other:?}"),
    };
    (0..column.rows()).map(|row| column.is_valid(row).then(|| value(row))).collect()
}

fn arithmetic(operation: ArithmeticOperation, factors: (i64, i64), limits: Bounds) -> Expression {
    Expression::Arithmetic { operation, left: column(0), right: column(1), factors, result_range: limits }
}

#[test]
fn numbers_that_need_128_bits_get_them() {
    let rows = batch(vec![ints(&[Some(i64::MAX), Some(3), None]), ints(&[Some(i64::MAX), Some(-4), Some(1)])]);
    let limits = Bounds { min: -(10_i128.pow(38) - 1), max: 10_i128.pow(38) - 1 };
    let product = arithmetic(ArithmeticOperation::Multiply, (1, 1), limits)
        .evaluate(&rows, &mut ExpressionState::default())
        .unwrap();
    assert_eq!(values(&product), [Some(i128::from(i64::MAX).pow(2)), Some(-12), None]);
    let sum = arithmetic(ArithmeticOperation::Subtract, (100, 1), limits)
        .evaluate(&rows, &mut ExpressionState::default())
        .unwrap();
    assert_eq!(values(&sum), [Some(i128::from(i64::MAX) * 99), Some(304), None]);
}

#[test]
fn a_value_out_of_range_fails_unless_its_row_is_null() {
    let limits = Bounds { min: i32::MIN.into(), max: i32::MAX.into() };
    let most = i64::from(i32::MAX);
    let sum = arithmetic(ArithmeticOperation::Add, (1, 1), limits);
    let fails = batch(vec![ints(&[Some(most)]), ints(&[Some(1)])]);
    assert!(matches!(sum.evaluate(&fails, &mut ExpressionState::default()), Err(Error::UncomputableValue(_))));
    let passes = batch(vec![ints(&[Some(most), Some(1)]), ints(&[None, Some(1)])]);
    assert_eq!(values(&sum.evaluate(&passes, &mut ExpressionState::default()).unwrap()), [None, Some(2)]);
}

#[test]
fn a_condition_of_case_guards_its_branch() {
    let limits = Bounds { min: 0, max: 10 };
    let guarded = Expression::Arithmetic {
        operation: ArithmeticOperation::Multiply,
        left: column(0),
        right: constant(5),
        factors: (1, 1),
        result_range: limits,
    };
    let small =
        Expression::Compare { comparison: Comparison::Less, left: column(0), right: constant(3), factors: (1, 1) };
    let case = Expression::Case { branches: vec![(small, guarded)], otherwise: None };
    let rows = batch(vec![ints(&[Some(2), Some(9), None])]);
    assert_eq!(values(&case.evaluate(&rows, &mut ExpressionState::default()).unwrap()), [Some(10), None, None]);
}

#[test]
fn truth_has_three_values() {
    let truth = |value: Option<bool>| {
        let bits = Arc::new(Bitmap::filled(1, value == Some(true)));
        Expression::Constant(Column {
            data: ColumnData::Bools(bits),
            validity: Some(Arc::new(Bitmap::filled(1, value.is_some()))),
        })
    };
    let all = [Some(true), Some(false), None];
    let rows = batch(vec![ints(&[Some(1)])]);
    let known =
        |expression: Expression| values(&expression.evaluate(&rows, &mut ExpressionState::default()).unwrap())[0];
    for x in all {
        for y in all {
            let and = match (x, y) {
                (Some(false), _) | (_, Some(false)) => Some(0),
                (Some(true), Some(true)) => Some(1),
                _ => None,
            };
            let or = match (x, y) {
                (Some(true), _) | (_, Some(true)) => Some(1),
                (Some(false), Some(false)) => Some(0),
                _ => None,
            };
            assert_eq!(known(Expression::And(vec![truth(x), truth(y)])), and, "{x:?} AND {y:?}");
            assert_eq!(known(Expression::Or(vec![truth(x), truth(y)])), or, "{x:?} OR {y:?}");
        }
        assert_eq!(known(Expression::Not(Box::new(truth(x)))), x.map(|x| i128::from(!x)));
    }
}

/// Arrow function that returns a string's length, -1 for NULL, and fails for the string "fails".
#[derive(Debug)]
struct Length;

impl ArrowFunction for Length {
    fn id(&self) -> u64 {
        7
    }

    fn argument_types(&self) -> &[DataType] {
        &[DataType::Utf8View]
    }

    fn call(&self, arguments: &[ArrayRef], _: usize) -> Result<ArrayRef> {
        let strings = arguments[0].as_string_view();
        let length = |string: Option<&str>| match string {
            Some("fails") => Err(Error::UncomputableValue("as it says")),
            string => Ok(string.map_or(-1, |string| i64::try_from(string.len()).unwrap())),
        };
        Ok(Arc::new(strings.iter().map(length).collect::<Result<Int64Array>>()?))
    }

    fn is_immutable(&self) -> bool {
        true
    }

    fn sql(&self) -> String {
        "length".to_owned()
    }
}

#[test]
fn a_string_that_no_row_has_cannot_make_a_function_fail() {
    let strings = Dictionary::new(StringViewArray::from_iter_values(["fails", "four", "to"]));
    let data = ColumnData::Dictionary { indices: Arc::new(vec![1, 2, 0, 1]), dictionary: Arc::clone(&strings) };
    let validity = Some(Arc::new(Bitmap::from_fn(4, |row| row != 2)));
    let call = Expression::ArrowCall { function: Arc::new(Length), arguments: vec![Expression::Column(0)] };
    let mut memory = ExpressionState::default();
    let found = call.evaluate(&batch(vec![Column { data, validity }]), &mut memory).unwrap();
    assert_eq!(values(&found), [Some(4), Some(2), Some(-1), Some(4)]);
    let used = ColumnData::Dictionary { indices: Arc::new(vec![0]), dictionary: strings };
    assert!(call.evaluate(&batch(vec![Column::new(used)]), &mut memory).is_err());
}

#[test]
fn float_overflow_matches_postgresql() {
    let floats = |values: &[f64]| Column::new(ColumnData::Floats(Arc::new(values.to_vec())));
    let compute = |operation, x: f64, y: f64| {
        let expression = Expression::FloatArithmetic { operation, left: column(0), right: column(1) };
        expression.evaluate(&batch(vec![floats(&[1.0, x]), floats(&[1.0, y])]), &mut ExpressionState::default()).map(
            |column| {
                let ColumnData::Floats(values) = &column.data else { panic!("floats") };
                values[1]
            },
        )
    };
    let infinite = f64::INFINITY;
    for (operation, x, y, expected) in [
        (ArithmeticOperation::Multiply, 0.0, 7.0, 0.0),
        (ArithmeticOperation::Multiply, infinite, -2.0, -infinite),
        (ArithmeticOperation::Multiply, 5.0, f64::MIN_POSITIVE, 5.0 * f64::MIN_POSITIVE),
        (ArithmeticOperation::Add, infinite, 1.0, infinite),
        (ArithmeticOperation::Subtract, 1.0, 1.0, 0.0),
    ] {
        assert_eq!(compute(operation, x, y).unwrap(), expected, "{operation:?} of {x} and {y}");
    }
    assert!(
        compute(ArithmeticOperation::Multiply, infinite, 0.0).unwrap().is_nan()
            && compute(ArithmeticOperation::Add, infinite, -infinite).unwrap().is_nan()
    );
    for (operation, x, y) in [
        (ArithmeticOperation::Multiply, 1e200, 1e200),
        (ArithmeticOperation::Multiply, 1e-200, 1e-200),
        (ArithmeticOperation::Add, f64::MAX, f64::MAX),
        (ArithmeticOperation::Subtract, f64::MIN, f64::MAX),
    ] {
        assert!(matches!(compute(operation, x, y), Err(Error::UncomputableValue(_))), "{operation:?} of {x} and {y}");
    }
    let nulls = Column { validity: Some(Arc::new(Bitmap::from_fn(1, |_| false))), ..floats(&[1e300]) };
    let square =
        Expression::FloatArithmetic { operation: ArithmeticOperation::Multiply, left: column(0), right: column(0) };
    assert!(
        !square.evaluate(&batch(vec![nulls]), &mut ExpressionState::default()).unwrap().is_valid(0),
        "NULL is no overflow"
    );
}

#[test]
fn calls_are_counted_once_for_each_string_and_timed() {
    let strings = Dictionary::new(StringViewArray::from_iter_values(["four", "to"]));
    let codes = |codes: Vec<u32>| {
        let data = ColumnData::Dictionary { indices: Arc::new(codes), dictionary: Arc::clone(&strings) };
        batch(vec![Column::new(data)])
    };
    let call = Expression::ArrowCall { function: Arc::new(Length), arguments: vec![Expression::Column(0)] };
    let clock = AtomicU64::new(0);
    let mut memory = ExpressionState::with_clock(Some(Arc::new(move || clock.fetch_add(10, Ordering::Relaxed))));
    for rows in [codes(vec![1, 0, 1, 1, 0]), codes(vec![0; 3])] {
        call.evaluate(&rows, &mut memory).unwrap();
    }
    assert_eq!(memory.call_costs(), CallCosts { rows: 3, busy_ns: 20 }, "two strings and NULL");
    let texts = ColumnData::Texts(StringViewArray::from_iter_values(["a", "b", "c", "d"]));
    call.evaluate(&batch(vec![Column::new(texts)]), &mut memory).unwrap();
    assert_eq!(memory.call_costs(), CallCosts { rows: 7, busy_ns: 30 });
}

#[test]
fn sum_out_of_range_is_an_error() {
    let most = 10_i128.pow(38) - 1;
    let sums = Column::new(ColumnData::WideInts(Arc::new(vec![most + 1, most])));
    let counts = || ints(&[Some(1), Some(2)]);
    let sum = |limits| Expression::FinalizeSum { sum: column(0), count: column(1), limits };
    let given = |limits, rows: std::ops::Range<usize>| {
        let batch = batch(vec![sums.clone(), counts()]).slice(rows.start, rows.end);
        sum(limits)
            .evaluate(&batch, &mut ExpressionState::default())
            .map(|sums| values(&sums))
            .map_err(|error| error.to_string())
    };
    let digits = Some(Bounds { min: -most, max: most });
    assert_eq!(given(digits, 0..2), Err("numeric field overflow".to_owned()));
    assert_eq!(given(digits, 1..2), Ok(vec![Some(most)]));
    assert_eq!(given(None, 0..2), Ok(vec![Some(most + 1), Some(most)]), "an intermediate sum is not checked");
    assert_eq!(given(Some(Bounds::I64), 1..2), Err("bigint out of range".to_owned()));
}

#[test]
fn fallback_computes_values_that_loops_cannot() {
    let half = || Box::new(arithmetic(ArithmeticOperation::Multiply, (1, 1), Bounds::from_value(0)));
    let fallback: Arc<dyn Fallback> = Arc::new(Expression::Column(1));
    let expression = Expression::Fallible { value: half(), fallback };
    let batch = batch(vec![ints(&[Some(2)]), ints(&[Some(3)])]);
    let mut memory = ExpressionState::default();
    assert!(half().evaluate(&batch, &mut memory).is_err(), "6 is beyond 0");
    assert_eq!(values(&expression.evaluate(&batch, &mut memory).expect("the fallback is a column")), [Some(3)]);
    let refused = |value: Expression| Expression::Fallible { value: half(), fallback: Arc::new(value) };
    let error = refused(*half()).evaluate(&batch, &mut memory).expect_err("neither computes it");
    assert!(matches!(error, Error::UncomputableValue(_)), "the error of the fallback: {error}");
}
