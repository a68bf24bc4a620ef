//! Installation: valid definitions, and an operator with the permissions for its work and no others.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::DynamicObject;
use kubernetes::resources::custom_resource_definitions;
use kubernetes::{Instance, OperatorError};
use serde_json::json;

use crate::plane::{Cluster, refusal};

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_structural() {
    let Some(cluster) = Cluster::with_kiln("install-definitions").await else { return };
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    for definition in custom_resource_definitions() {
        let name = definition.metadata.name.expect("definitions have names");
        let status = crds.get(&name).await.expect("it was applied").status.expect("it is served");
        for condition in status.conditions.unwrap_or_default() {
            let is_good = matches!(condition.type_.as_str(), "Established" | "NamesAccepted");
            assert_eq!(condition.status == "True", is_good, "{name}: {condition:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_printed_is_accepted() {
    let Some(cluster) = Cluster::with_kiln("install-manifests").await else { return };
    let deployment =
        cluster.manifests().into_iter().find(|object| object["kind"] == "Deployment").expect("it is there");
    let resource = kube::core::ApiResource::erase::<k8s_openapi::api::apps::v1::Deployment>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &resource);
    let strict = PatchParams { dry_run: true, ..PatchParams::apply("administrator") };
    api.patch("kiln-operator", &strict, &Patch::Apply(&deployment)).await.expect("the API server takes it");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_may_do_its_work_and_nothing_else() {
    let Some(cluster) = Cluster::with_kiln("install-rights").await else { return };
    let client = cluster.client_of("kiln-operator").await;
    let own = |namespace: &str| -> Api<Instance> { Api::namespaced(client.clone(), namespace) };
    own(&cluster.namespace).list(&ListParams::default()).await.expect("it sees the instances of its namespace");
    let is_forbidden = |message: String| assert!(message.contains("is forbidden"), "{message}");
    is_forbidden(refusal(own("default").list(&ListParams::default()).await));
    is_forbidden(refusal(own(&cluster.namespace).delete("dw", &DeleteParams::default()).await));
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    is_forbidden(refusal(secrets.list(&ListParams::default()).await));
    is_forbidden(refusal(Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await));
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &cluster.namespace);
    is_forbidden(refusal(maps.list(&ListParams::default()).await));
    let others: Api<Service> = Api::namespaced(client, "default");
    is_forbidden(refusal(others.list(&ListParams::default()).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_without_rights_says_so() {
    let Some(cluster) = Cluster::with_kiln("install-no-rights").await else { return };
    let bindings: Api<k8s_openapi::api::rbac::v1::RoleBinding> = cluster.all();
    bindings.delete("kiln-operator", &DeleteParams::default()).await.expect("it was installed");
    // The API server itself learns of the change by a watch, with a delay.
    let client = cluster.client_of("kiln-operator").await;
    let instances: Api<Instance> = Api::namespaced(client, &cluster.namespace);
    while instances.list(&ListParams::default()).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let ended = cluster.operator("a").await.ended().await;
    let Err(OperatorError::ListInstances { namespace, .. }) = ended else { panic!("it goes on: {ended:?}") };
    assert_eq!(namespace, cluster.namespace);
}

/// Others cannot change fields that the operator applied without force.
#[tokio::test(flavor = "multi_thread")]
async fn fields_belong_to_who_applied_them() {
    let Some(cluster) = Cluster::with_kiln("install-fields").await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({})).await.expect("it is an instance");
    cluster.until("dw", |service: Option<&Service>| service.is_some()).await;
    let services: Api<Service> = cluster.all();
    let said = |port: i32| {
        Patch::Apply(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": "dw" },
            "spec": { "type": "NodePort", "ports": [{ "port": port, "protocol": "TCP" }] },
        }))
    };
    let message = refusal(services.patch("dw", &PatchParams::apply("somebody"), &said(5_432)).await);
    assert!(message.contains("kiln-operator") && message.contains(".spec.type"), "{message}");
    operator.stop().await;
}
