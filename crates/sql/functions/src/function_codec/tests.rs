//! Tests that each function is restored from its serializable form, or has none.

use std::sync::Arc;

use datafusion::logical_expr::{ReversedUDWF, Volatility};
use types::{SessionZone, SqlType};

use super::INTERNAL_DEFINITIONS;
use super::{SerializedAggregate, SerializedDefinition, SerializedScalar, SerializedWindow, SessionFacts};
use crate::cast::{CastFunction, CastKind};
use crate::definition::Body;
use crate::lazy_case::{LazyFunction, LazyPurpose, LazyRole};
use crate::scalar_udf::ResolvedFunction;
use crate::{SCALAR_DEFINITIONS, aggregate, lag_lead_nth_value, window};

fn facts() -> SessionFacts {
    let zone = SessionZone::parse("Europe/Berlin").unwrap();
    SessionFacts { zone, date_order: types::text::DateOrder::DayMonthYear, transaction_us: 7, statement_us: 8 }
}

#[test]
fn every_function_with_a_body_comes_back() {
    let session = facts().evaluation_context();
    let mut count = 0;
    for definition in SCALAR_DEFINITIONS.values().copied().chain(INTERNAL_DEFINITIONS.iter().copied()) {
        for overload in 0..definition.overloads.len() {
            let Some(takes) = definition.sample_types(overload) else { continue };
            let Ok(function) = ResolvedFunction::udf(definition, overload, takes.clone(), &session) else { continue };
            let has_body = matches!(definition.overloads[overload].body, Body::Rows(_));
            let form = SerializedScalar::encode(&function);
            let names = definition.overloads[overload].compute_result_type(&takes).unwrap().is_reg_type();
            if names || definition.volatility == Volatility::Volatile || !has_body {
                assert_eq!(form, None, "{}", definition.name);
                continue;
            }
            let Some(form) = form else { panic!("{} of {takes:?} has no form", definition.name) };
            assert_eq!(form.decode().as_deref(), Some(function.as_ref()), "{}", definition.name);
            count += 1;
        }
    }
    assert!(200 < count, "{count}");
}

#[test]
fn what_lasts_is_the_same_in_the_next_statement() {
    let statement = |zone: &str, us: i64| {
        let zone = SessionZone::parse(zone).unwrap();
        SessionFacts { zone, transaction_us: us, statement_us: us, ..facts() }.evaluation_context()
    };
    let (first, later, elsewhere) = (statement("UTC", 1), statement("UTC", 2), statement("Asia/Tokyo", 1));
    let lasting = |name: &str, takes: &[SqlType], session: &_| {
        let definition = SCALAR_DEFINITIONS[name];
        let overload = (0..definition.overloads.len()).find(|overload| definition.takes_exactly(*overload, takes));
        let function = ResolvedFunction::udf(definition, overload.unwrap(), takes.to_vec(), session).unwrap();
        SerializedScalar::encode_if_cacheable(&function)
    };
    let truncated = [SqlType::Text, SqlType::TimestampTz];
    let form = lasting("date_trunc", &truncated, &first);
    assert!(form.is_some());
    assert_eq!(form, lasting("date_trunc", &truncated, &later));
    assert_ne!(form, lasting("date_trunc", &truncated, &elsewhere));
    assert!(lasting("age", &[SqlType::Timestamp, SqlType::Timestamp], &first).is_some());
    for (name, takes) in [("now", &[][..]), ("random", &[]), ("age", &[SqlType::Timestamp])] {
        assert_eq!(lasting(name, takes, &first), None, "{name}");
    }
    let cast = |from, to, session| {
        SerializedScalar::encode_if_cacheable(&CastFunction::udf(&from, &to, CastKind::Explicit, session))
    };
    assert_eq!(cast(SqlType::Text, SqlType::Timestamp, &first), None, "a text may be 'now'");
    assert!(cast(SqlType::Text, SqlType::Int4, &first).is_some());
    let to_date = |session| cast(SqlType::TimestampTz, SqlType::Date, session);
    assert!(to_date(&first) == to_date(&later) && to_date(&first) != to_date(&elsewhere));
}

#[test]
fn casts_travel_unless_they_name_objects() {
    let session = facts().evaluation_context();
    let cast = |to: SqlType| CastFunction::udf(&SqlType::Text, &to, CastKind::Explicit, &session);
    let form = SerializedScalar::encode(&cast(SqlType::TimestampTz)).unwrap();
    assert_eq!(form.decode().unwrap(), cast(SqlType::TimestampTz));
    assert_eq!(SerializedScalar::encode(&cast(SqlType::Regclass)), None);
}

#[test]
fn functions_of_a_lazy_case_travel() {
    for role in [LazyRole::Branch, LazyRole::Condition(LazyPurpose::Guard), LazyRole::Condition(LazyPurpose::Branches)]
    {
        let function = LazyFunction::udf(role);
        let form = SerializedScalar::encode(&function).unwrap();
        assert_eq!(form.decode().as_deref(), Some(&function));
        assert_eq!(SerializedScalar::encode_if_cacheable(&function), Some(form));
    }
}

#[test]
fn aggregates_and_window_functions_come_back() {
    for name in ["sum", "avg", "count", "min", "stddev", "string_agg", "array_agg", "percentile_cont", "bool_and"] {
        let function = aggregate(name).unwrap();
        let form = SerializedAggregate::encode(&function).unwrap_or_else(|| panic!("{name} has no form"));
        assert_eq!(form.decode(), Some(function));
    }
    let varying = crate::string_agg_varying();
    assert_eq!(SerializedAggregate::encode(&varying).unwrap().decode(), Some(varying));
    let filtered = crate::with_filter_argument(aggregate("json_agg").unwrap());
    assert_eq!(SerializedAggregate::encode(&filtered).unwrap().decode(), Some(filtered));
    for name in ["row_number", "rank", "lag", "ntile", "first_value", "nth_value"] {
        let function = window(name).unwrap();
        let turned = match function.reverse_expr() {
            ReversedUDWF::Reversed(turned) => turned,
            _ => Arc::clone(&function),
        };
        for function in [function, turned] {
            let form = SerializedWindow::encode(&function).unwrap_or_else(|| panic!("{name} has no form"));
            assert_eq!(form.decode(), Some(function));
        }
    }
    assert_ne!(window("lag"), lag_lead_nth_value::reverse(&window("lag").unwrap()));
}

#[test]
fn forms_that_no_function_has_are_refused() {
    let definition = SerializedDefinition::Named("upper".to_owned());
    let resolved = |overload, takes| SerializedScalar::Resolved {
        definition: definition.clone(),
        overload,
        takes,
        facts: facts(),
    };
    assert!(resolved(0, vec![SqlType::Text]).decode().is_some());
    assert_eq!(resolved(99, vec![SqlType::Text]).decode(), None);
    assert_eq!(resolved(0, Vec::new()).decode(), None);
    assert_eq!(resolved(0, vec![SqlType::Int4]).decode(), None);
    assert_eq!(SerializedScalar::BuiltIn("nextval".to_owned()).decode(), None);
    assert_eq!(Arc::new(SerializedAggregate::Named("nothing".to_owned())).decode(), None);
}
