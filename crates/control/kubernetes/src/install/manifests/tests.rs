use super::*;
use crate::desired_object::{assert_golden, to_yaml};

fn install() -> Installation {
    Installation { namespace: "warehouses".to_owned(), image: "registry.example/kiln:1".to_owned(), instance: None }
}

#[test]
fn what_is_installed_is_that_of_the_golden_file() {
    let objects = install().objects();
    let without_definitions: Vec<Value> =
        objects.into_iter().filter(|object| object["kind"] != "CustomResourceDefinition").collect();
    assert_golden("install.yaml", &to_yaml(&without_definitions));
}

fn allowed(role: Role) -> Vec<(String, Vec<String>)> {
    let rules = role.rules.expect("there are rules");
    let each = |rule: PolicyRule| {
        rule.resources.unwrap_or_default().into_iter().map(move |resource| (resource, rule.verbs.clone()))
    };
    rules.into_iter().flat_map(each).collect()
}

#[test]
fn nobody_comes_into_pods_or_gives_rights_that_were_not_installed() {
    for role in [install().role(), install().instance_role()] {
        for (resource, verbs) in allowed(role) {
            assert!(!["*", "pods/exec", "pods/ephemeralcontainers"].contains(&resource.as_str()), "{resource}");
            assert!(!verbs.iter().any(|verb| ["*", "escalate", "impersonate"].contains(&verb.as_str())), "{verbs:?}");
            if resource == "roles" {
                assert_eq!(verbs, ["bind"], "of the one that is named");
            }
        }
    }
    let reads = allowed(install().instance_role()).into_iter().any(|(resource, _)| resource == "secrets");
    assert!(!reads, "an instance has the secrets that it mounts and no others");
    let gives = allowed(install().instance_role()).into_iter().any(|(resource, _)| resource.contains("role"));
    assert!(!gives, "an instance gives nobody rights");
}
