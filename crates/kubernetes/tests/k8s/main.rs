//! Kiln's resources and its operator against a real API server and its controllers, which `make test-k8s` builds. There are no nodes: pods
//! that should run stay pending until a test says that they run. Where no control plane has been built each test says so and is skipped.

#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

mod compute;
mod conformance;
mod guests;
mod house;
mod install;
mod keeper;
mod leadership;
mod lifecycle;
mod limits;
mod many;
mod node;
mod objects;
mod plane;
mod removal;
mod road;
mod scale;
mod warehouse;
mod workers;
