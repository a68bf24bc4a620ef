//! Objects of an installation: CustomResourceDefinitions, the operator, and the permissions of the operator and the
//! instances. All permissions are limited to the namespace, except that instances may create TokenReviews.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, EnvVar, EnvVarSource, Namespace, ObjectFieldSelector, PodSecurityContext, PodSpec,
    PodTemplateSpec, ResourceRequirements, SeccompProfile, SecurityContext, ServiceAccount, Toleration,
};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::ObjectMeta;
use serde_json::Value;

use super::{IDENTITY_VARIABLE, Installation, NAMESPACE_VARIABLE, OPERATOR};
use crate::credentials::AUTHORITY_NAME;
use crate::instance::INSTANCE_ROLE;
use crate::operator::LEASE_NAME;
use crate::resources::{Instance, custom_resource_definitions};

#[cfg(test)]
mod tests;

/// Taints of nodes that do not respond.
const UNRESPONSIVE_NODE_TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
/// Seconds that the operator's pod stays on such a node. The default, five minutes, would be a long time without an
/// operator, and the operator has no state on the node.
const UNRESPONSIVE_NODE_SECONDS: i64 = 30;

impl Installation {
    /// Returns all objects in the order of their application; the first instance is last.
    #[must_use]
    pub fn objects(&self) -> Vec<Value> {
        fn value<T: serde::Serialize>(object: &T) -> Value {
            serde_json::to_value(object).expect("a Kubernetes object serializes to JSON")
        }
        let mut objects: Vec<Value> = custom_resource_definitions().iter().map(value).collect();
        objects.extend([
            value(&self.namespace()),
            value(&self.instance_role()),
            value(&self.token_reviewer()),
            value(&self.token_reviewer_binding()),
            value(&self.service_account()),
            value(&self.role()),
            value(&self.role_binding()),
            value(&self.deployment()),
        ]);
        objects.extend(self.instance.as_ref().map(|instance| value(&self.instance_in_namespace(instance))));
        objects
    }

    /// Returns the instance in the namespace of the installation.
    fn instance_in_namespace(&self, instance: &Instance) -> Instance {
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

    /// Returns the role with the operator's permissions.
    fn role(&self) -> Role {
        let made = ["create", "delete", "get", "list", "patch", "watch"];
        Role {
            metadata: self.metadata(),
            rules: Some(vec![
                rule("kiln.dev", &["instances", "computeclusters"], &["get", "list", "patch", "watch"]),
                rule("kiln.dev", &["hardwareprofiles"], &["list", "watch"]),
                rule("kiln.dev", &["instances/status", "computeclusters/status"], &["patch"]),
                // Needed where the OwnerReferencesPermissionEnforcement admission plugin is active: it lets a client
                // name an owner only if the client may update the owner's finalizers.
                rule("kiln.dev", &["instances/finalizers", "computeclusters/finalizers"], &["update"]),
                rule("", &["serviceaccounts", "services"], &made),
                // Passwords, keys and certificates of instances and of the authority. This grants nothing new: who may
                // create StatefulSets can have a pod read any secret of the namespace.
                rule("", &["secrets"], &made),
                PolicyRule {
                    resource_names: Some(vec![AUTHORITY_NAME.to_owned()]),
                    ..rule("", &["secrets"], &["update"])
                },
                // The certificate of the authority, for clients.
                rule("", &["configmaps"], &["create"]),
                PolicyRule {
                    resource_names: Some(vec![AUTHORITY_NAME.to_owned()]),
                    ..rule("", &["configmaps"], &["get", "patch"])
                },
                rule("apps", &["statefulsets"], &made),
                rule("policy", &["poddisruptionbudgets"], &made),
                // Deletion of the cache volumes of removed slots.
                rule("", &["persistentvolumeclaims"], &["list", "delete"]),
                rule("", &["pods"], &["list"]),
                // Binds the role of instances and, by the restriction of `bind`, no other role.
                rule("rbac.authorization.k8s.io", &["rolebindings"], &made),
                PolicyRule {
                    resource_names: Some(vec![INSTANCE_ROLE.to_owned()]),
                    ..rule("rbac.authorization.k8s.io", &["roles"], &["bind"])
                },
                rule("coordination.k8s.io", &["leases"], &["create"]),
                PolicyRule {
                    resource_names: Some(vec![LEASE_NAME.to_owned()]),
                    ..rule("coordination.k8s.io", &["leases"], &["get", "update"])
                },
            ]),
        }
    }

    /// Returns the role with the permissions of instance pods.
    fn instance_role(&self) -> Role {
        let metadata = ObjectMeta { name: Some(INSTANCE_ROLE.to_owned()), ..self.metadata() };
        Role {
            metadata,
            rules: Some(vec![
                rule("kiln.dev", &["computeclusters"], &["create", "delete", "get", "list", "patch", "watch"]),
                rule("kiln.dev", &["hardwareprofiles"], &["list", "watch"]),
                // The pod of a hung worker is deleted, so that it is replaced.
                rule("", &["pods"], &["delete", "get", "list", "watch"]),
                // The certificate by which workers verify the instance, in a config map that the instance owns.
                rule("", &["configmaps"], &["create", "patch"]),
                rule("kiln.dev", &["instances"], &["get"]),
            ]),
        }
    }

    /// Returns the cluster role for TokenReviews, which are cluster-scoped.
    fn token_reviewer(&self) -> ClusterRole {
        ClusterRole {
            metadata: self.cluster_scoped_metadata(),
            rules: Some(vec![rule("authentication.k8s.io", &["tokenreviews"], &["create"])]),
            ..ClusterRole::default()
        }
    }

    /// Returns the binding of that role to all service accounts of the namespace, because those of future instances are
    /// not known yet.
    fn token_reviewer_binding(&self) -> ClusterRoleBinding {
        ClusterRoleBinding {
            metadata: self.cluster_scoped_metadata(),
            role_ref: RoleRef {
                api_group: "rbac.authorization.k8s.io".to_owned(),
                kind: "ClusterRole".to_owned(),
                name: self.token_reviewer_name(),
            },
            subjects: Some(vec![Subject {
                api_group: Some("rbac.authorization.k8s.io".to_owned()),
                kind: "Group".to_owned(),
                name: format!("system:serviceaccounts:{}", self.namespace),
                ..Subject::default()
            }]),
        }
    }

    fn token_reviewer_name(&self) -> String {
        token_reviewer_name(&self.namespace)
    }

    /// Returns the metadata of the cluster-scoped objects.
    fn cluster_scoped_metadata(&self) -> ObjectMeta {
        ObjectMeta { name: Some(self.token_reviewer_name()), namespace: None, ..self.metadata() }
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
                        tolerations: Some(UNRESPONSIVE_NODE_TAINTS.map(unresponsive_node_toleration).to_vec()),
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
                env_from_pod_field(IDENTITY_VARIABLE, "metadata.name"),
                env_from_pod_field(NAMESPACE_VARIABLE, "metadata.namespace"),
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

/// Returns the name of the cluster role and its binding for TokenReviews by the instances of a namespace.
pub(super) fn token_reviewer_name(namespace: &str) -> String {
    format!("kiln-tokens-{namespace}")
}

fn unresponsive_node_toleration(taint: &str) -> Toleration {
    Toleration {
        key: Some(taint.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        toleration_seconds: Some(UNRESPONSIVE_NODE_SECONDS),
        value: None,
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

/// Returns an environment variable with the value of a field of the pod.
fn env_from_pod_field(name: &str, field: &str) -> EnvVar {
    let field = ObjectFieldSelector { field_path: field.to_owned(), api_version: None };
    EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
    }
}
