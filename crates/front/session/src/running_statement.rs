//! One running statement: its id, log span and clock, and how it is stopped.

use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use binder::PlanningTimings;
use parking_lot::Mutex;
use scheduler::Lease;
use settings::Settings;
use tokio::sync::SetOnce;
use tracing::Instrument;
use types::{Condition, QueryId, SqlError, SqlResult};
use url::Url;

use crate::backends::Backend;
use crate::disconnect_watcher::DisconnectWatcher;
use crate::instance::Instance;
use crate::interrupt::{InterruptReason, StatementHandle};
use crate::metrics::{Outcome, StatementKind};
use crate::query_log::without_password;
use crate::result_rows::Rows;
use crate::snapshot_age::snapshot_age;
use crate::statement_timer::StatementState;

/// Running statement, from its arrival to its end; it can no longer be stopped once this is dropped.
pub(crate) struct Statement {
    pub(crate) query_id: QueryId,
    pub(crate) started_us: i64,
    /// Kind of the statement as far as known, for the counters.
    kind: Mutex<StatementKind>,
    running: StatementHandle,
    disconnect_watcher: Arc<DisconnectWatcher>,
    limits: StatementLimits,
    started: Duration,
    /// Span of its log lines; created with the first of them.
    span: OnceLock<tracing::Span>,
    /// Lease of the worker that it runs on, once it has one.
    lease: SetOnce<Arc<Lease>>,
    /// Worker that was lost during an attempt, and that later attempts exclude.
    excluded_worker: OnceLock<Url>,
    instance: Arc<Instance>,
    backend: Arc<Backend>,
}

/// Limits of a statement in time: its settings and the age of its snapshot.
pub(crate) struct StatementLimits {
    pub(crate) settings: Arc<Settings>,
    /// Time at which the transaction's snapshot was taken, if earlier statements used the same snapshot.
    pub(crate) snapshot_us: Option<i64>,
}

impl Statement {
    pub(crate) fn begin(
        instance: &Arc<Instance>,
        backend: &Arc<Backend>,
        sql: &str,
        limits: StatementLimits,
        hung_up: Arc<DisconnectWatcher>,
    ) -> Self {
        let query_id = QueryId(instance.random.next_u64());
        let started_us = instance.clock.now_us();
        let started = instance.clock.monotonic();
        backend.begin_statement(sql, query_id, started_us, started);
        Self {
            query_id,
            started_us,
            kind: Mutex::new(StatementKind::Unknown),
            running: backend.interrupt.begin(),
            disconnect_watcher: hung_up,
            limits,
            started,
            span: OnceLock::new(),
            lease: SetOnce::new(),
            excluded_worker: OnceLock::new(),
            instance: Arc::clone(instance),
            backend: Arc::clone(backend),
        }
    }

    /// Runs `work` until it ends or the statement is stopped: by a cancel request, a timeout, the age of its snapshot,
    /// the end of its worker, the session or the client. Stopped work is dropped at its next await.
    pub(crate) async fn run_interruptible<T>(
        &self,
        work: Pin<&mut impl Future<Output = SqlResult<T>>>,
    ) -> SqlResult<T> {
        self.run_interruptible_unlogged(pin!(work.instrument(self.span().clone()))).await
    }

    /// Does the same as [`Statement::run_interruptible`] for work that writes nothing to the log: costs next to nothing
    /// if the work need not wait.
    pub(crate) async fn run_interruptible_unlogged<T>(
        &self,
        work: impl Future<Output = SqlResult<T>> + Unpin,
    ) -> SqlResult<T> {
        let result = tokio::select! {
            biased;
            result = work => result,
            // Polled last: most statements are done before it matters.
            reason = self.interrupted() => return Err(self.stop(reason)),
        };
        match (result, self.running.reason()) {
            // The operators noticed the stop first; the client still gets the true reason.
            (Err(error), Some(reason)) if error.condition == Condition::QueryCanceled => Err(reason.error()),
            (Err(error), None)
                if error.condition == Condition::QueryCanceled
                    && self.lease.get().is_some_and(|lease| lease.is_worker_shut_down()) =>
            {
                Err(self.stop(InterruptReason::LeaseEnded))
            }
            (result, _) => result,
        }
    }

    /// Completes with the reason when the statement has to stop.
    async fn interrupted(&self) -> InterruptReason {
        let timeout = async {
            match self.limits.settings.statement_timeout() {
                Some(timeout) => self.instance.clock.sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.running.stopped() => InterruptReason::CancelRequest,
            () = self.disconnect_watcher.disconnected(&*self.instance.clock) => InterruptReason::ClientDisconnected,
            () = timeout => InterruptReason::Timeout,
            () = self.snapshot_expired() => InterruptReason::SnapshotTooOld,
            () = async { self.lease.wait().await.wait_for_shutdown().await } => InterruptReason::LeaseEnded,
        }
    }

    /// Completes when the statement's snapshot is older than `max_snapshot_age`.
    async fn snapshot_expired(&self) {
        let Some(limit) = self.limits.settings.max_snapshot_age() else { return std::future::pending().await };
        let seen = snapshot_age(self.limits.snapshot_us.unwrap_or(self.started_us), self.instance.clock.now_us());
        self.instance.clock.sleep(limit.saturating_sub(seen)).await;
    }

    /// Stops the statement and returns the error for its client; the first reason counts.
    fn stop(&self, reason: InterruptReason) -> SqlError {
        self.running.stop(reason);
        self.running.reason().unwrap_or(reason).error()
    }

    /// Enters a state of the statement's timer.
    pub(crate) fn enter_state(&self, state: StatementState) {
        let now = self.instance.clock.monotonic();
        self.backend.activity.lock().timer.enter(state, now);
    }

    /// Adds time that was spent in a state before the statement began.
    pub(crate) fn add_time(&self, state: StatementState, time: Duration) {
        self.backend.activity.lock().timer.add_time(state, time);
    }

    /// Enters the run state of a plan with these planning times.
    pub(crate) fn enter_run(&self, phases: Option<&PlanningTimings>) {
        let now = self.instance.clock.monotonic();
        let mut doing = self.backend.activity.lock();
        doing.timer.enter(StatementState::Run, now);
        doing.timer.set_planning_timings(phases.cloned());
    }

    /// Shows the cluster that the statement waits for or runs on in `pg_stat_activity`.
    pub(crate) fn set_cluster(&self, cluster: Option<Arc<str>>) {
        self.backend.activity.lock().cluster = cluster;
    }

    /// Sets the lease that the statement runs on.
    pub(crate) fn set_lease(&self, lease: &Arc<Lease>) {
        self.backend.activity.lock().worker = Some(lease.worker());
        // A statement that is planned again keeps its lease.
        let _ = self.lease.set(Arc::clone(lease));
    }

    /// Excludes a lost worker from the next attempt; `false` where another worker is excluded already.
    pub(crate) fn exclude_worker(&self, worker: Url) -> bool {
        self.excluded_worker.set(worker).is_ok()
    }

    /// Returns the worker that attempts exclude.
    pub(crate) fn excluded_worker(&self) -> Option<&Url> {
        self.excluded_worker.get()
    }

    /// Takes over cluster and lease of rows that an earlier statement began to compute, such as those of a cursor.
    pub(crate) fn adopt_lease_of(&self, rows: &Rows) {
        let Some(admitted) = rows.admission() else { return };
        if self.lease.get().is_none() {
            self.set_cluster(self.instance.clusters.name(admitted.slot.cluster));
            self.set_lease(&admitted.lease);
        }
    }

    /// Returns the time since the statement began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.instance.clock.monotonic().saturating_sub(self.started)
    }

    /// Sets the kind of the statement, for the counters.
    pub(crate) fn set_kind(&self, kind: StatementKind) {
        *self.kind.lock() = kind;
    }

    /// Returns the kind of the statement, for the counters.
    pub(crate) fn kind(&self) -> StatementKind {
        *self.kind.lock()
    }

    /// Counts the statement's outcome and adds it to the query log and the server's log; `logged_from` is
    /// `log_min_duration_statement`.
    pub(crate) fn record(&self, sql: &str, result: Result<(), &SqlError>, log_min_duration: Option<Duration>) {
        let is_stopped = self.running.reason().is_some();
        let outcome = match result {
            Ok(()) => "DONE",
            Err(error) if is_stopped || error.condition == Condition::QueryCanceled => "CANCEL",
            Err(_) => "ERROR",
        };
        let ended =
            self.backend.end_statement(self.started_us, outcome, result.err().map(|error| error.condition.sqlstate()));
        self.instance.query_log.push(ended);
        self.count_and_log(sql, result, log_min_duration);
    }

    /// Does the same as [`Statement::record`] for the fast path, whose statements come by the hundred thousand: only
    /// failures are added to the query log.
    pub(crate) fn record_fast_path(
        &self,
        sql: &str,
        result: Result<(), &SqlError>,
        log_min_duration: Option<Duration>,
    ) {
        match result {
            Ok(()) => self.count_and_log(sql, result, log_min_duration),
            Err(_) => self.record(sql, result, log_min_duration),
        }
    }

    fn count_and_log(&self, sql: &str, result: Result<(), &SqlError>, log_min_duration: Option<Duration>) {
        let took = self.elapsed();
        let kind = self.kind();
        let outcome = match result {
            Ok(()) => Outcome::Done,
            Err(_) if self.running.reason().is_some() => Outcome::Cancelled,
            Err(_) => Outcome::Failed,
        };
        self.instance.metrics.count_statement(kind, outcome, took);
        let is_slow = log_min_duration.is_some_and(|limit| took >= limit);
        if result.is_ok() && !is_slow {
            return;
        }
        self.span().in_scope(|| {
            match result {
                Err(error) if error.condition == Condition::InternalError => {
                    let sql = without_password(sql);
                    tracing::error!(%error, detail = error.detail, sql, "statement failed with an internal error");
                }
                Err(error) => tracing::info!(%error, "statement failed"),
                Ok(()) => {}
            }
            if is_slow {
                let sql = without_password(sql);
                tracing::info!(duration_ms = took.as_secs_f64() * 1e3, sql, "slow statement");
            }
        });
    }

    fn span(&self) -> &tracing::Span {
        self.span.get_or_init(|| tracing::info_span!("statement", query_id = %self.query_id))
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        self.backend.interrupt.end();
    }
}
