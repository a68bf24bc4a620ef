//! More connections than allowed, and bytes that are no valid protocol: refused without a crash.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use futures::future::join_all;
use tokio_postgres::error::SqlState;
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use crate::server::Server;

/// Number of concurrent clients, for a server with the default limit and one with a small limit.
const CLIENTS: usize = 510;
/// Longest time until a server notices that hundreds of clients have gone.
const ROOM_AGAIN_TIME_MAX: Duration = Duration::from_secs(120);
/// Number of connections that send noise.
const NOISES: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_connections_are_served_or_refused() {
    for limit in ["500", "50"] {
        let server = Server::start_with(&["--max-connections", limit], &[]);
        let connections = join_all((0..CLIENTS).map(|_| server.connect_as("user=kiln dbname=kiln"))).await;
        let (mut served, mut refused) = (Vec::new(), 0);
        for connection in connections {
            match connection {
                Ok(client) => served.push(client),
                Err(error) => {
                    assert_eq!(error.code(), Some(&SqlState::TOO_MANY_CONNECTIONS), "{error:?}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 0 && !served.is_empty(), "of {CLIENTS}, {refused} were refused with a limit of {limit}");
        let answers = join_all(served.iter().map(|client| client.query_one("SELECT 40 + 2", &[]))).await;
        for answer in answers {
            assert_eq!(answer.expect("who is in is served").get::<_, i32>(0), 42);
        }
        drop(served);
        let clock = SystemClock::new();
        let given_up = clock.monotonic() + ROOM_AGAIN_TIME_MAX;
        while let Err(error) = server.connect_as("user=kiln dbname=kiln").await {
            assert_eq!(error.code(), Some(&SqlState::TOO_MANY_CONNECTIONS), "{error:?}");
            assert!(clock.monotonic() < given_up, "there is room again once clients have gone");
            clock.sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_and_torn_messages_end_their_connection_and_nothing_else() {
    let server = Server::start();
    let random = SeededRandom::new(0x57_04_12);
    let witness = server.connect().await;
    let port = server.pg_port;
    let noises: Vec<Vec<u8>> = (0..NOISES).map(|round| noise(&random, round)).collect();
    tokio::task::spawn_blocking(move || noises.iter().for_each(|noise| send(port, noise)))
        .await
        .expect("noise is sent without a panic");
    witness.batch_execute("SELECT 1").await.expect("a connection from before goes on");
    server.connect().await.batch_execute("SELECT 1").await.expect("new ones are served");
}

/// Returns the bytes of one connection: plain noise, a message header with a wrong length, or a valid beginning with
/// a truncated or corrupted end.
fn noise(random: &SeededRandom, round: usize) -> Vec<u8> {
    let mut bytes = vec![0; random.next_u64() as usize % 400];
    random.fill(&mut bytes);
    match round % 4 {
        0 => bytes,
        1 => {
            let length = [0_u32, 3, 8, 1 << 30, u32::MAX][round / 4 % 5];
            [&length.to_be_bytes()[..], &bytes].concat()
        }
        2 => {
            let mut session = session();
            session.truncate(random.next_u64() as usize % (session.len() + 1));
            session
        }
        _ => {
            let mut session = session();
            for _ in 0..4 {
                let at = random.next_u64() as usize % session.len();
                session[at] = random.next_u64() as u8;
            }
            [session, bytes].concat()
        }
    }
}

/// Returns a valid session: startup, a simple query, an extended one, and a COPY without data.
fn session() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut startup = 196_608_u32.to_be_bytes().to_vec();
    startup.extend_from_slice(b"user\0kiln\0database\0kiln\0\0");
    bytes.extend((startup.len() as u32 + 4).to_be_bytes());
    bytes.extend(startup);
    let mut put = |kind: u8, body: &[u8]| {
        bytes.push(kind);
        bytes.extend((body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
    };
    put(b'Q', b"SELECT 1\0");
    put(b'P', b"s\0SELECT $1::int + 1\0\0\0");
    put(b'B', b"p\0s\0\0\0\0\x01\0\0\0\x0241\0\0");
    put(b'D', b"Pp\0");
    put(b'E', b"p\0\0\0\0\0");
    put(b'S', b"");
    put(b'Q', b"CREATE TABLE IF NOT EXISTS noise (a int); COPY noise FROM STDIN\0");
    put(b'd', b"1\n2\n");
    put(b'c', b"");
    bytes
}

fn send(port: u16, bytes: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the port stays open");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
    // The server may close first, as it should.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.take(1 << 20).read_to_end(&mut answer);
}
