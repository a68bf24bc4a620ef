use NumericPosition::{Above, Below, Between, EqualTo};
use SimplifiedComparison::{Always, Comparison, Constant, Never};

use super::*;

const OPERATORS: [Operator; 8] = [
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::IsDistinctFrom,
    Operator::IsNotDistinctFrom,
];

/// Returns whether a value fulfils an outcome; numbers are in tenths, so that some lie between two values.
fn holds(outcome: &SimplifiedComparison, value: i128) -> bool {
    match outcome {
        Comparison(operator, number) => compare(*operator, value, *number),
        Never => false,
        Always => true,
        Constant(known) => *known,
    }
}

fn compare(operator: Operator, value: i128, number: i128) -> bool {
    match operator {
        Operator::Eq | Operator::IsNotDistinctFrom => value == number,
        Operator::NotEq | Operator::IsDistinctFrom => value != number,
        Operator::Lt => value < number,
        Operator::LtEq => value <= number,
        Operator::Gt => value > number,
        Operator::GtEq => value >= number,
        other => panic!("{other} is no comparison"),
    }
}

#[test]
fn every_comparison_says_of_every_value_what_the_number_itself_says() {
    let range = NumberRange { least: -3, greatest: 3, scale: 0 };
    // In tenths: the values are -30 to 30, the numbers lie anywhere.
    for tenths in -50..=50_i128 {
        let floor = tenths.div_euclid(10);
        let position = match tenths.rem_euclid(10) {
            _ if floor < range.least => Below,
            _ if tenths > range.greatest * 10 => Above,
            0 => EqualTo(floor),
            _ => Between(floor),
        };
        for operator in OPERATORS {
            let outcome = simplify(operator, position, &range).expect("a comparison");
            for value in range.least..=range.greatest {
                let said = holds(&outcome, value);
                assert_eq!(said, compare(operator, value * 10, tenths), "{value} {operator} {tenths}/10: {outcome:?}");
            }
        }
    }
}

#[test]
fn what_is_no_comparison_has_no_outcome() {
    assert_eq!(simplify(Operator::Plus, EqualTo(1), &NumberRange { least: -3, greatest: 3, scale: 0 }), None);
    assert_eq!(simplify(Operator::LikeMatch, Above, &NumberRange { least: -3, greatest: 3, scale: 0 }), None);
}
