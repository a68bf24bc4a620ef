use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use kube::core::ObjectMeta;
use serde_json::json;

use super::*;

fn service(port: i32) -> DesiredObject {
    DesiredObject::new(&Service {
        metadata: ObjectMeta { name: Some("s".to_owned()), ..ObjectMeta::default() },
        spec: Some(ServiceSpec {
            ports: Some(vec![ServicePort { port, ..ServicePort::default() }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    })
}

/// Returns the object as the API server stores it, with further fields.
fn stored(object: &DesiredObject) -> Value {
    let mut value = object.value.clone();
    value["metadata"]["uid"] = json!("1");
    value["spec"]["ports"][0]["protocol"] = json!("TCP");
    value
}

#[test]
fn an_object_names_its_kind() {
    let object = service(1);
    assert_eq!((object.resource.kind.as_str(), object.resource.plural.as_str()), ("Service", "services"));
    assert_eq!((&object.value["apiVersion"], &object.value["kind"]), (&json!("v1"), &json!("Service")));
}

#[test]
fn what_others_add_is_no_difference() {
    let object = service(1);
    assert!(object.is_applied(&stored(&object)));
}

#[test]
fn what_others_change_or_take_away_is_one() {
    let object = service(1);
    let mut changed = stored(&object);
    changed["spec"]["ports"][0]["port"] = json!(2);
    assert!(!object.is_applied(&changed));
    let mut longer = stored(&object);
    longer["spec"]["ports"].as_array_mut().expect("a list").push(json!({"port": 3}));
    assert!(!object.is_applied(&longer));
    let mut without = stored(&object);
    without["spec"] = json!({});
    assert!(!object.is_applied(&without));
}

#[test]
fn what_is_not_wanted_any_more_is_one() {
    let mut more = service(1);
    more.value["spec"]["type"] = json!("NodePort");
    let content = format!("{:016x}", xxh3_64(more.value.to_string().as_bytes()));
    more.value["metadata"]["annotations"][CONTENT_HASH_ANNOTATION] = Value::String(content);
    assert!(!service(1).is_applied(&stored(&more)), "the mark of its content is another one");
}

#[test]
fn yaml_reads_as_what_was_written() {
    let values = [json!({"a": "yes", "b": ["1", 1, "0x1f", "", "a: b", "# no"]}), json!({"c": {"d": null}})];
    let text = to_yaml(&values);
    let documents: Vec<Value> =
        text.split("---\n").skip(1).map(|document| serde_saphyr::from_str(document).expect("it is YAML")).collect();
    assert_eq!(documents, values);
}
