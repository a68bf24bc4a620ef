//! Measures the fragment cache: the repeated queries of a dashboard, with the cache and without.

use std::time::Duration;

use tokio_postgres::Client;
use types::Clock;

use crate::Error;
use crate::measure::MeasurementReport;
use crate::query_benchmark::{QueryOptions, disable_fragment_cache, prepare, run_timed, wait_until_idle};
use crate::result_comparison;
use crate::score::geometric_mean;

/// Tiles of a dashboard over TPC-H's `lineitem`: name and query.
const TILES: &[(&str, &str)] = &[
    ("totals", "SELECT count(*), sum(l_extendedprice * (1 - l_discount)), avg(l_quantity) FROM lineitem"),
    (
        "status",
        "SELECT l_returnflag, l_linestatus, count(*), sum(l_extendedprice), avg(l_discount) FROM lineitem \
         WHERE l_shipdate <= DATE '1998-09-02' GROUP BY 1, 2 ORDER BY 1, 2",
    ),
    (
        "months",
        "SELECT date_trunc('month', l_shipdate) AS month, sum(l_extendedprice * (1 - l_discount)) FROM lineitem \
         GROUP BY 1 ORDER BY 1",
    ),
    (
        "best days",
        "SELECT l_shipdate, sum(l_extendedprice) AS revenue FROM lineitem GROUP BY 1 ORDER BY revenue DESC, 1 LIMIT 10",
    ),
    (
        "modes",
        "SELECT l_shipmode, extract(year FROM l_shipdate) AS year, count(*), sum(l_quantity) FROM lineitem \
         WHERE l_discount BETWEEN 0.05 AND 0.07 GROUP BY 1, 2 ORDER BY 1, 2",
    ),
    (
        "late",
        "SELECT l_shipmode, count(*) FILTER (WHERE l_receiptdate > l_commitdate), count(*) FROM lineitem \
         GROUP BY 1 ORDER BY 1",
    ),
    (
        "cube",
        "SELECT l_shipinstruct, l_shipmode, sum(l_extendedprice), count(*) FROM lineitem \
         WHERE l_shipdate >= DATE '1997-01-01' GROUP BY ROLLUP (1, 2) ORDER BY 1, 2",
    ),
    (
        "discounts",
        "SELECT l_discount, count(DISTINCT l_tax), min(l_shipdate), max(l_receiptdate) FROM lineitem GROUP BY 1 ORDER BY 1",
    ),
    (
        "comments",
        "SELECT length(l_comment) AS size, count(*) FROM lineitem WHERE l_comment LIKE '%express%' GROUP BY 1 ORDER BY 1",
    ),
    (
        "forecast",
        "SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_quantity < 24 AND l_shipdate >= DATE '1994-01-01'",
    ),
];

/// Runs all tiles in passes, first without the cache, then with it; the fastest run of each tile counts.
///
/// Unmeasured passes warm the page cache first. The first pass with the fragment cache, which fills it, is reported
/// separately.
pub async fn run(
    client: &Client,
    options: &QueryOptions,
    clock: &dyn Clock,
    say: &mut dyn FnMut(&str),
) -> Result<MeasurementReport, Error> {
    prepare(client, options, clock, say).await?;
    let mut report = MeasurementReport {
        benchmark: "dashboard",
        server: String::new(),
        setting: format!("{} tiles over lineitem at scale {}", TILES.len(), options.scale),
        measurements: Vec::new(),
        figures: Vec::new(),
        violations: Vec::new(),
    };
    // A page that is read twice enters the cache while the server is idle.
    disable_fragment_cache(client).await?;
    for _ in 0..2 {
        run_pass(client, clock).await?;
        wait_until_idle(client, clock, say).await?;
    }
    let without = run_passes(client, options.runs, clock).await?;
    run_statements(client, "SET kiln.fragment_cache = on").await?;
    let first = run_pass(client, clock).await?;
    let with = run_passes(client, options.runs, clock).await?;

    say(&format!("{:<12}{:>12}{:>14}{:>12}{:>10}", "tile", "without ms", "first with ms", "with ms", "ratio"));
    let mut ratios = Vec::new();
    for (number, (name, _)) in TILES.iter().enumerate() {
        let (without, first, with) = (&without[number], &first[number], &with[number]);
        for (what, answer) in
            [("the first answer with the cache", &first.1), ("a later answer with the cache", &with.1)]
        {
            if let Err(difference) = result_comparison::compare_exactly(&without.1, answer) {
                report.violations.push(format!("{name}: {what} is another: {difference}"));
            }
        }
        let ratio = without.0.as_secs_f64() / with.0.as_secs_f64().max(1e-9);
        say(&format_tile(name, [without.0, first.0, with.0], ratio));
        report.figures.push((format!("{name}, ratio"), ratio));
        ratios.push(ratio);
    }
    let all = |tiles: &[(Duration, Vec<result_comparison::Row>)]| tiles.iter().map(|(time, _)| *time).sum::<Duration>();
    let (without, first, with) = (all(&without), all(&first), all(&with));
    let ratio = without.as_secs_f64() / with.as_secs_f64().max(1e-9);
    say(&format_tile("all", [without, first, with], ratio));
    let mean = geometric_mean(ratios.into_iter()).unwrap_or(f64::NAN);
    say(&format!(
        "geometric mean of the ratios {mean:.1}; filling the cache took {:.2} of a pass without it",
        time_ratio(first, without)
    ));
    report.figures.push(("all, ratio".to_owned(), ratio));
    report.figures.push(("geometric mean, ratio".to_owned(), mean));
    report.figures.push(("first pass with the cache, of one without".to_owned(), time_ratio(first, without)));
    Ok(report)
}

type TileRuns = Vec<(Duration, Vec<result_comparison::Row>)>;

/// Runs all tiles `count` times; returns the fastest time of each tile and its last answer.
async fn run_passes(client: &Client, count: usize, clock: &dyn Clock) -> Result<TileRuns, Error> {
    let mut least = run_pass(client, clock).await?;
    for _ in 1..count.max(1) {
        for (known, (time, answer)) in least.iter_mut().zip(run_pass(client, clock).await?) {
            *known = (known.0.min(time), answer);
        }
    }
    Ok(least)
}

async fn run_pass(client: &Client, clock: &dyn Clock) -> Result<TileRuns, Error> {
    let mut tiles = Vec::with_capacity(TILES.len());
    for (number, (_, sql)) in (1..).zip(TILES) {
        tiles.push(run_timed(client, number, sql, clock).await?);
    }
    Ok(tiles)
}

async fn run_statements(client: &Client, sql: &str) -> Result<(), Error> {
    client.batch_execute(sql).await.map_err(|source| Error::Server { action: sql.to_owned(), source })
}

fn format_tile(name: &str, times: [Duration; 3], ratio: f64) -> String {
    let [without, first, with] = times.map(|time| time.as_secs_f64() * 1e3);
    format!("{name:<12}{without:>12.2}{first:>14.2}{with:>12.2}{ratio:>9.1}x")
}

fn time_ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64().max(1e-9)
}
