use std::sync::Arc;
use std::time::Duration;

use rcgen::PublicKeyData;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::json;
use types::random::SeededRandom;

use super::*;
use crate::resources::Instance;

const DAY: i64 = 24 * 3_600;

fn at(day: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + day * DAY).expect("a small number")
}

fn instance(more: serde_json::Value) -> Instance {
    let mut spec =
        json!({ "image": "kiln", "resources": { "cpu": "1", "memory": "1Gi" }, "volume": { "size": "1Gi" } });
    spec.as_object_mut().expect("it is one").extend(more.as_object().expect("it is one").clone());
    serde_json::from_value(json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "Instance",
        "metadata": { "name": "dw", "namespace": "warehouses", "uid": "1" },
        "spec": spec,
    }))
    .expect("it is an instance")
}

fn authority() -> Authority {
    Authority::create("warehouses", None, at(0)).expect("randomness is available")
}

fn signed(instance: &Instance, by: &Authority, there: Option<&Secret>, now: Timestamp) -> Secret {
    certificate_secret(instance, by, there, now).expect("randomness is available")
}

#[test]
fn an_authority_stays_until_it_is_old_and_keeps_its_key_then() {
    let made = authority();
    let found = Authority::from_secret(made.secret(), "warehouses", at(2_000)).expect("it is good for six years");
    assert_eq!(found.secret(), made.secret());
    assert!(Authority::from_secret(made.secret(), "warehouses", at(2_500)).is_none(), "it grows old");
    let renewed = Authority::create("warehouses", Some(made.secret()), at(2_500)).expect("randomness is available");
    assert_ne!(renewed.certificate, made.certificate);
    assert_eq!(renewed.issuer.key().der_bytes(), made.issuer.key().der_bytes(), "who trusts the old one trusts it");
    assert!(Authority::from_secret(renewed.secret(), "warehouses", at(4_000)).is_some());
}

/// Returns whether a client that trusts `authority` accepts the certificate for `host`.
fn believes(authority: &Authority, certificate: &Secret, host: &str, now: Timestamp) -> bool {
    let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("it is a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(der(&authority.certificate)).expect("it is an authority's");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().expect("it has a root");
    let host = ServerName::try_from(host.to_owned()).expect("it is a name");
    let since = Duration::from_secs(now.as_second().unsigned_abs());
    let shown = der(secret_text(certificate, CERTIFICATE_KEY).expect("it has one"));
    verifier.verify_server_cert(&shown, &[], &host, &[], UnixTime::since_unix_epoch(since)).is_ok()
}

#[test]
fn clients_that_trust_an_authority_believe_its_instances_also_when_it_was_renewed() {
    let (authority, dw) = (authority(), instance(json!({ "tls": { "names": ["10.0.0.1"] } })));
    let first = signed(&dw, &authority, None, at(0));
    for host in ["dw.warehouses.svc", "localhost", "127.0.0.1", "10.0.0.1"] {
        assert!(believes(&authority, &first, host, at(80)), "{host}");
    }
    assert!(!believes(&authority, &first, "dw.others.svc", at(80)));
    assert!(!believes(&authority, &first, "localhost", at(91)), "it is old");
    assert!(!believes(&self::authority(), &first, "localhost", at(1)), "somebody else's");
    let renewed =
        Authority::create("warehouses", Some(authority.secret()), at(2_500)).expect("randomness is available");
    let later = signed(&dw, &renewed, None, at(2_500));
    assert!(believes(&authority, &later, "localhost", at(2_501)), "the certificate of before is still good");
    assert!(believes(&renewed, &later, "localhost", at(2_501)));
    assert!(Authority::from_secret(authority.secret(), "others", at(0)).is_none(), "it has another name there");
}

#[test]
fn a_secret_that_the_operator_makes_is_not_one_that_others_have_made() {
    let own = instance(json!({ "tls": { "secretName": "dw-tls" }, "auth": { "secretName": "dw-superuser" } }));
    assert!(referenced_secrets(&own).is_empty());
}

#[test]
fn what_was_done_to_an_authority_is_seen() {
    let other = authority();
    for key in [CERTIFICATE_KEY, PRIVATE_KEY] {
        for value in [None, other.secret().data.as_ref().and_then(|data| data.get(key)).cloned()] {
            let mut secret = authority().secret().clone();
            let data = secret.data.as_mut().expect("it has data");
            match value {
                Some(value) => drop(data.insert(key.to_owned(), value)),
                None => drop(data.remove(key)),
            }
            assert!(Authority::from_secret(&secret, "warehouses", at(0)).is_none(), "{key}");
        }
    }
    let mut damaged = authority().secret().clone();
    damaged.data.as_mut().expect("it has data").insert(PRIVATE_KEY.to_owned(), ByteString(b"\xff".to_vec()));
    Authority::create("warehouses", Some(&damaged), at(0)).expect("it gets a new key");
}

#[test]
fn a_certificate_is_signed_again_when_it_is_old_or_not_what_it_should_be_and_never_else() {
    let (authority, plain) = (authority(), instance(json!({})));
    let first = signed(&plain, &authority, None, at(0));
    assert_eq!(first.type_.as_deref(), Some("kubernetes.io/tls"));
    assert_eq!(secret_text(&first, CA_CERTIFICATE_KEY), Some(authority.certificate.as_str()));
    assert_eq!(signed(&plain, &authority, Some(&first), at(59)), first, "nothing is written for it");
    let is_other = |second: &Secret| {
        assert_ne!(secret_text(second, CERTIFICATE_KEY), secret_text(&first, CERTIFICATE_KEY));
        assert_ne!(secret_text(second, PRIVATE_KEY), secret_text(&first, PRIVATE_KEY));
    };
    is_other(&signed(&plain, &authority, Some(&first), at(60)));
    is_other(&signed(&instance(json!({ "tls": { "names": ["dw.example"] } })), &authority, Some(&first), at(1)));
    is_other(&signed(&plain, &self::authority(), Some(&first), at(1)));
    let mut without_mark = first.clone();
    without_mark.metadata.annotations = None;
    is_other(&signed(&plain, &authority, Some(&without_mark), at(1)));
}

#[test]
fn a_certificate_has_the_names_by_which_clients_come() {
    let names = subject_names(&instance(json!({ "tls": { "names": ["dw.example", "10.0.0.1", "localhost"] } })));
    for name in ["dw", "dw.warehouses.svc", "dw-0.dw-pods.warehouses.svc.cluster.local", "127.0.0.1", "dw.example"] {
        assert_eq!(names.iter().filter(|there| *there == name).count(), 1, "{name}: {names:?}");
    }
    assert_eq!(names.iter().filter(|there| *there == "localhost").count(), 1, "{names:?}");
}

#[test]
fn a_password_is_drawn_once_and_stays_also_where_somebody_else_chose_it() {
    let (plain, random) = (instance(json!({})), SeededRandom::new(1));
    let first = superuser_secret(&plain, None, &random);
    assert_eq!(secret_text(&first, PASSWORD_KEY).map(str::len), Some(32));
    assert_eq!(secret_text(&first, "username"), Some("kiln"));
    assert_eq!(superuser_secret(&plain, Some(&first), &random), first);
    assert_ne!(superuser_secret(&plain, None, &random), first, "by chance");
    let mut chosen = first.clone();
    chosen.data = Some(secret_data([(PASSWORD_KEY, "correct horse")]));
    let kept = superuser_secret(&plain, Some(&chosen), &random);
    assert_eq!(
        (secret_text(&kept, PASSWORD_KEY), secret_text(&kept, "username")),
        (Some("correct horse"), Some("kiln"))
    );
}

#[test]
fn secrets_that_are_named_have_to_be_there_with_their_keys() {
    let all = instance(json!({
        "storage": { "url": "s3://bucket", "secretName": "bucket" },
        "tls": { "secretName": "cert" },
        "auth": { "secretName": "boss" },
    }));
    let [storage, tls, auth] = &referenced_secrets(&all)[..] else { panic!("three are named") };
    assert_eq!((storage.name, tls.name, auth.name), ("bucket", "cert", "boss"));
    let said = |named: &SecretReference<'_>, secret: Option<&Secret>| {
        check_secret(named, secret).expect_err("it is not usable").to_string()
    };
    assert_eq!(said(auth, None), "there is no Secret boss, which spec.auth.secretName names");
    let half = Secret { data: Some(secret_data([(CERTIFICATE_KEY, "x"), (PRIVATE_KEY, "")])), ..Secret::default() };
    assert_eq!(said(tls, Some(&half)), "the Secret cert, which spec.tls.secretName names, has no tls.key");
    assert_eq!(check_secret(storage, Some(&Secret::default())), Ok(()));
    assert!(referenced_secrets(&instance(json!({}))).is_empty());
}
