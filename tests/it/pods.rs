//! Kubernetes manifests match this program: a pod's command starts it, and it prints the objects that an
//! administrator applies.

use std::process::Command;

use kubernetes::compute_cluster::{self, ClusterDependencies};
use kubernetes::{ComputeCluster, HardwareProfile, Installation, Instance, instance};
use serde_json::{Value, json};

use crate::server::{Server, kiln};

/// Returns the container of an instance's pod.
fn container(spec: Value) -> Value {
    let object = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "Instance",
        "metadata": { "name": "dw", "namespace": "kiln" },
        "spec": spec,
    });
    let instance: Instance = serde_json::from_value(object).expect("it is an instance");
    let objects = instance::desired_objects(&instance).expect("its amounts are amounts");
    let mut set = objects.into_iter().find(|object| object.resource.kind == "StatefulSet").expect("it has a pod").value;
    set["spec"]["template"]["spec"]["containers"][0].take()
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().expect("it is a list").iter().map(|text| text.as_str().expect("it is text")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_of_a_pod_serves() {
    let container = container(json!({
        "image": "kiln",
        "resources": { "cpu": "1500m", "memory": "1Gi" },
        "volume": { "size": "1Gi" },
        // Log format that the test harness reads.
        "settings": [{ "name": "log_format", "value": "text" }, { "name": "cluster_statements", "value": "7" }],
    }));
    assert_eq!(texts(&container["command"]), ["kiln"]);
    let arguments = texts(&container["args"]);
    let (first, options) = arguments.split_first().expect("there are arguments");
    assert_eq!(*first, "serve");
    // The test harness sets folder and ports, and there is no API server.
    let is_own =
        |option: &&[&str]| matches!(option[0], "--data" | "--listen" | "--http" | "--kubernetes" | "--worker-door");
    let (own, rest): (Vec<&[&str]>, Vec<&[&str]>) = options.chunks(2).partition(is_own);
    assert_eq!(own.len(), 5, "{own:?}");
    // Mounted secrets are elsewhere in this test.
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let certified = rcgen::generate_simple_self_signed(vec!["dw.kiln.svc".to_owned()]).expect("there is chance");
    for (name, content) in [
        ("tls.crt", certified.cert.pem()),
        ("tls.key", certified.signing_key.serialize_pem()),
        ("password", "from a secret".to_owned()),
    ] {
        std::fs::write(folder.path().join(name), content).expect("the folder is ours");
    }
    let place = |path: &str| match path.strip_prefix("/etc/kiln/").and_then(|path| path.split_once('/')) {
        Some((_, name)) => folder.path().join(name).to_str().expect("it is text").to_owned(),
        None => path.to_owned(),
    };
    let rest: Vec<String> = rest.concat().into_iter().map(place).collect();
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let variables = container["env"].as_array().expect("it has variables");
    let variables: Vec<(&str, String)> = variables
        .iter()
        .map(|variable| {
            (variable["name"].as_str().expect("a name"), place(variable["value"].as_str().expect("a value")))
        })
        .collect();
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Server::start_with(&rest, &variables);
    let refused = server.connect_as("user=kiln dbname=kiln password=guessed").await.expect_err("it has another one");
    assert_eq!(refused.code().map(tokio_postgres::error::SqlState::code), Some("28P01"), "{refused:?}");
    let client = server.connect_as("user=kiln dbname=kiln password='from a secret'").await.expect("it has that one");
    let cores: f64 = client.query_one("SELECT sum(cores) FROM sys.worker", &[]).await.expect("it serves").get(0);
    assert!((cores - 2.0).abs() < 1e-9, "cores, rounded up: {cores}");
    assert!(server.stop(), "it ends cleanly");
}

/// Returns the container of a worker's pod.
fn workers_container() -> Value {
    let instance = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "Instance",
        "metadata": { "name": "dw", "namespace": "kiln" },
        "spec": {
            "image": "kiln",
            "storage": { "url": "s3://bucket/dw" },
            "resources": { "cpu": "1", "memory": "1Gi" },
            "volume": { "size": "1Gi" },
        },
    });
    let hardware = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "HardwareProfile",
        "metadata": { "name": "small" },
        "spec": { "cpu": "1", "memory": "1Gi", "cacheVolume": { "size": "1Gi" } },
    });
    let cluster = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "ComputeCluster",
        "metadata": { "name": "etl", "namespace": "kiln" },
        "spec": { "instance": "dw", "hardwareInstance": "small" },
    });
    let instance: Instance = serde_json::from_value(instance).expect("it is an instance");
    let hardware: HardwareProfile = serde_json::from_value(hardware).expect("it is a profile");
    let cluster: ComputeCluster = serde_json::from_value(cluster).expect("it is a cluster");
    let around = ClusterDependencies::new(&cluster, Some(&instance), Some(&hardware), None).expect("all is there");
    let objects = compute_cluster::desired_objects(&cluster, &around, None);
    let mut set = objects.into_iter().find(|object| object.resource.kind == "StatefulSet").expect("it has pods").value;
    set["spec"]["template"]["spec"]["containers"][0].take()
}

#[test]
fn the_command_of_a_workers_pod_looks_for_its_instance() {
    let container = workers_container();
    assert_eq!(texts(&container["command"]), ["kiln"]);
    let arguments = texts(&container["args"]);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let place = |name: &str| folder.path().join(name).to_str().expect("it is text").to_owned();
    let certified = rcgen::generate_simple_self_signed(vec!["instance.kiln".to_owned()]).expect("there is chance");
    std::fs::write(place("authority"), certified.cert.pem()).expect("the folder is ours");
    std::fs::write(place("token"), "a token").expect("the folder is ours");
    // Replaces the pod's paths, and the instance's address by one without a listener.
    let arguments: Vec<String> = arguments
        .iter()
        .scan("", |before, argument| {
            let said = match std::mem::replace(before, argument) {
                "--join" => "kiln://127.0.0.1:1".to_owned(),
                "--token" => place("token"),
                "--authority" => place("authority"),
                "--folder" => place("workers"),
                "--patience" => "0".to_owned(),
                _ => (*argument).to_owned(),
            };
            Some(said)
        })
        .collect();
    let ended = Command::new(kiln()).args(&arguments).output().expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && said.contains("could not reach the warehouse for"), "{said}");
}

#[test]
fn a_dry_run_prints_what_would_be_applied() {
    let printed = Command::new(kiln())
        .args(["install", "kubernetes", "--dry-run", "--image", "registry.example/kiln:1", "--namespace", "warehouses"])
        .args(["--name", "sales", "--storage", "s3://bucket/sales", "--storage-secret", "bucket", "--memory", "16Gi"])
        .output()
        .expect("it runs");
    assert!(printed.status.success(), "{printed:?}");
    let instance = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "Instance",
        "metadata": { "name": "sales" },
        "spec": {
            "image": "registry.example/kiln:1",
            "storage": { "url": "s3://bucket/sales", "secretName": "bucket" },
            "resources": { "cpu": "2", "memory": "16Gi" },
            "volume": { "size": "50Gi" },
        },
    });
    let install = Installation {
        namespace: "warehouses".to_owned(),
        image: "registry.example/kiln:1".to_owned(),
        instance: Some(serde_json::from_value(instance).expect("it is an instance")),
    };
    assert_eq!(String::from_utf8(printed.stdout).expect("it is text"), kubernetes::to_yaml(&install.objects()));
}

#[test]
fn an_operator_without_a_cluster_says_so() {
    let ended = Command::new(kiln())
        .args(["operator", "--namespace", "warehouses"])
        .env("KUBECONFIG", "/nowhere/kubeconfig")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()
        .expect("it runs");
    assert!(!ended.status.success());
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("could not find out where the Kubernetes API server is"), "{said}");
}
