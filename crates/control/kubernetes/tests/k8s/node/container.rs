//! Process of a pod's container, with the pod's root, address and user.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use k8s_openapi::api::core::v1::{Container, Pod, Secret};
use kube::{Api, ResourceExt};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use super::network::Network;
use super::site::Ground;
use super::{project, volume};

/// Number of the signal on Linux.
const SIGTERM: u32 = 15;

/// Handle of a container's process.
#[derive(Debug, Clone)]
pub(super) struct Process {
    /// PID of the started command outside the pod's PID namespace.
    pid: u32,
}

/// Starts a container of a pod as soon as its volumes and secrets exist. Returns also the tasks that keep its volumes
/// up to date.
pub(super) async fn start(
    ground: &Ground,
    pod: &Pod,
    container: &Container,
    network: &Network,
) -> (Child, Process, JoinSet<()>) {
    let (name, uid) = (pod.name_any(), pod.uid().expect("it is there"));
    let spec = pod.spec.as_ref().expect("a pod has a spec");
    let mut keepers = JoinSet::new();
    let root: PathBuf = ground.folder().join(format!("{uid}.root"));
    std::fs::create_dir_all(&root).expect("the site's folder can be written");
    let context = spec.security_context.as_ref().expect("it says as which user it runs");
    let (user, group) = (context.run_as_user.expect("it says so"), context.run_as_group.expect("it says so"));
    let is_read_only = container.security_context.as_ref().and_then(|context| context.read_only_root_filesystem);
    let log =
        File::options().create(true).append(true).open(ground.log(&name)).expect("the site's folder can be written");

    let mut command = Command::new("ip");
    command.args(["netns", "exec", &network.namespace]);
    command.args(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]);
    // Only the variables of the image and of the pod.
    command.args(["env", "-i"]).args(ground.variables(container.image.as_deref().unwrap_or_default()));
    command.args(variables(ground, pod, container).await);
    command.arg(project("tests/k8s/pod")).arg(&root).arg(ground.root()).arg(format!("{user}:{group}"));
    command.arg(if is_read_only == Some(true) { "ro" } else { "rw" });
    for mount in container.volume_mounts.iter().flatten() {
        let volumes = spec.volumes.as_deref().unwrap_or_default();
        let volume = volumes.iter().find(|volume| volume.name == mount.name).expect("a pod has what it mounts");
        let folder = volume::folder(ground, pod, volume, &mut keepers).await;
        let mode = if mount.read_only == Some(true) { "ro" } else { "rw" };
        command.arg(format!("{}:{}:{mode}", folder.display(), mount.mount_path));
    }
    command.arg(format!("{}:/etc/hosts:ro", ground.hosts.path().display()));
    command.arg("--").args(container.command.iter().flatten()).args(container.args.iter().flatten());
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file can be open twice")).stderr(log);
    let child = command.kill_on_drop(true).spawn().expect("ip runs");
    let process = Process { pid: child.id().expect("it runs") };
    (child, process, keepers)
}

/// Returns the environment variables of a container, as `NAME=value`.
async fn variables(ground: &Ground, pod: &Pod, container: &Container) -> Vec<String> {
    let mut said = Vec::new();
    for source in container.env_from.iter().flatten() {
        let secret = source.secret_ref.as_ref().expect("variables of others are not known here");
        let secrets: Api<Secret> = Api::namespaced(ground.client.clone(), &ground.namespace);
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
        let source =
            variable.value_from.as_ref().map(|source| source.field_ref.as_ref().expect("others are not known here"));
        let value = match source.map(|field| field.field_path.as_str()) {
            None => variable.value.clone().unwrap_or_default(),
            Some("metadata.name") => pod.name_any(),
            Some("metadata.namespace") => ground.namespace.clone(),
            Some(other) => panic!("the field {other} is not known here"),
        };
        format!("{}={value}", variable.name)
    }));
    said
}

impl Process {
    /// Returns the PID of the container's process, which is the child of the started command.
    fn own(&self) -> Option<u32> {
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid)).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// Returns the environment variables of the process.
    fn variables(&self) -> Vec<(String, String)> {
        let pid = self.own().expect("it runs");
        let said = std::fs::read(format!("/proc/{pid}/environ")).expect("it runs");
        let said = String::from_utf8(said).expect("variables are text");
        let variables = said.split('\0').filter_map(|variable| variable.split_once('='));
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Returns whether the process has a handler for SIGTERM.
    pub(super) fn listens(&self) -> bool {
        let caught = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.own()?)).ok()?;
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        };
        caught().is_some_and(|caught| caught & (1 << (SIGTERM - 1)) != 0)
    }

    /// Sends a signal, such as `TERM`. Does nothing if the process has ended.
    pub(super) fn signal(&self, signal: &str) {
        if let Some(pid) = self.own() {
            // Fails if the process ends in the meantime.
            let _ = std::process::Command::new("kill").args(["-s", signal, &pid.to_string()]).status();
        }
    }

    /// Runs a program in the container, beside the process.
    pub(super) async fn exec(&self, command: &[&str]) -> Output {
        let pid = self.own().expect("it runs").to_string();
        let entered = Command::new("nsenter")
            .args(["--target", &pid, "--net", "--mount", "--root", "--wd", "--"])
            .args(command)
            .env_clear()
            .envs(self.variables())
            .stdin(Stdio::null())
            .output();
        entered.await.expect("nsenter runs")
    }
}
