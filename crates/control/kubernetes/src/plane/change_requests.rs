//! API requests that carry out a change of the desired clusters. Pure.

use std::collections::BTreeMap;

use cluster_model::{Author, ClusterId, ClusterState, DesiredState};
use serde_json::Value;

use super::cluster_conversion::{merge_patch, new_object, object_name};
use super::runs_in_pods;
use crate::resources::ComputeCluster;

/// Request to the API server.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ApiRequest {
    Create(Box<ComputeCluster>),
    Patch { name: String, patch: Value },
    Delete { name: String },
}

/// Returns the requests that turn `before` into `after`, for clusters in pods. `names` are the names of the existing
/// ComputeClusters.
pub(super) fn plan_requests(
    before: &DesiredState,
    after: &DesiredState,
    names: &BTreeMap<ClusterId, String>,
    instance: &str,
    author: &Author,
) -> Vec<ApiRequest> {
    let kept = |state: &DesiredState| -> BTreeMap<ClusterId, ClusterState> {
        let kept = state.clusters().filter(|cluster| runs_in_pods(&cluster.spec));
        kept.map(|cluster| (cluster.id, cluster.clone())).collect()
    };
    let (before, after) = (kept(before), kept(after));
    let name = |state: &ClusterState| {
        let named = names.get(&state.id).cloned();
        named.unwrap_or_else(|| object_name(instance, state.id, &state.spec.name))
    };
    let mut steps = Vec::new();
    for gone in before.values().filter(|state| !after.contains_key(&state.id)) {
        steps.push(ApiRequest::Delete { name: name(gone) });
    }
    for state in after.values() {
        match before.get(&state.id) {
            None => steps.push(ApiRequest::Create(Box::new(new_object(state, instance, author)))),
            Some(before) => {
                let patch = merge_patch(before, state, instance, author);
                steps.extend(patch.map(|patch| ApiRequest::Patch { name: name(state), patch }));
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use cluster_model::desired_state::{Grantee, Privilege};
    use cluster_model::{Actor, Change, ClusterOptions, HardwareInstance, IfExists, Inventory, RoleRef, WlmProfile};
    use kube::ResourceExt;
    use serde_json::json;
    use types::Oid;

    use super::*;
    use crate::plane::cluster_conversion::to_cluster;

    fn author() -> Author {
        let role = RoleRef { oid: Oid(10), name: "ana".to_owned() };
        Author::Role(Actor { role, superuser: true, create_cluster: true, create_role: true })
    }

    fn inventory() -> Inventory {
        let small = HardwareInstance::pod("small", String::new());
        let wlm = WlmProfile { name: "default".to_owned(), max_running: 1 };
        Inventory::new([small, HardwareInstance::embedded()], [wlm])
    }

    /// Returns the state after a change, and the requests for it.
    fn made(before: &DesiredState, change: &Change) -> (DesiredState, Vec<ApiRequest>) {
        let after = before.change(&inventory(), change, &author(), 5).expect("it may").0;
        let steps = plan_requests(before, &after, &BTreeMap::new(), "dw", &author());
        (after, steps)
    }

    fn altered(options: ClusterOptions) -> Change {
        Change::Alter { name: "Étl 2".to_owned(), options }
    }

    #[test]
    fn a_statement_asks_for_what_it_says_and_for_nothing_else() {
        let create = Change::Create {
            name: "Étl 2".to_owned(),
            options: ClusterOptions {
                node_count: Some(3),
                auto_suspend: Some(Some(60)),
                max_cache_pct: Some(Some(40)),
                ..ClusterOptions::default()
            },
            if_exists: IfExists::Refuse,
        };
        let (state, steps) = made(&DesiredState::initial(Oid(10), 0), &create);
        let [ApiRequest::Create(object)] = &steps[..] else { panic!("one is made: {steps:?}") };
        let name = object.name_any();
        assert!(name.starts_with("tl-2-") && name.len() == 13, "{name}");
        assert_eq!(object.annotations()["kiln.dev/modified-by"], "ana");
        let back = to_cluster(object, Oid(1));
        let cluster = state.cluster_named("Étl 2").expect("it is there");
        assert_eq!((back.id, &back.spec, back.suspended), (Some(cluster.id), &cluster.spec, false));

        let options = ClusterOptions { auto_suspend: Some(None), ..ClusterOptions::default() };
        let (_, steps) = made(&state, &altered(options));
        let [ApiRequest::Patch { name: same, patch }] = &steps[..] else { panic!("one is changed: {steps:?}") };
        assert_eq!((same, &patch["spec"]), (&name, &json!({ "autoSuspend": null })));
        let (asleep, steps) = made(&state, &Change::Suspend { name: "Étl 2".to_owned() });
        let [ApiRequest::Patch { patch, .. }] = &steps[..] else { panic!("one is changed: {steps:?}") };
        assert_eq!(patch["spec"], json!({ "suspended": true }));
        assert!(asleep.cluster_named("Étl 2").expect("it is there").suspended);
        let (_, steps) = made(&state, &Change::Drop { name: "Étl 2".to_owned(), if_exists: false });
        assert_eq!(steps, [ApiRequest::Delete { name }]);
    }

    #[test]
    fn a_renamed_cluster_keeps_its_object_and_who_may_use_it_is_said_there() {
        let create =
            Change::Create { name: "a".to_owned(), options: ClusterOptions::default(), if_exists: IfExists::Refuse };
        let state = made(&DesiredState::initial(Oid(10), 0), &create).0;
        let id = state.cluster_named("a").expect("it is there").id;
        let grant = Change::Grant {
            clusters: vec!["a".to_owned()],
            privileges: vec![Privilege::Usage],
            to: vec![Grantee::Public],
        };
        let (granted, steps) = made(&state, &grant);
        let [ApiRequest::Patch { patch, .. }] = &steps[..] else { panic!("one is changed: {steps:?}") };
        assert_eq!(patch["spec"], json!({}));
        assert_eq!(patch["metadata"]["annotations"]["kiln.dev/grants"], r#"[{"role":null,"privilege":"usage"}]"#);
        let rename = Change::Rename { name: "a".to_owned(), to: "b".to_owned() };
        let renamed = granted.change(&inventory(), &rename, &author(), 6).expect("it may").0;
        let names = BTreeMap::from([(id, "there".to_owned())]);
        let steps = plan_requests(&granted, &renamed, &names, "dw", &author());
        let [ApiRequest::Patch { name, patch }] = &steps[..] else { panic!("one is changed: {steps:?}") };
        assert_eq!((name.as_str(), &patch["spec"]), ("there", &json!({ "name": "b" })));
    }

    #[test]
    fn what_runs_in_the_instance_is_no_object() {
        let fresh = DesiredState::initial(Oid(10), 0);
        let alter = |hardware: &str| Change::Alter {
            name: "default".to_owned(),
            options: ClusterOptions { hardware_instance: Some(hardware.to_owned()), ..ClusterOptions::default() },
        };
        let options = ClusterOptions { auto_suspend: Some(Some(9)), ..ClusterOptions::default() };
        assert_eq!(made(&fresh, &Change::Alter { name: "default".to_owned(), options }).1, []);
        let (outside, steps) = made(&fresh, &alter("small"));
        assert!(matches!(&steps[..], [ApiRequest::Create(_)]), "{steps:?}");
        let (_, steps) = made(&outside, &alter("embedded"));
        assert!(matches!(&steps[..], [ApiRequest::Delete { .. }]), "{steps:?}");
    }

    #[test]
    fn names_of_objects_are_plain_and_short() {
        for name in ["x", "", "   ", "9 lives", "ÄÖÜ", &"long name ".repeat(9), "a--", "MiXed_Case"] {
            let object = object_name("dw", ClusterId(7), name);
            let is_plain = object.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-');
            assert!(
                is_plain && object.len() <= 40 && object.starts_with(|one: char| one.is_ascii_lowercase()),
                "{object}"
            );
        }
        assert_ne!(object_name("dw", ClusterId(7), "a"), object_name("dw", ClusterId(8), "a"));
        assert_ne!(object_name("dw", ClusterId(7), "a"), object_name("dx", ClusterId(7), "a"));
    }
}
