//! Addresses of pods: each has a network namespace, joined to the machine's by a bridge.

use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

/// Where pods find each other. Gone with its value.
pub(super) struct Bridge {
    name: String,
    next: AtomicU8,
}

/// A pod's part of it: a namespace. Gone with its value.
pub(super) struct Network {
    pub(super) namespace: String,
    pub(super) address: Ipv4Addr,
}

impl Bridge {
    /// A new one; `None` where that is not allowed here.
    pub(super) fn open() -> Option<Bridge> {
        let name = format!("kiln{}", std::process::id());
        let is_made = ip(&["link", "add", &name, "type", "bridge"]);
        let bridge = Bridge { name: name.clone(), next: AtomicU8::new(2) };
        let is_up = is_made && ip(&["addr", "add", "10.213.0.1/24", "dev", &name]) && ip(&["link", "set", &name, "up"]);
        is_up.then_some(bridge)
    }

    /// Where pods find this machine.
    pub(super) fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, 0, 1)
    }

    /// A namespace with an address that no other pod had.
    pub(super) fn join(&self) -> Network {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("{}-{number}", self.name);
        let address = Ipv4Addr::new(10, 213, 0, number);
        let (outside, inside) =
            (format!("k{}o{number}", std::process::id()), format!("k{}i{number}", std::process::id()));
        let within: &[&str] = &["-n", &namespace];
        must(&["netns", "add", &namespace]);
        must(&["link", "add", &outside, "type", "veth", "peer", "name", &inside]);
        must(&["link", "set", &inside, "netns", &namespace]);
        must(&["link", "set", &outside, "master", &self.name, "up"]);
        must(&[within, &["link", "set", "lo", "up"]].concat());
        must(&[within, &["addr", "add", &format!("{address}/24"), "dev", &inside]].concat());
        must(&[within, &["link", "set", &inside, "up"]].concat());
        Network { namespace, address }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        ip(&["link", "del", &self.name]);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.namespace]);
    }
}

fn must(arguments: &[&str]) {
    assert!(ip(arguments), "ip {}", arguments.join(" "));
}

fn ip(arguments: &[&str]) -> bool {
    let done = Command::new("ip").args(arguments).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}
