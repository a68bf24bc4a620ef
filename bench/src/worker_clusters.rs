//! Measures queries on clusters of worker processes against the same server without workers, on the same cores.

use std::time::Duration;

use tokio_postgres::Client;
use types::Clock;

use crate::measure::MeasurementReport;
use crate::measure::server_connection::{Server, run_statements};
use crate::query_benchmark::{disable_fragment_cache, run_timed, selected_queries};
use crate::{Error, QueryOptions, result_comparison, score};

/// Polling interval and maximum number of polls while waiting for workers to become ready.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const POLLS_MAX: usize = 1200;

/// Clusters created by a benchmark, by name.
pub struct Clusters {
    names: Vec<String>,
}

impl Clusters {
    /// Creates `count` clusters of `workers` worker processes each and waits until all workers are ready.
    ///
    /// # Errors
    /// Server errors, and [`Error::ComparedSystem`] if the workers are not ready after a minute.
    pub async fn create(client: &Client, count: usize, workers: usize, clock: &dyn Clock) -> Result<Self, Error> {
        let names: Vec<String> = (1..=count).map(|number| format!("bench_{number}")).collect();
        for name in &names {
            let sql = format!(
                "CREATE OR REPLACE CLUSTER {name} WITH (NODE_COUNT = {workers}, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL)"
            );
            run_statements(client, "making a cluster", &sql).await?;
        }
        let (made, wanted) = (Self { names }, count * workers);
        let query = "SELECT count(*) FROM sys.worker WHERE state = 'ready' AND cluster LIKE 'bench\\_%'";
        for _ in 0..POLLS_MAX {
            let failed = |source| Error::Server { action: "looking for workers".to_owned(), source };
            let ready: i64 = client.query_one(query, &[]).await.map_err(failed)?.get(0);
            if usize::try_from(ready).is_ok_and(|ready| wanted <= ready) {
                return Ok(made);
            }
            clock.sleep(POLL_INTERVAL).await;
        }
        Err(Error::ComparedSystem {
            system: "clusters".to_owned(),
            reason: format!("{wanted} workers were not ready within a minute"),
        })
    }

    /// Names of the clusters.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Drops the clusters.
    ///
    /// # Errors
    /// Server errors.
    pub async fn drop(self, client: &Client) -> Result<(), Error> {
        for name in &self.names {
            run_statements(client, "dropping a cluster", &format!("DROP CLUSTER {name}")).await?;
        }
        Ok(())
    }
}

/// Makes `clusters` the current role's default, of which a session uses the least busy; an empty list resets the
/// default.
///
/// # Errors
/// Server errors.
pub(crate) async fn set_default_clusters(client: &Client, clusters: &[String]) -> Result<(), Error> {
    let failed = |source| Error::Server { action: "asking for the role".to_owned(), source };
    let role: String = client.query_one("SELECT quote_ident(current_user)", &[]).await.map_err(failed)?.get(0);
    let sql = if clusters.is_empty() {
        format!("ALTER ROLE {role} RESET DEFAULT_CLUSTER")
    } else {
        format!("ALTER ROLE {role} SET DEFAULT_CLUSTER '{}'", clusters.join(","))
    };
    run_statements(client, "choosing clusters", &sql).await
}

/// Runs each query alternately on the server alone and on a cluster of `workers` processes, and compares the answers.
///
/// # Errors
/// Server errors.
pub async fn compare_with_server(
    server: &Server,
    options: &QueryOptions,
    workers: usize,
    clock: &dyn Clock,
    say: &mut dyn FnMut(&str),
) -> Result<MeasurementReport, Error> {
    let (alone, divided) = (server.connect().await?, server.connect().await?);
    let clusters = Clusters::create(&alone, 1, workers, clock).await?;
    run_statements(&divided, "choosing a cluster", &format!("USE CLUSTER {}", clusters.names()[0])).await?;
    let mut report = MeasurementReport {
        benchmark: "cluster",
        server: server.version.clone(),
        setting: format!("{} at scale {}, {workers} worker processes", options.suite, options.scale),
        measurements: Vec::new(),
        figures: Vec::new(),
        violations: Vec::new(),
    };
    for client in [&alone, &divided] {
        disable_fragment_cache(client).await?;
    }
    let (mut ratios, mut totals) = (Vec::new(), [Duration::ZERO; 2]);
    for number in selected_queries(options) {
        let sql = options.suite.queries()[number - 1];
        let mut least = [Duration::MAX; 2];
        // The first pair of runs fills the caches and does not count.
        for run in 0..=options.runs.max(1) {
            let mut answer = Vec::new();
            for (at, client) in [&alone, &divided].into_iter().enumerate() {
                let (time, theirs) = run_timed(client, number, sql, clock).await?;
                if 0 < run {
                    least[at] = least[at].min(time);
                }
                if at == 0 {
                    answer = theirs;
                } else if let Err(difference) = result_comparison::compare(&answer, &theirs) {
                    report.violations.push(format!("query {number} on the cluster: {difference}"));
                }
            }
        }
        let [one, many] = least.map(|time| time.as_secs_f64());
        say(&format!("q{number:02}   alone {one:>8.3} s   {workers} workers {many:>8.3} s   {:>6.2}x", many / one));
        report.figures.push((format!("q{number:02}, ratio"), many / one));
        ratios.push(many / one);
        totals[0] += least[0];
        totals[1] += least[1];
    }
    let [one, many] = totals.map(|time| time.as_secs_f64());
    let mean = score::geometric_mean(ratios.into_iter()).unwrap_or(1.0);
    say(&format!(
        "alone {one:.2} s, {workers} workers {many:.2} s: {:.2}x in total, geometric mean {mean:.2}",
        many / one
    ));
    report.figures.push(("total, ratio".to_owned(), many / one));
    report.figures.push(("geometric mean, ratio".to_owned(), mean));
    clusters.drop(&alone).await?;
    Ok(report)
}
