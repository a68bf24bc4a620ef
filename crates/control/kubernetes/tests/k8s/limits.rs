//! Validation of Instances by the API server.

use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use kubernetes::Instance;
use kubernetes::resources::{ServiceType, VolumeRetention};
use serde_json::{Value, json};

use crate::plane::{Cluster, instance, refusal};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_said_has_its_usual_value() {
    let Some(cluster) = Cluster::with_kiln("limits-usual").await else { return };
    let made = cluster.create(json!({})).await.expect("it says all that it must");
    assert_eq!(made.spec.service_type, ServiceType::ClusterIP);
    assert_eq!(made.spec.volume.when_deleted, VolumeRetention::Retain);
    assert!(!made.spec.evictable);
    assert_eq!(made.spec.storage.url, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_out_of_limits_is_refused() {
    let Some(cluster) = Cluster::with_kiln("limits-create").await else { return };
    let resource = kube::core::ApiResource::erase::<Instance>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &resource);
    let wrong: [(Value, &str); 16] = [
        (json!({ "image": "" }), "spec.image"),
        (json!({ "image": null }), "spec.image"),
        (json!({ "storage": { "url": "http://bucket" } }), "spec.storage.url"),
        (json!({ "resources": { "cpu": "many", "memory": "1Gi" } }), "spec.resources.cpu"),
        (json!({ "resources": { "cpu": "1", "memory": "1" } }), "spec.resources.memory"),
        (json!({ "resources": { "cpu": "1" } }), "spec.resources.memory"),
        (json!({ "volume": { "size": "-1Gi" } }), "spec.volume.size"),
        (json!({ "volume": { "size": "1Gi", "whenDeleted": "Perhaps" } }), "spec.volume.whenDeleted"),
        (json!({ "restore": {} }), "restored from the bucket"),
        (json!({ "storage": { "url": "s3://bucket" }, "restore": { "to": "yesterday" } }), "spec.restore.to"),
        (json!({ "auth": { "secretName": "" } }), "spec.auth.secretName"),
        (json!({ "tls": { "names": ["a b"] } }), "spec.tls.names[0]"),
        (json!({ "tls": { "secretName": "cert", "names": ["dw.example"] } }), "names cannot be set together"),
        (json!({ "settings": [{ "name": "data", "value": "/tmp" }] }), "follows from the other fields"),
        (json!({ "settings": [{ "name": "Retention", "value": "1" }] }), "spec.settings[0].name"),
        (
            json!({ "settings": [{ "name": "retention", "value": "1" }, { "name": "retention", "value": "2" }] }),
            "spec.settings[1]",
        ),
    ];
    for (more, why) in wrong {
        let mut object = serde_json::to_value(instance("wrong", json!({}))).expect("instances serialise");
        let fields = more.as_object().expect("fields are given").clone();
        object["spec"].as_object_mut().expect("a spec has fields").extend(fields);
        let object: DynamicObject = serde_json::from_value(object).expect("it is an object");
        let message = refusal(api.create(&kube::api::PostParams::default(), &object).await);
        assert!(message.contains(why), "{more}: {message}");
    }
    for name in ["9lives", "a.b", &"a".repeat(41)] {
        let message =
            refusal(cluster.all().create(&kube::api::PostParams::default(), &instance(name, json!({}))).await);
        assert!(message.contains("begins with a letter"), "{name}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_holds_rows_is_never_changed() {
    let Some(cluster) = Cluster::with_kiln("limits-update").await else { return };
    let storage = json!({ "url": "s3://bucket/dw" });
    cluster.create(json!({ "storage": storage })).await.expect("it is an instance");
    let api: Api<Instance> = cluster.all();
    let with = async |spec: Value| {
        let patch = Patch::Merge(json!({ "spec": spec }));
        api.patch("dw", &PatchParams::default(), &patch).await
    };
    for spec in [json!({ "storage": { "url": "s3://bucket/other" } }), json!({ "storage": { "url": null } })] {
        let message = refusal(with(spec).await);
        assert!(message.contains("the storage of an instance cannot be changed"), "{message}");
    }
    for spec in [json!({ "volume": { "size": "2Gi" } }), json!({ "volume": { "storageClassName": "fast" } })] {
        let message = refusal(with(spec).await);
        assert!(message.contains("the size and the class of an instance's volume cannot be changed"), "{message}");
    }
    for restore in [json!({}), json!({ "to": "1" })] {
        let message = refusal(with(json!({ "restore": restore })).await);
        assert!(message.contains("an instance is restored when it is created"), "{message}");
    }
    let free = json!({
        "image": "registry.example/kiln:2",
        "storage": { "secretName": "other" },
        "volume": { "whenDeleted": "Delete" },
        "evictable": true,
    });
    with(free).await.expect("the rest can be");
}
