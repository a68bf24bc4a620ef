//! Tests of what is declared of calls and casts, and of what conditions of a CASE establish.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::{Expr, col, lit};
use session_context::EvaluationContext;
use types::text::DateOrder;
use types::{SessionZone, SqlType};

use super::Fallibility::{self, BeyondDigits, ForSomeValues, Never, OnOverflow};
use super::{fallibility, surely_evaluated_parts};
use crate::cast::{CastFunction, CastKind};
use crate::scalar_udf::ResolvedFunction;
use crate::{SCALAR_DEFINITIONS, cast};

fn session() -> Arc<EvaluationContext> {
    Arc::new(EvaluationContext::without_context(SessionZone::parse("UTC").unwrap(), DateOrder::MonthDayYear, 0, 0))
}

/// Builds a call of the overload that takes these types.
fn call(name: &str, takes: &[SqlType], args: Vec<Expr>) -> Expr {
    let definition = SCALAR_DEFINITIONS[name];
    let overload = (0..definition.overloads.len()).find(|at| definition.takes_exactly(*at, takes));
    let overload = overload.unwrap_or_else(|| panic!("{name} has no overload of {takes:?}"));
    let function = ResolvedFunction::udf(definition, overload, takes.to_vec(), &session()).unwrap();
    Expr::ScalarFunction(ScalarFunction::new_udf(function, args))
}

fn of_call(name: &str, takes: &[SqlType], args: Vec<Expr>) -> Fallibility {
    fallibility(&call(name, takes, args)).unwrap()
}

fn of_cast(from: SqlType, to: SqlType, kind: CastKind) -> Fallibility {
    let function = CastFunction::udf(&from, &to, kind, &session());
    fallibility(&Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![col("x")]))).unwrap()
}

fn text(value: &str) -> Expr {
    lit(ScalarValue::Utf8View(Some(value.to_owned())))
}

fn numeric(precision: u8, scale: u8) -> SqlType {
    SqlType::Numeric { precision, scale }
}

#[test]
fn calls_fail_as_their_overloads_declare() {
    let (x, y) = (|| col("x"), || col("y"));
    let int4 = [SqlType::Int4, SqlType::Int4];
    assert_eq!(of_call("+", &int4, vec![x(), lit(11)]), OnOverflow);
    assert_eq!(of_call("/", &int4, vec![x(), y()]), ForSomeValues);
    assert_eq!(of_call("/", &int4, vec![x(), lit(0)]), ForSomeValues);
    assert_eq!(of_call("/", &int4, vec![x(), lit(7)]), Never);
    assert_eq!(of_call("/", &int4, vec![x(), lit(-1)]), OnOverflow);
    assert_eq!(of_call("%", &int4, vec![x(), lit(-1)]), Never);
    assert_eq!(of_call("+", &int4, vec![lit(i32::MAX), lit(1)]), ForSomeValues, "it would have been folded");
    assert_eq!(of_call("-", &[SqlType::Date, SqlType::Date], vec![x(), y()]), Never);
    assert_eq!(of_call("*", &[numeric(15, 2), numeric(15, 2)], vec![x(), y()]), Never);
    assert_eq!(of_call("*", &[numeric(38, 2), numeric(15, 2)], vec![x(), y()]), BeyondDigits);
    assert_eq!(of_call("+", &[numeric(37, 2), numeric(15, 2)], vec![x(), y()]), Never);
    assert_eq!(of_call("+", &[numeric(38, 2), numeric(15, 2)], vec![x(), y()]), BeyondDigits);
    assert_eq!(of_call("chr", &[SqlType::Int4], vec![x()]), ForSomeValues);
}

#[test]
fn literals_decide_where_they_alone_can_fail() {
    let (x, y) = (|| col("x"), || col("y"));
    let substring = [SqlType::Text, SqlType::Int4, SqlType::Int4];
    assert_eq!(of_call("substring", &substring, vec![x(), lit(1), lit(2)]), Never);
    assert_eq!(of_call("substring", &substring, vec![x(), lit(1), lit(-2)]), ForSomeValues);
    assert_eq!(of_call("substring", &substring, vec![x(), lit(1), y()]), ForSomeValues);
    let texts = [SqlType::Text, SqlType::Text];
    assert_eq!(of_call("~", &texts, vec![x(), text("^a+$")]), Never);
    assert_eq!(of_call("~", &texts, vec![x(), text("(")]), ForSomeValues);
    assert_eq!(of_call("~", &texts, vec![x(), y()]), ForSomeValues);
    assert_eq!(of_call("~~", &texts, vec![x(), text("a%")]), Never);
    assert_eq!(of_call("~~", &texts, vec![x(), text("a\\")]), ForSomeValues);
    assert_eq!(of_call("date_trunc", &[SqlType::Text, SqlType::Timestamp], vec![text("month"), x()]), Never);
    assert_eq!(of_call("date_trunc", &[SqlType::Text, SqlType::Timestamp], vec![text("moon"), x()]), ForSomeValues);
    assert_eq!(of_call("date_part", &[SqlType::Text, SqlType::Date], vec![text("year"), x()]), Never);
    assert_eq!(of_call("to_char", &[SqlType::Timestamp, SqlType::Text], vec![x(), text("YYYY-MM")]), Never);
    // Midnight has a Julian day, other times of day have none; a numeric holds not every float8.
    assert_eq!(of_call("extract_0", &[SqlType::Text, SqlType::Timestamp], vec![text("julian"), x()]), ForSomeValues);
    assert_eq!(of_call("to_char", &[SqlType::Float8, SqlType::Text], vec![x(), text("999")]), ForSomeValues);
    assert_eq!(
        of_call("split_part", &[SqlType::Text, SqlType::Text, SqlType::Int4], vec![x(), text("-"), lit(1)]),
        Never
    );
}

#[test]
fn casts_fail_by_their_types() {
    let explicit = |from, to| of_cast(from, to, CastKind::Explicit);
    assert_eq!(explicit(SqlType::Text, SqlType::Int4), ForSomeValues);
    assert_eq!(explicit(SqlType::Int4, SqlType::Int2), OnOverflow);
    assert_eq!(explicit(SqlType::Float8, SqlType::Int4), OnOverflow);
    assert_eq!(explicit(numeric(9, 0), SqlType::Int4), Never);
    assert_eq!(explicit(numeric(9, 2), numeric(7, 0)), OnOverflow, "9999999.99 is rounded to eight digits");
    assert_eq!(explicit(numeric(9, 2), numeric(8, 0)), Never);
    assert_eq!(explicit(SqlType::Int4, SqlType::Text), Never);
    assert_eq!(explicit(SqlType::Timestamp, SqlType::Date), Never);
    assert_eq!(explicit(SqlType::Text, SqlType::Varchar(Some(3))), Never);
    assert_eq!(of_cast(SqlType::Text, SqlType::Varchar(Some(3)), CastKind::Assignment), ForSomeValues);
    assert_eq!(explicit(SqlType::Json, SqlType::Jsonb), ForSomeValues);
}

#[test]
fn the_condition_of_a_branch_rules_out_a_zero_divisor() {
    let quotient = || call("/", &[SqlType::Int4, SqlType::Int4], vec![col("x"), col("y")]);
    let case = |when: Expr, then: Expr, otherwise: Option<Expr>| {
        let case = Case::new(None, vec![(Box::new(when), Box::new(then))], otherwise.map(Box::new));
        fallibility(&Expr::Case(case)).unwrap()
    };
    let null = || lit(ScalarValue::Int32(None));
    assert_eq!(case(col("y").gt(lit(0)), quotient(), None), Never);
    assert_eq!(case(lit(0).lt(col("y")).and(col("x").gt(lit(5))), quotient(), None), Never);
    assert_eq!(case(col("y").not_eq(lit(0)), quotient(), None), OnOverflow, "the least integer divided by -1");
    assert_eq!(case(col("y").gt(lit(-1)), quotient(), None), ForSomeValues);
    assert_eq!(case(col("x").gt(lit(0)), quotient(), None), ForSomeValues);
    assert_eq!(case(col("y").gt(lit(0)), lit(1), Some(quotient())), ForSomeValues);
    assert_eq!(case(col("y").eq(lit(0)), null(), Some(quotient())), OnOverflow);
    assert_eq!(case(quotient().gt(lit(1)), lit(1), None), ForSomeValues);
    let null_if_zero =
        Expr::Case(Case::new(None, vec![(Box::new(col("y").eq(lit(0))), Box::new(null()))], Some(Box::new(col("y")))));
    assert_eq!(of_call("/", &[SqlType::Int4, SqlType::Int4], vec![col("x"), null_if_zero]), OnOverflow);
}

#[test]
fn parts_of_a_first_operand_are_surely_evaluated() {
    let sum = || call("+", &[SqlType::Int4, SqlType::Int4], vec![col("x"), col("y")]);
    let condition = col("a").eq(lit(1)).and(sum().gt(lit(2)));
    assert!(!surely_evaluated_parts(&condition).unwrap().contains(&&sum()));
    let condition = sum().gt(lit(2)).and(col("a").eq(lit(1)));
    assert!(surely_evaluated_parts(&condition).unwrap().contains(&&sum()));
}

#[test]
fn a_typed_literal_that_cannot_be_cast_fails_when_it_is_evaluated() {
    let literal = cast::marked_literal(ScalarValue::Utf8View(Some("abc".to_owned())), &SqlType::Text);
    let lower =
        |from: &SqlType| cast::lower_cast(literal.clone(), from, &SqlType::Int4, CastKind::Explicit, &session());
    assert_eq!(fallibility(&lower(&SqlType::Text).unwrap()).unwrap(), ForSomeValues);
    assert!(lower(&SqlType::Unknown).is_err());
}
