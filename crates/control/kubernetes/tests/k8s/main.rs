//! Tests of Kiln's resources and its operator against a real API server and its controllers, which `make test-k8s`
//! builds.
//!
//! Most tests have no nodes: pods stay pending until a test reports them as running. Some have nodes that run pods as
//! processes of this machine (`node`). If no control plane has been built, each test says so and is skipped.

#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

mod bucket;
mod client;
mod compute;
mod conformance;
mod credentials;
mod fake_workers;
mod faults;
mod install;
mod keeper;
mod leadership;
mod lifecycle;
mod limits;
mod load;
mod many;
mod node;
mod nodes;
mod objects;
mod plane;
mod proxy;
mod recovery;
mod removal;
mod scale;
mod scenario;
mod steps;
mod test_instance;
mod warehouse;
mod workers;
