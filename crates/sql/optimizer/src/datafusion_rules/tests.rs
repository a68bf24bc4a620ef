use std::collections::HashSet;

use datafusion::optimizer::Optimizer;

use super::RuleKind;

#[test]
fn every_rule_of_datafusion_has_a_kind() {
    let rules = Optimizer::new().rules;
    let mut kinds = HashSet::from([RuleKind::UnionNames, RuleKind::JoinOrder]);
    for rule in &rules {
        let kind = RuleKind::from_rule(rule.as_ref()).unwrap_or_else(|| {
            panic!("DataFusion has a new rule {}: add a kind, and decide in `rules` whether it runs", rule.name())
        });
        assert!(kinds.insert(kind), "DataFusion has the rule {} twice", rule.name());
        assert_eq!(kind.name(), rule.name());
    }
    let gone: Vec<_> = RuleKind::NAMES.iter().filter(|(kind, _)| !kinds.contains(kind)).collect();
    assert!(gone.is_empty(), "DataFusion has no rules of these names any more: {gone:?}");
}

#[test]
fn rules_with_kilns_own_are_known_too() {
    for rule in crate::rules(true) {
        assert!(RuleKind::from_rule(rule.as_ref()).is_some(), "{} has no kind", rule.name());
    }
}
