//! Addresses of pods: each has a network namespace, joined to the machine's by a bridge, and can be cut off from it.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use super::project;

/// Where pods find this machine, and what is forwarded there for services.
pub(super) const HERE: Ipv4Addr = Ipv4Addr::new(10, 213, 0, 1);
/// Bits of the network that they are in.
const NETWORK_BITS: u8 = 16;

/// The number of the next pod, of whatever bridge: what a name was of may still be going when its bridge is gone.
static NEXT: AtomicU16 = AtomicU16::new(2);

/// Where pods find each other. Gone with its value, and with this process, however that ends, with all that is in its namespaces.
pub(super) struct Bridge {
    name: String,
    /// Takes it away, when its input ends.
    sweeper: Child,
}

/// A pod's part of it: a namespace. Gone with its value.
pub(super) struct Network {
    pub(super) namespace: String,
    pub(super) address: Ipv4Addr,
    pub(super) link: Link,
}

/// What joins a pod to the bridge.
#[derive(Debug, Clone)]
pub(super) struct Link {
    bridge: String,
    outside: String,
    number: u16,
}

impl Bridge {
    /// A new one, which goes together with all that is in the folder; `None` where that is not allowed here.
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

    /// A namespace with an address that no other pod had. What it does not know goes to this machine.
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

    /// This machine has the address, too, for whoever is on the bridge and for itself.
    pub(super) fn take(&self, address: Ipv4Addr) {
        must(&["addr", "add", &format!("{address}/32"), "dev", &self.name]);
    }

    /// It has it no more.
    pub(super) fn let_go(&self, address: Ipv4Addr) {
        ip(&["addr", "del", &format!("{address}/32"), "dev", &self.name]);
    }
}

impl Link {
    /// The later a pod has come, the higher.
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    /// From now on what is sent to the pod and by it is lost, and nobody is told, as with a cable that is pulled.
    pub(super) fn cut(&self) {
        // It may go at the same time.
        ip(&["link", "set", &self.outside, "nomaster"]);
    }

    /// What is sent arrives again.
    pub(super) fn heal(&self) {
        ip(&["link", "set", &self.outside, "master", &self.bridge]);
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        drop(self.sweeper.stdin.take());
        // What is not taken away is told by the next who wants it.
        let _ = self.sweeper.wait();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Also those that have become another user, whom no parent's death ends.
        loop {
            let left = Command::new("ip").args(["netns", "pids", &self.namespace]).output().expect("ip runs").stdout;
            let left = String::from_utf8(left).expect("numbers are text");
            if left.trim().is_empty() {
                break;
            }
            // It may end in between.
            let _ =
                Command::new("kill").args(["-s", "KILL"]).args(left.split_whitespace()).stderr(Stdio::null()).status();
        }
        ip(&["netns", "del", &self.namespace]);
    }
}

/// Takes away bridges whose processes were ended together with their sweepers: two with one address are no way to anybody.
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
