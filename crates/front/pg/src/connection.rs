//! Connection of an authenticated client: reads messages, keeps the state of the protocol, sends results and errors.

use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete};
use pgwire::messages::response::{EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::{Authentication, BackendKeyData, SecretKey};
use pgwire::tokio::server::MaybeTls;
use session::backends::Backend;
use session::disconnect_watcher::DisconnectWatcher;
use session::extended_query_requests::{Target, protocol_violation};
use session::instance::Instance;
use session::interrupt::terminated_error;
use session::message_severity::Severity;
use session::result_sink::ResultSink;
use session::transaction_block_status::BlockStatus;
use session::{Session, StatementPosition};
use tokio_util::sync::CancellationToken;
use types::{Condition, SqlError, SqlResult};

use crate::buffered_transport::{Inbox, Outbox};
use crate::client_result_sink::ClientSink;
use crate::data_rows::row_description;
use crate::frontend_messages::{DecodedMessage, FrontendMessage};
use crate::parameter_status::ReportedSettings;
use crate::startup::PendingConnection;

/// Connection of an authenticated client.
pub(crate) struct Connection {
    instance: Arc<Instance>,
    backend: Arc<Backend>,
    session: Session,
    client: ClientSink,
    /// Settings that were last reported to the client.
    reported_settings: ReportedSettings,
    /// True after a failed message of the extended protocol: all messages are skipped up to the next Sync.
    is_skipping_to_sync: bool,
}

/// Next action after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextAction {
    /// Read further messages of the batch; no ReadyForQuery is due.
    Read,
    /// Send ReadyForQuery.
    SendReady,
    /// Close the connection.
    Close,
}

impl Connection {
    /// Buffers the end of authentication: AuthenticationOk, the reported settings and the key for CancelRequest.
    pub(crate) fn new(instance: Arc<Instance>, opened: PendingConnection, mut session: Session) -> Self {
        let backend = Arc::clone(session.backend());
        session.disconnect_watcher = Arc::new(disconnect_watcher(&opened.stream));
        let (read_half, write_half) = tokio::io::split(opened.stream);
        let metrics = Arc::clone(&instance.metrics);
        let mut outbox = Outbox::new(write_half, Arc::clone(&metrics), Arc::clone(&backend.client_wait));
        outbox.put(PgWireBackendMessage::Authentication(Authentication::Ok));
        let secret = SecretKey::Bytes(backend.secret.clone());
        let mut reported_settings = ReportedSettings::default();
        reported_settings.report(&session, &mut outbox);
        outbox.put(PgWireBackendMessage::BackendKeyData(BackendKeyData::new(backend.pid, secret)));
        let inbox = Inbox::new(read_half, opened.unread, metrics);
        Self {
            instance,
            backend,
            session,
            client: ClientSink { inbox, outbox },
            reported_settings,
            is_skipping_to_sync: false,
        }
    }

    /// Serves the client until it leaves or its connection is terminated.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut next = NextAction::SendReady;
        let mut error_sent = false;
        while next != NextAction::Close {
            if next == NextAction::SendReady && self.send_ready().await.is_err() {
                break;
            }
            // Between the messages of a batch the session is not idle: the batch ends with Sync.
            let idle = next == NextAction::SendReady;
            let read = if idle { None } else { self.client.inbox.next_buffered() };
            let listened = match read {
                Some(decoded) => {
                    // Lets other connections run, however many messages have arrived.
                    tokio::task::consume_budget().await;
                    decoded.map(Some)
                }
                None => self.next_message(&shutdown, idle).await,
            };
            next = match listened {
                Ok(Some(decoded)) => match self.try_handle_fast(&decoded) {
                    Some(Ok(next)) if !self.client.outbox.is_full() => next,
                    answered => self.handle_and_report(decoded, answered).await,
                },
                Ok(None) => NextAction::Close,
                Err(fatal) => {
                    self.client.error(Severity::Fatal, &fatal, None);
                    error_sent = true;
                    NextAction::Close
                }
            };
            if self.backend.interrupt.termination().is_cancelled() && !error_sent {
                self.client.error(Severity::Fatal, &terminated_error(), None);
                next = NextAction::Close;
            }
        }
        self.session.abandon();
        self.session.drop_temporary().await;
        tokio::select! {
            // The client may be gone or not reading: errors do not matter now.
            _ = self.client.outbox.close() => {}
            () = self.instance.clock.sleep(CLOSE_TIMEOUT) => {}
        }
    }

    /// Sends ReadyForQuery, preceded by notices and changed settings.
    async fn send_ready(&mut self) -> std::io::Result<()> {
        self.send_notices();
        self.reported_settings.report(&self.session, &mut self.client.outbox);
        let status = self.session.status();
        self.backend.begin_idle(status, self.instance.clock.now_us());
        self.client.put(PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(transaction_status(status))));
        // Sessions that are ready run first: their clients, on this machine or behind one adapter, then wake once for
        // many results.
        tokio::task::yield_now().await;
        self.client.outbox.flush().await
    }

    /// Waits for the next message; `None` once the client is gone. An error ends the connection.
    async fn next_message(&mut self, shutdown: &CancellationToken, idle: bool) -> SqlResult<Option<DecodedMessage>> {
        let timeout = self.session.idle_timeout();
        let clock = &self.instance.clock;
        let idle_timeout = async {
            match timeout {
                Some((limit, error)) => {
                    clock.sleep(limit).await;
                    error
                }
                None => std::future::pending().await,
            }
        };
        let mut idle_for_long = pin!(idle_timeout);
        loop {
            let left = self.session.snapshot_time_left();
            let snapshot_timeout = async {
                match left {
                    Some(left) => clock.sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled(), if idle => return Err(terminated_error()),
                () = self.backend.interrupt.termination().cancelled() => return Err(terminated_error()),
                decoded = self.client.inbox.next() => return decoded.transpose(),
                error = &mut idle_for_long => return Err(error),
                () = snapshot_timeout => self.session.release_old_snapshots(),
            }
        }
    }

    /// Handles a message, unless the fast path has `answered` it, and sends its error if it failed.
    async fn handle_and_report(
        &mut self,
        decoded: DecodedMessage,
        fast_result: Option<SqlResult<NextAction>>,
    ) -> NextAction {
        let extended = b"PBDECH".contains(&decoded.kind);
        if self.is_skipped(&decoded) {
            return NextAction::Read;
        }
        let result = match (fast_result, decoded.message) {
            (Some(answered), _) => answered,
            (None, Ok(message)) => self.handle_message(message).await,
            (None, Err(error)) => Err(error),
        };
        match result {
            Ok(next) => {
                self.session.take_query_id();
                if self.client.outbox.flush_if_full().await.is_ok() { next } else { NextAction::Close }
            }
            // `run` sends this error as the fatal one.
            Err(error) if self.is_terminated_by(&error) => {
                self.session.fail();
                NextAction::Close
            }
            Err(error) => {
                self.session.fail();
                self.send_notices();
                let query_id = self.session.take_query_id();
                self.client.error(Severity::Error, &error, query_id);
                self.is_skipping_to_sync = extended;
                if !extended {
                    return NextAction::SendReady;
                }
                // Drivers that use Flush wait for the error before they send Sync.
                if self.client.outbox.flush().await.is_ok() { NextAction::Read } else { NextAction::Close }
            }
        }
    }

    /// Whether a statement failed because the connection was terminated.
    fn is_terminated_by(&self, error: &SqlError) -> bool {
        error.condition == Condition::AdminShutdown && self.backend.interrupt.termination().is_cancelled()
    }

    /// Whether a message is skipped because an earlier one of its batch failed.
    fn is_skipped(&self, decoded: &DecodedMessage) -> bool {
        self.is_skipping_to_sync && !matches!(decoded.kind, b'S' | b'X')
    }

    /// Handles a message that needs no waiting; `None`, without any effect, if it may need to wait. Most messages of
    /// drivers are handled here, without the large future of [`Self::handle_message`].
    fn try_handle_fast(&mut self, decoded: &DecodedMessage) -> Option<SqlResult<NextAction>> {
        if self.is_skipped(decoded) {
            return None;
        }
        let answer = match decoded.message.as_ref().ok()? {
            FrontendMessage::Bind(bind) => {
                let bound = self.session.try_bind_fast(bind)?;
                Some(bound.map(|()| {
                    self.client.put(PgWireBackendMessage::BindComplete(BindComplete::new()));
                    NextAction::Read
                }))
            }
            FrontendMessage::Execute { portal, rows_max: 0 } => {
                let ran = self.session.try_execute_fast(portal, &mut self.client)?;
                Some(ran.map(|()| NextAction::Read))
            }
            FrontendMessage::Sync => self.session.try_sync_fast().then(|| {
                self.is_skipping_to_sync = false;
                Ok(NextAction::SendReady)
            }),
            _ => None,
        };
        if matches!(answer, Some(Ok(_))) {
            self.session.take_query_id();
        }
        answer
    }

    /// Handles any message.
    async fn handle_message(&mut self, message: FrontendMessage) -> SqlResult<NextAction> {
        match message {
            FrontendMessage::Query(sql) => {
                Box::pin(self.query(&Arc::new(sql))).await?;
                return Ok(NextAction::SendReady);
            }
            FrontendMessage::Parse { name, sql, parameter_types } => {
                Box::pin(self.session.prepare(&name, &Arc::new(sql), &parameter_types)).await?;
                self.client.put(PgWireBackendMessage::ParseComplete(ParseComplete::new()));
            }
            FrontendMessage::Bind(bind) => {
                Box::pin(self.session.bind(&bind)).await?;
                self.client.put(PgWireBackendMessage::BindComplete(BindComplete::new()));
            }
            FrontendMessage::Describe(target) => self.describe(&target)?,
            FrontendMessage::Execute { portal, rows_max } => {
                let rows_max = u64::try_from(rows_max).ok().filter(|rows_max| *rows_max > 0);
                self.session.execute_portal(&portal, rows_max, &mut self.client).await?;
                self.send_notices();
            }
            FrontendMessage::Close(target) => {
                self.session.close(&target);
                self.client.put(PgWireBackendMessage::CloseComplete(CloseComplete::new()));
            }
            FrontendMessage::Flush => {
                self.client.outbox.flush().await.map_err(crate::client_result_sink::connection_lost)?;
            }
            FrontendMessage::Sync => {
                self.is_skipping_to_sync = false;
                Box::pin(self.session.sync()).await?;
                return Ok(NextAction::SendReady);
            }
            // Data of a COPY that has failed: the client has not noticed yet.
            FrontendMessage::CopyData(_) | FrontendMessage::CopyDone | FrontendMessage::CopyFail(_) => {}
            FrontendMessage::Terminate => return Ok(NextAction::Close),
            FrontendMessage::Password(_) => return Err(protocol_violation("unexpected password message")),
        }
        Ok(NextAction::Read)
    }

    /// Runs a simple query: the statements of the string one after the other, each with its results sent before the
    /// next begins.
    async fn query(&mut self, sql: &Arc<String>) -> SqlResult<()> {
        let statements = self.session.parse(sql).await?;
        if statements.is_empty() {
            self.client.put(PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()));
            return self.session.sync().await;
        }
        // A simple query ends the unnamed statement and the unnamed portal.
        self.session.close(&Target::Statement(String::new()));
        self.session.close(&Target::Portal(String::new()));
        let count = statements.len();
        for (index, parsed) in statements.iter().enumerate() {
            let place = StatementPosition { is_last: index + 1 == count, is_only: count == 1 };
            // Lets other connections run, however many statements the string has.
            tokio::task::consume_budget().await;
            self.session.run(parsed, place, &mut self.client).await?;
            self.send_notices();
        }
        Ok(())
    }

    fn describe(&mut self, target: &Target) -> SqlResult<()> {
        let (columns, formats) = match target {
            Target::Statement(name) => {
                let described = self.session.describe_statement(name)?;
                let types = described.parameters.iter().map(types::SqlType::oid).collect();
                self.client.put(PgWireBackendMessage::ParameterDescription(ParameterDescription::new(types)));
                // The formats of a statement's result are not known before Bind; PostgreSQL reports text here.
                (described.columns, None)
            }
            Target::Portal(name) => {
                let (columns, formats) = self.session.describe_portal(name)?;
                (columns, Some(formats))
            }
        };
        self.client.put(match columns {
            Some(columns) => {
                let formats = formats.unwrap_or_else(|| vec![value_codec::encode::Format::Text; columns.len()]);
                PgWireBackendMessage::RowDescription(row_description(&columns, &formats))
            }
            None => PgWireBackendMessage::NoData(NoData::new()),
        });
        Ok(())
    }

    fn send_notices(&mut self) {
        for (severity, notice) in self.session.take_notices() {
            self.client.notice(severity, &notice);
        }
    }
}

/// Time to send the last messages to a client that may not read, before its connection is dropped.
const CLOSE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);

/// Converts the transaction status to that of ReadyForQuery.
fn transaction_status(status: BlockStatus) -> TransactionStatus {
    match status {
        BlockStatus::Idle => TransactionStatus::Idle,
        BlockStatus::Open => TransactionStatus::Transaction,
        BlockStatus::Failed => TransactionStatus::Error,
    }
}

fn disconnect_watcher(stream: &MaybeTls) -> DisconnectWatcher {
    match stream {
        MaybeTls::Plain(socket) => DisconnectWatcher::new(socket.as_fd()),
        MaybeTls::Tls(socket) => DisconnectWatcher::new(socket.get_ref().0.as_fd()),
        _ => DisconnectWatcher::default(),
    }
}
