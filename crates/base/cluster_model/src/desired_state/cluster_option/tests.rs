use types::Oid;

use super::{ClusterOption, OptionForm, OptionValue};
use crate::desired_state::{CLUSTER_OPTIONS, ClusterOptions, ClusterSpec};

/// Returns the values of a form at its limits.
fn limits(form: OptionForm) -> Vec<OptionValue> {
    let numbers = |min, max| vec![OptionValue::Number(min), OptionValue::Number(max)];
    match form {
        OptionForm::Number { min, max } => numbers(min, max),
        OptionForm::NumberOrNull { min, max } => [numbers(min, max), vec![OptionValue::Null]].concat(),
        OptionForm::Boolean => vec![OptionValue::Boolean(false), OptionValue::Boolean(true)],
        OptionForm::Hardware | OptionForm::Profile => vec![OptionValue::Name("n".to_owned())],
    }
}

fn default_spec() -> ClusterSpec {
    ClusterSpec::with_defaults("c", Oid(10))
}

#[test]
fn the_fields_of_every_option_hold_all_values_of_its_form() {
    for option in CLUSTER_OPTIONS {
        for value in limits(option.form) {
            let mut options = ClusterOptions::default();
            assert_eq!((option.assigned)(&options), None, "{}", option.name);
            assert!(options.assign(option, value.clone()), "{} is named for the first time", option.name);
            assert!(!options.assign(option, value.clone()), "{} is named again", option.name);
            assert_eq!((option.assigned)(&options).as_ref(), Some(&value), "{}", option.name);
            let mut spec = default_spec();
            (option.set)(&mut spec, value.clone());
            assert_eq!((option.get)(&spec), value, "{}", option.name);
        }
    }
}

#[test]
fn names_are_distinct_and_defaults_are_within_limits() {
    let spec = default_spec();
    for (position, option) in CLUSTER_OPTIONS.iter().enumerate() {
        assert_eq!(option.sql_name, option.name.to_uppercase());
        assert!(CLUSTER_OPTIONS[..position].iter().all(|other| other.name != option.name), "{}", option.name);
        assert!(std::ptr::eq(option, ClusterOption::named(option.name).expect("an option is found by its name")));
        option.check(&(option.get)(&spec)).expect("a default is within its limits");
    }
    assert!(ClusterOption::named("NODE_COUNT").is_none(), "names are in lower case");
}
