//! Network of pods: each pod has a network namespace that is connected to a bridge and can be disconnected from it.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use super::project;

/// Address of this machine in the network of pods.
pub(super) const HERE: Ipv4Addr = Ipv4Addr::new(10, 213, 0, 1);
/// Prefix length of the network of pods.
const NETWORK_BITS: u8 = 16;

/// Number of the next pod. It is not reused by later bridges, because the interfaces of an earlier one may still exist.
static NEXT: AtomicU16 = AtomicU16::new(2);

/// Bridge that connects pods. It and the processes in its namespaces are removed on drop, and also when this process
/// ends in any way.
pub(super) struct Bridge {
    name: String,
    /// Script that removes the bridge when its standard input is closed.
    sweeper: Child,
}

/// Network namespace of a pod, removed on drop.
pub(super) struct Network {
    pub(super) namespace: String,
    pub(super) address: Ipv4Addr,
    pub(super) link: Link,
}

/// Link between a pod and the bridge.
#[derive(Debug, Clone)]
pub(super) struct Link {
    bridge: String,
    outside: String,
    number: u16,
}

impl Bridge {
    /// Creates a bridge, which is removed together with `folder`. Returns `None` without the required permissions.
    pub(super) fn open(folder: &Path) -> Option<Bridge> {
        sweep_of_the_gone();
        let name = format!("kiln{}", std::process::id());
        if !ip(&["link", "add", &name, "type", "bridge"]) {
            return None;
        }
        let sweeper = Command::new(project("tests/k8s/sweep"))
            .arg(&name)
            .arg(folder)
            .stdin(Stdio::piped())
            .spawn()
            .expect("the script is part of the tests");
        must(&["addr", "add", &format!("{HERE}/{NETWORK_BITS}"), "dev", &name]);
        must(&["link", "set", &name, "up"]);
        Some(Bridge { name, sweeper })
    }

    /// Creates a namespace with a new address. Its default route leads to this machine.
    pub(super) fn join(&self) -> Network {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("{}-{number}", self.name);
        let [high, low] = number.to_be_bytes();
        let address = Ipv4Addr::new(10, 213, high, low);
        let (outside, inside) =
            (format!("k{}o{number}", std::process::id()), format!("k{}i{number}", std::process::id()));
        let within: &[&str] = &["-n", &namespace];
        must(&["netns", "add", &namespace]);
        must(&["link", "add", &outside, "type", "veth", "peer", "name", &inside]);
        must(&["link", "set", &inside, "netns", &namespace]);
        must(&["link", "set", &outside, "master", &self.name, "up"]);
        must(&[within, &["link", "set", "lo", "up"]].concat());
        must(&[within, &["addr", "add", &format!("{address}/{NETWORK_BITS}"), "dev", &inside]].concat());
        must(&[within, &["link", "set", &inside, "up"]].concat());
        must(&[within, &["route", "add", "default", "via", &HERE.to_string()]].concat());
        Network { namespace, address, link: Link { bridge: self.name.clone(), outside, number } }
    }

    /// Adds an address to this machine, reachable from pods and from the machine itself.
    pub(super) fn take(&self, address: Ipv4Addr) {
        must(&["addr", "add", &format!("{address}/32"), "dev", &self.name]);
    }

    /// Removes an address from this machine.
    pub(super) fn let_go(&self, address: Ipv4Addr) {
        ip(&["addr", "del", &format!("{address}/32"), "dev", &self.name]);
    }
}

impl Link {
    /// Returns the number of the pod. Newer pods have higher numbers.
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    /// Disconnects the pod. Packets are dropped silently, as with a pulled cable.
    pub(super) fn cut(&self) {
        // Fails if the link is removed at the same time, which does not matter.
        ip(&["link", "set", &self.outside, "nomaster"]);
    }

    /// Reconnects the pod.
    pub(super) fn heal(&self) {
        ip(&["link", "set", &self.outside, "master", &self.bridge]);
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        drop(self.sweeper.stdin.take());
        // A failure is noticed when the next bridge is created.
        let _ = self.sweeper.wait();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Processes that have changed their user are not ended by the death of their parent, so all are killed here.
        loop {
            let left = Command::new("ip").args(["netns", "pids", &self.namespace]).output().expect("ip runs").stdout;
            let left = String::from_utf8(left).expect("numbers are text");
            if left.trim().is_empty() {
                break;
            }
            // A process may have ended in the meantime.
            let _ =
                Command::new("kill").args(["-s", "KILL"]).args(left.split_whitespace()).stderr(Stdio::null()).status();
        }
        ip(&["netns", "del", &self.namespace]);
    }
}

/// Removes bridges of processes that were killed together with their sweepers. Two bridges with the same address would
/// not work.
fn sweep_of_the_gone() {
    let bridges = Command::new("ip").args(["-o", "link", "show", "type", "bridge"]).output();
    let bridges = bridges.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned()).unwrap_or_default();
    let names = bridges.lines().filter_map(|line| line.split_whitespace().nth(1)?.strip_suffix(':'));
    for name in names {
        let is_gone = |process: u32| !Path::new("/proc").join(process.to_string()).exists();
        if name.strip_prefix("kiln").and_then(|process| process.parse().ok()).is_some_and(is_gone) {
            let sweeping = Command::new(project("tests/k8s/sweep")).arg(name).stdin(Stdio::null()).status();
            sweeping.expect("the script is part of the tests");
        }
    }
}

fn must(arguments: &[&str]) {
    assert!(ip(arguments), "ip {}", arguments.join(" "));
}

fn ip(arguments: &[&str]) -> bool {
    let done = Command::new("ip").args(arguments).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}
