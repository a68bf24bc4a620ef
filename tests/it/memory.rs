//! A result of a gigabyte to a client that reads slowly: the server's memory stays flat.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use types::{Clock, SystemClock};

use crate::server::Server;

/// Rows of about a kilobyte: a gigabyte in all.
const ROWS: u64 = 1_000_000;
/// What a running query may hold beyond an idle server: batches in flight and buffers, far less than the result.
const GROWTH_BYTES_MAX: u64 = 192 << 20;
/// Reads of the slow phase, each after a pause.
const SLOW_READS: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_costs_no_memory() {
    let server = Server::start();
    let idle = resident_bytes(server.pid());
    let mut stream = TcpStream::connect(("127.0.0.1", server.pg_port)).expect("the port is open");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
    stream.write_all(&startup()).expect("it listens");
    read_until_ready(&mut stream);
    let sql = format!("SELECT i, repeat('kiln', 250) FROM generate_series(1, {ROWS}) AS g(i)");
    stream.write_all(&query(&sql)).expect("it listens");

    let clock = SystemClock::new();
    let mut piece = vec![0; 1 << 16];
    let (mut received, mut peak) = (0_u64, 0);
    for _ in 0..SLOW_READS {
        received += stream.read(&mut piece).expect("rows come before the last is made") as u64;
        clock.sleep(Duration::from_millis(50)).await;
        peak = peak.max(resident_bytes(server.pid()));
    }
    // The rest as fast as it comes; the tail of what was read tells the end: ReadyForQuery.
    let mut tail = Vec::new();
    while !tail.ends_with(&[b'Z', 0, 0, 0, 5, b'I']) {
        let count = stream.read(&mut piece).expect("rows keep coming");
        assert!(count > 0, "the connection stays open");
        tail.extend_from_slice(&piece[..count]);
        tail.drain(..tail.len().saturating_sub(6));
        let before = received;
        received += count as u64;
        if before >> 26 != received >> 26 {
            peak = peak.max(resident_bytes(server.pid()));
        }
    }
    assert!(received > ROWS * 1_000, "the whole result came: {received} bytes");
    let growth = peak.saturating_sub(idle);
    assert!(growth < GROWTH_BYTES_MAX, "{} MB more than idle for a result of {} MB", growth >> 20, received >> 20);
}

fn startup() -> Vec<u8> {
    let mut body = 196_608_u32.to_be_bytes().to_vec();
    body.extend_from_slice(b"user\0kiln\0database\0kiln\0\0");
    let mut message = (body.len() as u32 + 4).to_be_bytes().to_vec();
    message.extend(body);
    message
}

fn query(sql: &str) -> Vec<u8> {
    let mut message = vec![b'Q'];
    message.extend((sql.len() as u32 + 5).to_be_bytes());
    message.extend(sql.as_bytes());
    message.push(0);
    message
}

fn read_until_ready(stream: &mut TcpStream) {
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).expect("the server greets");
        let length = u32::from_be_bytes(head[1..].try_into().expect("four bytes")) as usize - 4;
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("messages are whole");
        if head[0] == b'Z' {
            return;
        }
    }
}

/// Resident memory of a process, from `/proc`.
fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") << 10
}
