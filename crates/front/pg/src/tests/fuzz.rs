//! Fuzz tests: arbitrary bytes cause an error or a disconnect for their sender and do not affect other clients.

use types::Random;
use types::random::SeededRandom;

use super::TestServer;
use super::wire::{RawClient, bind, execute, message, parse, startup, sync, text};

const ROUNDS: u64 = 300;

fn bytes(random: &SeededRandom, most: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(random.next_u64() % most).unwrap()];
    random.fill(&mut bytes);
    bytes
}

/// Sends bytes and reads until the server disconnects or sends nothing more.
async fn send_and_drain(door: &TestServer, mut wire: RawClient, bytes: &[u8]) {
    wire.send_ignoring_errors(bytes).await;
    wire.finish().await;
    while let Ok(Some(_)) = tokio::time::timeout(std::time::Duration::from_secs(5), wire.next()).await {}
    drop(wire);
    let _ = door;
}

async fn check_serves(door: &TestServer) {
    let said = door.client().await.query("").await;
    assert_eq!(super::wire::kinds(&said), "IZ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_bytes_before_start_up() {
    let door = TestServer::start().await;
    let random = SeededRandom::new(1);
    for _ in 0..ROUNDS {
        send_and_drain(&door, RawClient::open(door.address).await, &bytes(&random, 4096)).await;
    }
    check_serves(&door).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn start_up_packets_with_bytes_changed_or_missing() {
    let door = TestServer::start().await;
    let random = SeededRandom::new(2);
    let whole = startup(&[("user", "kiln"), ("database", "kiln"), ("options", "-c search_path=a")]);
    for _ in 0..ROUNDS {
        let mut packet = whole.to_vec();
        let at = usize::try_from(random.next_u64()).unwrap() % packet.len();
        packet[at] = random.next_u64().to_le_bytes()[0];
        packet.truncate(1 + usize::try_from(random.next_u64()).unwrap() % packet.len());
        send_and_drain(&door, RawClient::open(door.address).await, &packet).await;
    }
    check_serves(&door).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_random_content_and_messages_cut_short() {
    let door = TestServer::start().await;
    let random = SeededRandom::new(3);
    let batch = [
        parse("s", "select $1::int4", &[23]),
        bind("p", "s", &[Some("7")], &[0]),
        execute("p", 0),
        sync(),
        message('Q', &text("begin; select 1; commit")),
    ]
    .concat();
    for round in 0..ROUNDS {
        let wire = door.client().await;
        let sent = match round % 3 {
            0 => {
                let kind = b"QPBDECHSpdcfX"[usize::try_from(random.next_u64() % 13).unwrap()];
                message(char::from(kind), &bytes(&random, 256)).to_vec()
            }
            1 => {
                let mut sent = batch.clone();
                let at = usize::try_from(random.next_u64()).unwrap() % sent.len();
                sent[at] = random.next_u64().to_le_bytes()[0];
                sent
            }
            _ => batch[..usize::try_from(random.next_u64()).unwrap() % batch.len()].to_vec(),
        };
        send_and_drain(&door, wire, &sent).await;
    }
    check_serves(&door).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_length_beyond_every_limit_is_refused_at_once() {
    let door = TestServer::start().await;
    let mut stranger = RawClient::open(door.address).await;
    stranger.send_raw(&[&u32::MAX.to_be_bytes()[..], &[0; 4]].concat()).await;
    assert_eq!(stranger.next().await.unwrap().field('C').as_deref(), Some("08P01"));
    let mut client = door.client().await;
    client.send_raw(&[&b"Q"[..], &0x7fff_ffff_u32.to_be_bytes()].concat()).await;
    let said = client.next().await.unwrap();
    assert_eq!((said.field('S').unwrap(), said.field('C').unwrap()), ("FATAL".into(), "08P01".into()));
    assert_eq!(client.next().await, None);
}
