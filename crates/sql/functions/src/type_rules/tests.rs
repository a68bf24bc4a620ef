use SqlType as T;

use super::*;

const N10_2: T = T::Numeric { precision: 10, scale: 2 };

fn numeric(precision: u8, scale: u8) -> T {
    T::Numeric { precision, scale }
}

fn array(element: T) -> T {
    T::Array(Box::new(element))
}

#[test]
fn an_untyped_operand_takes_the_type_without_its_modifier() {
    let parameters = [
        (N10_2, T::BARE_NUMERIC),
        (T::Varchar(Some(3)), T::Varchar(None)),
        (T::Char(Some(3)), T::Char(None)),
        (array(N10_2), array(T::BARE_NUMERIC)),
        (array(T::Varchar(Some(3))), array(T::Varchar(None))),
        (T::Int4, T::Int4),
        (T::Text, T::Text),
        (T::Timestamp, T::Timestamp),
    ];
    for (beside, taken) in parameters {
        assert_eq!(operand_type_beside(&beside, Operand::Parameter), Ok(taken), "$1 beside {beside}");
    }
    let literals = [
        (N10_2, "5.125", numeric(4, 3)),
        (N10_2, "5", numeric(1, 0)),
        (N10_2, "-0.000001", numeric(6, 6)),
        (N10_2, "5.10", numeric(3, 2)),
        (N10_2, "12345678901234567890", numeric(20, 0)),
        (array(N10_2), "{5.125,NULL,77}", numeric(5, 3)),
        (T::Varchar(Some(3)), "longer", T::Varchar(None)),
        (T::Char(Some(3)), "longer", T::Char(None)),
        (T::Int4, "5.5", T::Int4),
    ];
    for (beside, text, taken) in literals {
        let taken = if matches!(beside, T::Array(_)) { array(taken) } else { taken };
        assert_eq!(operand_type_beside(&beside, Operand::Literal(text)), Ok(taken), "'{text}' beside {beside}");
    }
    let typed = numeric(5, 1);
    assert_eq!(operand_type_beside(&N10_2, Operand::Typed(&typed)), Ok(typed.clone()));
    assert_eq!(
        operand_type_beside(&N10_2, Operand::Literal("x")).unwrap_err().condition,
        Condition::InvalidTextRepresentation
    );
}

#[test]
fn a_common_type_has_a_modifier_only_where_all_have_it() {
    let (char2, char3) = (T::Char(Some(2)), T::Char(Some(3)));
    let (short, long) = (T::Varchar(Some(3)), T::Varchar(Some(9)));
    let cases: [(&[Operand<'_>], T); 14] = [
        (&[Operand::Typed(&N10_2), Operand::Typed(&N10_2)], N10_2),
        (&[Operand::Typed(&N10_2), Operand::Literal("1.005")], numeric(11, 3)),
        (&[Operand::Literal("1.005"), Operand::Typed(&N10_2)], numeric(11, 3)),
        (&[Operand::Typed(&N10_2), Operand::Literal("1")], N10_2),
        (&[Operand::Typed(&N10_2), Operand::Null], N10_2),
        (&[Operand::Typed(&short), Operand::Typed(&short)], short.clone()),
        (&[Operand::Typed(&short), Operand::Typed(&long)], T::Varchar(None)),
        (&[Operand::Typed(&short), Operand::Literal("unknown")], T::Varchar(None)),
        (&[Operand::Typed(&short), Operand::Parameter], T::Varchar(None)),
        (&[Operand::Typed(&char3), Operand::Typed(&char3)], char3.clone()),
        (&[Operand::Typed(&char3), Operand::Typed(&char2)], T::Char(None)),
        (&[Operand::Typed(&char3), Operand::Literal("unknown")], T::Char(None)),
        (&[Operand::Literal("a"), Operand::Literal("b")], T::Text),
        (&[Operand::Typed(&T::Int4), Operand::Typed(&T::Float8), Operand::Literal("1.5")], T::Float8),
    ];
    for (operands, common) in cases {
        assert_eq!(common_type(operands, "CASE"), Ok(common), "{operands:?}");
    }
    let error = common_type(&[Operand::Typed(&T::Int4), Operand::Typed(&T::Bool)], "CASE").unwrap_err();
    assert_eq!(error.message, "CASE types integer and boolean cannot be matched");
}
