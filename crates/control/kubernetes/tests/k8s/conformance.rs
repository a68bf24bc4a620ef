//! Conformance of the control plane in Kubernetes with the requirements for every control plane.

use cluster_model::WorkerId;
use control_plane::conformance_tests::{TestEnvironment, run};
use control_plane::{ControlPlane, TokenWorkerHost};
use tokio::runtime::Handle;

use crate::test_instance::{HARDWARE, TestInstance, wait};

struct Around {
    house: TestInstance,
    runtime: Handle,
}

impl TestEnvironment for Around {
    fn plane(&self) -> &dyn ControlPlane {
        &*self.house.plane
    }

    fn pass(&mut self) {
        wait(&self.runtime, self.house.pass());
    }

    fn kill(&mut self, worker: WorkerId) {
        let life = self.house.guests.host_uid(worker).expect("it came from a pod");
        wait(&self.runtime, async {
            let pod = self.house.pod(&life).await;
            self.house.fail(&pod).await;
        });
    }

    fn restart(&mut self) {
        wait(&self.runtime, self.house.begin());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_is_a_control_plane_like_the_others() {
    let Some(house) = TestInstance::new("conformance").await else { return };
    let runtime = Handle::current();
    let conforming = tokio::task::spawn_blocking(move || {
        let mut around = Around { house, runtime };
        run(&mut around, HARDWARE);
        around
    });
    let around = conforming.await.expect("it conforms");
    around.house.stop().await;
}
