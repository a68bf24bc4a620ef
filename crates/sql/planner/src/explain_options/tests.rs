use std::sync::Arc;

use binder::{ExplainFormat, ExplainPlan, StatementPlan, WritePlan};
use syntax::{Statement, parse};
use types::Condition;

use super::plan_explain;

/// Plans EXPLAIN with these options, of an INSERT that writes nothing.
fn planned(options: &str) -> Result<ExplainPlan, types::SqlError> {
    let parsed = parse(&format!("EXPLAIN ({options}) SELECT 1"))?.remove(0);
    let Statement::Explain(statement) = parsed.statement else { panic!("{options}") };
    let table = Arc::new(catalog::Table {
        oid: types::Oid(1),
        schema: types::Oid(2),
        name: "t".to_owned(),
        owner: types::Oid(10),
        columns: Vec::new(),
        constraints: Vec::new(),
        distribution: catalog::Distribution::Random,
        order: catalog::TableOrder::None,
        comment: None,
        next_column: 1,
        storage: catalog::Storage::default(),
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache: types::CachePolicy::default(),
        external: None,
    });
    let inner = WritePlan {
        table,
        changes_before: Vec::new(),
        input: None,
        command_tag: "INSERT",
        notices: Vec::new(),
        returning: None,
        conflict: None,
    };
    plan_explain(&statement.options, StatementPlan::Write(inner))
}

#[test]
fn options_have_postgresqls_defaults() {
    let plain = planned("verbose false").unwrap();
    assert!(!plain.analyze && plain.costs && !plain.timing && !plain.summary);
    assert_eq!(plain.format, ExplainFormat::Text);
    let analyzed = planned("ANALYZE, TIMING off, COSTS 0, FORMAT json").unwrap();
    assert!(analyzed.analyze && !analyzed.timing && analyzed.summary && !analyzed.costs);
    assert_eq!(analyzed.format, ExplainFormat::Json);
}

#[test]
fn options_that_do_not_exist_or_do_not_fit_are_errors() {
    let cases = [
        ("nonsense", Condition::SyntaxError),
        ("analyze maybe", Condition::SyntaxError),
        ("timing", Condition::InvalidParameterValue),
        ("format html", Condition::InvalidParameterValue),
        ("format xml", Condition::FeatureNotSupported),
        ("analyze, buffers", Condition::FeatureNotSupported),
    ];
    for (options, condition) in cases {
        assert_eq!(planned(options).unwrap_err().condition, condition, "{options}");
    }
}
