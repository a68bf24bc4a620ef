//! A pod's process: the one container of it, in its root, at its address, as its user.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use k8s_openapi::api::core::v1::{Container, Pod, Secret};
use kube::Api;
use tokio::process::{Child, Command};

use super::network::Network;
use super::{Shared, project, volume};

/// A process that can be found again.
#[derive(Debug, Clone)]
pub(super) struct Process {
    /// As the machine counts, not as the pod does.
    pid: u32,
}

/// Starts the container of a pod.
pub(super) async fn start(node: &Shared, pod: &Pod, network: &Network) -> (Child, Process) {
    let name = pod.metadata.name.as_deref().expect("a pod has a name");
    let spec = pod.spec.as_ref().expect("a pod has a spec");
    let [container] = &spec.containers[..] else {
        panic!("one container is known here, not {}", spec.containers.len())
    };
    let root: PathBuf = node.folder.path().join(format!("{name}.root"));
    std::fs::create_dir_all(&root).expect("the node's folder can be written");
    let context = spec.security_context.as_ref().expect("it says as which user it runs");
    let (user, group) = (context.run_as_user.expect("it says so"), context.run_as_group.expect("it says so"));
    let is_read_only = container.security_context.as_ref().and_then(|context| context.read_only_root_filesystem);
    let log = File::options().create(true).append(true).open(node.log(name)).expect("the node's folder can be written");

    let mut command = Command::new("ip");
    command.args(["netns", "exec", &network.namespace]);
    command.args(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]);
    // Those of the image and of the pod, and no others.
    command.args(["env", "-i"]).args(&node.image.variables).args(variables(node, container).await);
    command.args(node.api_server_variables());
    command.arg(project("tests/k8s/pod")).arg(&root).arg(&node.image.root).arg(format!("{user}:{group}"));
    command.arg(if is_read_only == Some(true) { "ro" } else { "rw" });
    for mount in container.volume_mounts.iter().flatten() {
        let volumes = spec.volumes.as_deref().unwrap_or_default();
        let volume = volumes.iter().find(|volume| volume.name == mount.name).expect("a pod has what it mounts");
        let folder = volume::folder(node, pod, volume).await;
        let mode = if mount.read_only == Some(true) { "ro" } else { "rw" };
        command.arg(format!("{}:{}:{mode}", folder.display(), mount.mount_path));
    }
    command.arg(format!("{}:/etc/hosts:ro", node.hosts.path().display()));
    command.arg("--").args(container.command.iter().flatten()).args(container.args.iter().flatten());
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file can be open twice")).stderr(log);
    let child = command.kill_on_drop(true).spawn().expect("ip runs");
    let process = Process { pid: child.id().expect("it runs") };
    (child, process)
}

/// As `NAME=value`.
async fn variables(node: &Shared, container: &Container) -> Vec<String> {
    let mut said = Vec::new();
    for source in container.env_from.iter().flatten() {
        let secret = source.secret_ref.as_ref().expect("variables of others are not known here");
        let secrets: Api<Secret> = Api::namespaced(node.client.clone(), &node.namespace);
        let secret = secrets.get(&secret.name).await.expect("the test has made it");
        said.extend(
            secret
                .data
                .into_iter()
                .flatten()
                .map(|(name, value)| format!("{name}={}", String::from_utf8(value.0).expect("variables are text"))),
        );
    }
    said.extend(container.env.iter().flatten().map(|variable| {
        let value = variable.value.as_deref().expect("variables that are computed are not known here");
        format!("{}={value}", variable.name)
    }));
    said
}

impl Process {
    /// The process itself: what was started waits for it.
    fn own(&self) -> Option<u32> {
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid)).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// Sends a signal, as `TERM`; nothing where it has ended.
    pub(super) fn signal(&self, signal: &str) {
        if let Some(pid) = self.own() {
            // It may end in between.
            let _ = std::process::Command::new("kill").args(["-s", signal, &pid.to_string()]).status();
        }
    }

    /// Runs a program beside it.
    pub(super) async fn exec(&self, command: &[&str]) -> Output {
        let pid = self.own().expect("it runs").to_string();
        let entered = Command::new("nsenter")
            .args(["--target", &pid, "--net", "--mount", "--root", "--wd", "--"])
            .args(command)
            .env_clear()
            .env("PATH", "/usr/bin")
            .stdin(Stdio::null())
            .output();
        entered.await.expect("nsenter runs")
    }
}
