use super::*;
use crate::object::{golden, yaml};

fn install() -> Install {
    Install { namespace: "warehouses".to_owned(), image: "registry.example/kiln:1".to_owned(), instance: None }
}

#[test]
fn what_is_installed_is_that_of_the_golden_file() {
    let objects = install().objects();
    let without_definitions: Vec<Value> =
        objects.into_iter().filter(|object| object["kind"] != "CustomResourceDefinition").collect();
    golden("install.yaml", &yaml(&without_definitions));
}

#[test]
fn the_operator_reads_no_secrets_and_gives_no_rights() {
    let role = install().role();
    let rules = role.rules.expect("there are rules");
    assert!(rules.iter().all(|rule| !rule.verbs.contains(&"*".to_owned())));
    let resources: Vec<String> = rules.into_iter().filter_map(|rule| rule.resources).flatten().collect();
    for no in ["*", "secrets", "pods/exec", "roles", "rolebindings", "persistentvolumeclaims"] {
        assert!(!resources.iter().any(|resource| resource == no), "{no}");
    }
}
