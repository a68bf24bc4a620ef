//! The objects that are applied so that a namespace has instances: the definitions of Kiln's resources, the operator, and the rights that it
//! needs, which are all in that namespace.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, EnvVar, EnvVarSource, Namespace, ObjectFieldSelector, PodSecurityContext, PodSpec,
    PodTemplateSpec, ResourceRequirements, SeccompProfile, SecurityContext, ServiceAccount,
};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::ObjectMeta;
use serde_json::Value;

use super::{IDENTITY_VARIABLE, Install, NAMESPACE_VARIABLE, OPERATOR};
use crate::operator::LEASE;
use crate::resources::{Instance, served};

#[cfg(test)]
mod tests;

impl Install {
    /// All objects, in an order in which they can be applied; the first instance last.
    #[must_use]
    pub fn objects(&self) -> Vec<Value> {
        fn value<T: serde::Serialize>(object: &T) -> Value {
            serde_json::to_value(object).expect("objects are text, numbers and lists")
        }
        let mut objects: Vec<Value> = served().iter().map(value).collect();
        objects.extend([
            value(&self.namespace()),
            value(&self.service_account()),
            value(&self.role()),
            value(&self.role_binding()),
            value(&self.deployment()),
        ]);
        objects.extend(self.instance.as_ref().map(|instance| value(&self.own(instance))));
        objects
    }

    /// The instance in the namespace of the others.
    fn own(&self, instance: &Instance) -> Instance {
        let mut instance = instance.clone();
        instance.metadata.namespace = Some(self.namespace.clone());
        instance
    }

    fn namespace(&self) -> Namespace {
        let metadata = ObjectMeta { name: Some(self.namespace.clone()), ..ObjectMeta::default() };
        Namespace { metadata, ..Namespace::default() }
    }

    fn service_account(&self) -> ServiceAccount {
        ServiceAccount { metadata: self.metadata(), ..ServiceAccount::default() }
    }

    /// All that the operator may do.
    fn role(&self) -> Role {
        let made = ["create", "delete", "get", "list", "patch", "watch"];
        Role {
            metadata: self.metadata(),
            rules: Some(vec![
                rule("kiln.dev", &["instances"], &["get", "list", "patch", "watch"]),
                rule("kiln.dev", &["instances/status"], &["patch"]),
                // Asked for by clusters where an object may only be named as the owner of others by who may change its finalizers.
                rule("kiln.dev", &["instances/finalizers"], &["update"]),
                rule("", &["serviceaccounts", "services"], &made),
                rule("apps", &["statefulsets"], &made),
                rule("policy", &["poddisruptionbudgets"], &made),
                rule("coordination.k8s.io", &["leases"], &["create"]),
                PolicyRule {
                    resource_names: Some(vec![LEASE.to_owned()]),
                    ..rule("coordination.k8s.io", &["leases"], &["get", "update"])
                },
            ]),
        }
    }

    fn role_binding(&self) -> RoleBinding {
        RoleBinding {
            metadata: self.metadata(),
            role_ref: RoleRef {
                api_group: "rbac.authorization.k8s.io".to_owned(),
                kind: "Role".to_owned(),
                name: OPERATOR.to_owned(),
            },
            subjects: Some(vec![Subject {
                kind: "ServiceAccount".to_owned(),
                name: OPERATOR.to_owned(),
                namespace: Some(self.namespace.clone()),
                ..Subject::default()
            }]),
        }
    }

    fn deployment(&self) -> Deployment {
        let metadata = self.metadata();
        let labels = metadata.labels.clone();
        Deployment {
            metadata,
            spec: Some(DeploymentSpec {
                replicas: Some(1),
                selector: LabelSelector { match_labels: labels.clone(), ..LabelSelector::default() },
                template: PodTemplateSpec {
                    metadata: Some(ObjectMeta { labels, ..ObjectMeta::default() }),
                    spec: Some(PodSpec {
                        service_account_name: Some(OPERATOR.to_owned()),
                        enable_service_links: Some(false),
                        security_context: Some(PodSecurityContext {
                            run_as_non_root: Some(true),
                            run_as_user: Some(65_532),
                            run_as_group: Some(65_532),
                            seccomp_profile: Some(SeccompProfile {
                                type_: "RuntimeDefault".to_owned(),
                                ..SeccompProfile::default()
                            }),
                            ..PodSecurityContext::default()
                        }),
                        containers: vec![self.container()],
                        ..PodSpec::default()
                    }),
                },
                ..DeploymentSpec::default()
            }),
            ..Deployment::default()
        }
    }

    fn container(&self) -> Container {
        let amount = |cpu: &str, memory: &str| {
            let amounts = [("cpu", cpu), ("memory", memory)];
            let amounts = amounts.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())));
            Some(amounts.into_iter().filter(|(_, amount)| !amount.0.is_empty()).collect())
        };
        Container {
            name: "operator".to_owned(),
            image: Some(self.image.clone()),
            command: Some(vec!["kiln".to_owned()]),
            args: Some(vec!["operator".to_owned()]),
            env: Some(vec![
                of_pod(IDENTITY_VARIABLE, "metadata.name"),
                of_pod(NAMESPACE_VARIABLE, "metadata.namespace"),
                EnvVar { name: "KILN_LOG_FORMAT".to_owned(), value: Some("json".to_owned()), value_from: None },
            ]),
            resources: Some(ResourceRequirements {
                requests: amount("20m", "64Mi"),
                limits: amount("", "256Mi"),
                ..ResourceRequirements::default()
            }),
            security_context: Some(SecurityContext {
                allow_privilege_escalation: Some(false),
                read_only_root_filesystem: Some(true),
                capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), ..Capabilities::default() }),
                ..SecurityContext::default()
            }),
            ..Container::default()
        }
    }

    fn metadata(&self) -> ObjectMeta {
        let labels = [("app.kubernetes.io/name", "kiln"), ("app.kubernetes.io/component", "operator")];
        ObjectMeta {
            name: Some(OPERATOR.to_owned()),
            namespace: Some(self.namespace.clone()),
            labels: Some(labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
            ..ObjectMeta::default()
        }
    }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(owned(&[group])),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

/// A variable that holds a field of the pod itself.
fn of_pod(name: &str, field: &str) -> EnvVar {
    let field = ObjectFieldSelector { field_path: field.to_owned(), api_version: None };
    EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
    }
}
