//! TPC-C with the specification's schema, mix and inputs, but without keying and think times.
//!
//! - `schema.rs`, `random_inputs.rs` and `load.rs`: tables and initial rows,
//! - `new_order.rs`, `payment.rs`, `order_status.rs`, `delivery.rs` and `stock_level.rs`: the transactions, with
//!   `customer.rs`,
//! - `client.rs`: the terminal that runs the mix,
//! - `consistency_conditions.rs`: consistency conditions, checked after loading and after the run.

mod client;
mod consistency_conditions;
mod customer;
mod delivery;
mod load;
mod new_order;
mod order_status;
mod payment;
mod random_inputs;
mod schema;
mod stock_level;

use std::sync::Arc;

use types::Clock;

use self::client::Terminal;
use crate::Error;
use crate::measure::server_connection::{Server, Storage};
use crate::measure::{MeasurementReport, MeasurementTime, run_clients};

/// Options of the TPC-C benchmark.
#[derive(Debug, Clone)]
pub struct TpccOptions {
    pub warehouses: i32,
    pub clients: usize,
    pub duration: MeasurementTime,
    pub storage: Storage,
    /// Isolation level as BEGIN names it, such as `read committed`.
    pub isolation: String,
    /// True if the tables are loaded already.
    pub loaded: bool,
}

/// Loads and checks the tables, runs the mix, and checks again; `say` receives progress lines.
pub async fn run(
    server: &Server,
    options: &TpccOptions,
    clock: &Arc<dyn Clock>,
    say: &mut dyn FnMut(&str),
) -> Result<MeasurementReport, Error> {
    let mut report = MeasurementReport {
        benchmark: "tpcc",
        server: server.version.clone(),
        setting: format!(
            "{} warehouses, {} clients, {}, storage {:?}",
            options.warehouses, options.clients, options.isolation, options.storage
        ),
        measurements: Vec::new(),
        figures: Vec::new(),
        violations: Vec::new(),
    };
    let checker = server.connect().await?;
    if !options.loaded {
        let start = clock.monotonic();
        load::load(server, options, say).await?;
        say(&format!("loaded in {:.1} s", (clock.monotonic() - start).as_secs_f64()));
        let violations = consistency_conditions::check_conditions(&checker, true).await?;
        report.violations.extend(violations.into_iter().map(|violation| format!("after loading: {violation}")));
    }
    let mut clients = Vec::with_capacity(options.clients);
    for number in 0..options.clients {
        clients.push(Terminal::connect(server, options, number).await?);
    }
    let outcome = run_clients(clients, options.duration, clock).await;
    say(&MeasurementReport::table("tpcc", &outcome));
    let tpm_c = outcome.per_second(Some(new_order::OPERATION_NAME)) * 60.0;
    say(&format!("tpmC {tpm_c:.0} (new orders that were kept, in a minute)"));
    report.figures.push(("tpmC".to_owned(), tpm_c));
    let violations = consistency_conditions::check_conditions(&checker, false).await?;
    report.violations.extend(violations.into_iter().map(|violation| format!("after the run: {violation}")));
    match report.violations.as_slice() {
        [] => say("all 12 consistency conditions hold"),
        violations => violations.iter().for_each(|violation| say(violation)),
    }
    report.measurements.push(("mix".to_owned(), outcome));
    Ok(report)
}
