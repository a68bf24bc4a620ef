//! Load of sessions that run queries continuously and compare the results with known ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bench::query_benchmark;
use bench::result_comparison::{self, Row};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use crate::client::{QueryError, ServiceAddress};

/// Time limit of a query, longer than the recovery from any fault takes.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
/// Delay before a session that has lost its connection reconnects.
const CONNECT_AGAIN_AFTER: Duration = Duration::from_millis(300);

/// Query with its expected result.
#[derive(Debug, Clone)]
pub(crate) struct KnownQuery {
    pub(crate) sql: String,
    pub(crate) rows: Vec<Row>,
}

/// Sessions that run queries until they are stopped.
pub(crate) struct Load {
    shared: Arc<Shared>,
    sessions: JoinSet<()>,
}

/// State that the sessions share.
struct Shared {
    door: ServiceAddress,
    /// Statements that each session runs after connecting.
    first: String,
    known: Vec<KnownQuery>,
    clock: SystemClock,
    is_over: AtomicBool,
    endings: Mutex<LoadOutcome>,
}

/// Outcomes of the queries of a load.
#[derive(Debug, Default)]
pub(crate) struct LoadOutcome {
    /// Number of queries with the expected result.
    pub(crate) right: usize,
    /// Differences from expected results.
    pub(crate) wrong: Vec<String>,
    /// Failed queries and connections.
    pub(crate) failed: Vec<QueryError>,
    /// Longest time of an answered query.
    pub(crate) longest: Duration,
    /// Longest time between two answers.
    pub(crate) silence: Duration,
    /// Time of the last answer.
    answered: Duration,
}

impl KnownQuery {
    /// Runs a query and takes its result as the expected one.
    pub(crate) async fn ask(client: &Client, sql: &str) -> KnownQuery {
        let rows = query_benchmark::run_query(client, sql).await.expect("each query has an answer");
        KnownQuery { sql: sql.to_owned(), rows }
    }

    /// Runs the query again and compares the results. Returns the failure of the query, or else the difference in words
    /// if there is one.
    async fn verify(&self, client: &Client) -> Result<Result<(), String>, QueryError> {
        let asked = tokio::time::timeout(ANSWER_TIME_MAX, query_benchmark::run_query(client, &self.sql));
        let rows = asked.await.map_err(|_| QueryError::late(ANSWER_TIME_MAX))??;
        Ok(result_comparison::compare(&self.rows, &rows).map_err(|difference| format!("{}: {difference}", self.sql)))
    }
}

impl Load {
    /// Starts a number of sessions. Each runs `first` and then the known queries, starting from a different one.
    pub(crate) fn begin(door: &ServiceAddress, first: &str, known: &[KnownQuery], sessions: usize) -> Load {
        let clock = SystemClock::new();
        let endings = Mutex::new(LoadOutcome { answered: clock.monotonic(), ..LoadOutcome::default() });
        let shared = Arc::new(Shared {
            door: door.clone(),
            first: first.to_owned(),
            known: known.to_vec(),
            clock,
            is_over: AtomicBool::new(false),
            endings,
        });
        let mut all = JoinSet::new();
        for number in 0..sessions {
            all.spawn(Arc::clone(&shared).session(number * known.len() / sessions));
        }
        Load { shared, sessions: all }
    }

    /// Returns the number of correct results so far.
    pub(crate) fn right(&self) -> usize {
        self.shared.endings.lock().right
    }

    /// Waits until `more` further queries are answered.
    pub(crate) async fn goes_on(&self, more: usize) {
        let (clock, wanted) = (&self.shared.clock, self.right() + more);
        let begun = clock.monotonic();
        while self.right() < wanted {
            assert!(
                clock.monotonic() - begun < ANSWER_TIME_MAX,
                "nobody is answered: {:?}",
                self.shared.endings.lock()
            );
            clock.sleep(Duration::from_millis(50)).await;
        }
    }

    /// Ends the sessions after their current queries, and returns the outcomes. Panics if a result was wrong.
    pub(crate) async fn end(mut self) -> LoadOutcome {
        self.shared.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.sessions.join_next().await {
            ended.expect("a session does not panic");
        }
        let endings = std::mem::take(&mut *self.shared.endings.lock());
        assert!(endings.wrong.is_empty(), "wrong answers: {:#?}", endings.wrong);
        assert!(0 < endings.right, "nobody was answered: {endings:?}");
        endings
    }

    /// Ends the sessions like `end`, and panics if a query failed.
    pub(crate) async fn end_whole(self) -> LoadOutcome {
        let endings = self.end().await;
        assert!(endings.failed.is_empty(), "queries have failed: {endings:#?}");
        endings
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    async fn session(self: Arc<Self>, from: usize) {
        let mut queries = self.known.iter().cycle().skip(from);
        while !self.is_over() {
            let lost = match self.enter().await {
                Ok(client) => self.ask(&client, &mut queries).await,
                Err(trouble) => Some(trouble),
            };
            let Some(trouble) = lost else { return };
            self.endings.lock().failed.push(trouble);
            self.clock.sleep(CONNECT_AGAIN_AFTER).await;
        }
    }

    async fn enter(&self) -> Result<Client, QueryError> {
        let client = self.door.connect().await?;
        client.batch_execute(&self.first).await?;
        Ok(client)
    }

    /// Runs queries until the load ends or the connection is lost, and returns the reason in the latter case.
    async fn ask<'a>(&self, client: &Client, queries: &mut impl Iterator<Item = &'a KnownQuery>) -> Option<QueryError> {
        while !self.is_over() {
            let known = queries.next().expect("they go on and on");
            let asked = self.clock.monotonic();
            let ended = known.verify(client).await;
            let mut endings = self.endings.lock();
            let now = self.clock.monotonic();
            match ended {
                Ok(Ok(())) => {
                    endings.right += 1;
                    endings.longest = endings.longest.max(now - asked);
                    endings.silence = endings.silence.max(now - endings.answered);
                    endings.answered = now;
                }
                Ok(Err(difference)) => endings.wrong.push(difference),
                Err(trouble) if trouble.code.is_some() && !client.is_closed() => endings.failed.push(trouble),
                Err(trouble) => return Some(trouble),
            }
        }
        None
    }
}
