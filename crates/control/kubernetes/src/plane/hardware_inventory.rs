//! Hardware for workers, from the HardwareProfiles of the namespace.

use std::sync::Arc;

use cluster_model::{HardwareInstance, Inventory, Resources, WlmProfile};
use kube::ResourceExt;

use crate::quantity;
use crate::resources::HardwareProfile;

/// Percentage of a worker's memory for its tasks and its cache; the process itself needs the rest.
const SHARED_MEMORY_PCT: u64 = 80;

/// Returns the resources of a worker on the profile, or `None` if a quantity of the profile is not valid.
pub(super) fn worker_resources(profile: &HardwareProfile) -> Option<Resources> {
    let millicores = quantity::parse_millicores(&profile.spec.cpu)?;
    let memory_bytes = quantity::parse_bytes(&profile.spec.memory)? / 100 * SHARED_MEMORY_PCT;
    Some(Resources { millicores, memory_bytes })
}

/// Returns the hardware that clusters can use: the profiles, of which the first is the default, and the instance's own
/// process.
pub(super) fn build_inventory(profiles: &[Arc<HardwareProfile>], wlm: &[WlmProfile]) -> Inventory {
    let pods = profiles.iter().map(|profile| {
        let spec = &profile.spec;
        let description = format!(
            "a pod with {} cores, {} of memory and a disk of {}",
            spec.cpu, spec.memory, spec.cache_volume.size
        );
        HardwareInstance::pod(&profile.name_any(), description)
    });
    // A profile must not hide the instance's own hardware.
    let pods = pods.filter(|pod| pod.name != HardwareInstance::EMBEDDED);
    Inventory::new(pods.chain([HardwareInstance::embedded()]), wlm.iter().cloned())
}

#[cfg(test)]
mod tests {
    use cluster_model::HardwareKind;
    use serde_json::json;

    use super::*;

    fn profile(name: &str, cpu: &str) -> Arc<HardwareProfile> {
        let object = json!({
            "apiVersion": "kiln.dev/v1alpha1",
            "kind": "HardwareProfile",
            "metadata": { "name": name },
            "spec": { "cpu": cpu, "memory": "10Gi", "cacheVolume": { "size": "100Gi" } },
        });
        Arc::new(serde_json::from_value(object).expect("it is a profile"))
    }

    #[test]
    fn profiles_are_what_clusters_can_be_made_of() {
        let wlm = [WlmProfile { name: "default".to_owned(), max_running: 7 }];
        let none = build_inventory(&[], &wlm);
        assert_eq!(none.default_hardware().name, "embedded");
        let some = build_inventory(&[profile("large", "16"), profile("small", "500m"), profile("embedded", "1")], &wlm);
        assert_eq!(some.default_hardware().name, "large");
        assert_eq!(some.hardware("small").expect("it is there").kind, HardwareKind::Pod);
        assert_eq!(some.hardware("embedded").expect("it is there").kind, HardwareKind::Embedded);
        assert_eq!(some.profile("default").expect("it is there").max_running, 7);
    }

    #[test]
    fn a_worker_has_what_its_profile_says_but_for_the_process_itself() {
        let share = worker_resources(&profile("small", "1.5")).expect("its amounts are amounts");
        assert_eq!((share.millicores, share.memory_bytes), (1_500, (10_u64 << 30) / 100 * 80));
    }
}
