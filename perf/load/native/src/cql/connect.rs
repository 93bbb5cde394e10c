//! A connected client of one target, and the requests that all sessions on it make.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::PoolSize;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{
    ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind, DbError, MetadataError,
    NewSessionError,
};
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::policies::timestamp_generator::MonotonicTimestampGenerator;
use scylla::response::query_result::{QueryResult, QueryRowsResult};
use scylla::serialize::batch::BatchValues;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency;
use scylla::statement::batch::Batch;
use scylla::statement::prepared::PreparedStatement;

use crate::access::{explain_tls, read_login, refuse_account, tls_config};
use crate::cql::failure;
use crate::cql::turns::Turns;
use crate::session::Failure;
use crate::spec::{self, Target};

/// The keyspace of all tables.
pub const KEYSPACE: &str = "knickpoint";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The layout of a cluster is asked for again when a server says that it has changed, else never.
const REFRESH_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// A client that is connected to the nodes of a target.
pub struct Client {
    session: Session,
    timeout: Duration,
}

impl Client {
    /// Connects to the nodes of a target; must be called on the runtime that the client is used on.
    ///
    /// # Errors
    /// Says what is wrong with the target or its access, and what to do.
    pub async fn connect(target: &Target) -> Result<Self, String> {
        let timeout = Duration::try_from_secs_f64(target.timeout_s)
            .map_err(|error| format!("target: timeout_s: {}: {error}", target.timeout_s))?;
        let mut builder = with_settings(SessionBuilder::new())
            .default_execution_profile_handle(profile(target, timeout).into_handle());
        for address in &target.addresses {
            builder = match address.parse::<IpAddr>() {
                Ok(ip) => builder.known_node_addr(SocketAddr::new(ip, target.port)),
                Err(_) => builder.known_node(format!("{address}:{}", target.port)),
            };
        }
        if let Some(access) = &target.access {
            if let Some(login) = read_login(access)? {
                builder = builder.user(login.username, login.password.reveal());
            }
            if let Some(tls) = &access.tls {
                builder = builder.tls_context(Some(Arc::new(tls_config(tls)?)));
            }
        }
        // The driver has a limit for the connection alone, none for a server that then says nothing.
        let limit = CONNECT_TIMEOUT * u32::try_from(target.addresses.len().max(1)).unwrap_or(1);
        let session = tokio::time::timeout(limit, builder.build())
            .await
            .map_err(|_| say_silent(&places(target), limit))?
            .map_err(|error| say(&error, target))?;
        Ok(Self { session, timeout })
    }

    /// Makes the trial's keyspace that of all tables that are named without one.
    ///
    /// # Errors
    /// Says why not: it is not there, or no server answers.
    pub async fn use_keyspace(&self) -> Result<(), String> {
        let used = self.session.use_keyspace(KEYSPACE, false);
        used.await
            .map_err(|error| format!("cannot use the keyspace {KEYSPACE}: {error}"))
    }

    /// Prepares a statement on every node that answers.
    ///
    /// # Errors
    /// As the server refuses it; timeouts if no answer comes.
    pub async fn prepare(
        &self,
        statement: impl Into<String>,
    ) -> Result<PreparedStatement, Failure> {
        let prepared = self.session.prepare(statement.into());
        let mut prepared = tokio::time::timeout(self.timeout, prepared)
            .await
            .map_err(|_| failure::of_late_prepare())?
            .map_err(|error| failure::of_prepare(&error))?;
        // The columns of an answer are those of the statement: no answer says them again.
        prepared.set_use_cached_result_metadata(true);
        Ok(prepared)
    }

    /// Asks one statement; what it gives is in one answer, never in pages.
    ///
    /// # Errors
    /// What the driver or the server says; see `failure`.
    pub async fn execute(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<QueryResult, Failure> {
        let asked = self.session.execute_unpaged(statement, values);
        asked.await.map_err(|error| failure::of_request(&error))
    }

    /// Asks one statement for rows.
    ///
    /// # Errors
    /// As `execute`.
    pub async fn select(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<QueryRowsResult, Failure> {
        let answer = self.execute(statement, values).await?;
        answer
            .into_rows_result()
            .map_err(|error| failure::of_answer(&error))
    }

    /// Sends several statements as one request.
    ///
    /// # Errors
    /// As `execute`.
    pub async fn batch(&self, batch: &Batch, values: impl BatchValues) -> Result<(), Failure> {
        let asked = self.session.batch(batch, values);
        asked
            .await
            .map(drop)
            .map_err(|error| failure::of_request(&error))
    }
}

fn with_settings(builder: SessionBuilder) -> SessionBuilder {
    builder
        .compression(None)
        // Without it, a request that does not fill a segment waits until the one before is acknowledged.
        .tcp_nodelay(true)
        // What is sent together is already: to look once more for others costs a call to the kernel.
        .write_coalescing(false)
        .connection_timeout(CONNECT_TIMEOUT)
        .pool_size(PoolSize::PerShard(NonZeroUsize::MIN))
        // The Python driver's: a write has its client's time, ever later ones in one client.
        .timestamp_generator(Arc::new(
            MonotonicTimestampGenerator::new().without_warnings(),
        ))
        // Only which nodes hold which rows of our own tables; statements know their columns.
        .keyspaces_to_fetch([KEYSPACE])
        .fetch_full_schema_metadata(false)
        .cluster_metadata_refresh_interval(REFRESH_INTERVAL)
        .driver_config_reporting(false)
}

fn profile(target: &Target, timeout: Duration) -> ExecutionProfile {
    let everywhere = usize::try_from(target.replication_factor)
        .is_ok_and(|copies| copies >= target.addresses.len());
    ExecutionProfile::builder()
        .consistency(match target.consistency {
            spec::Consistency::One => Consistency::One,
            spec::Consistency::Quorum => Consistency::Quorum,
            spec::Consistency::All => Consistency::All,
        })
        .serial_consistency(None)
        .request_timeout(Some(timeout))
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .speculative_execution_policy(None)
        .load_balancing_policy(Arc::new(Turns::new(everywhere)))
        .build()
}

fn places(target: &Target) -> String {
    let port = target.port;
    let places: Vec<String> = target
        .addresses
        .iter()
        .map(|one| format!("{one}:{port}"))
        .collect();
    places.join(", ")
}

fn say_silent(place: &str, limit: Duration) -> String {
    let limit_s = limit.as_secs();
    format!("{place}: no answer within {limit_s} s; is the server running?")
}

/// Says why no client could be connected, and what to do.
fn say(error: &NewSessionError, target: &Target) -> String {
    let place = places(target);
    let last = match error {
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(
            ConnectionPoolError::Broken {
                last_connection_error,
            },
        )) => last_connection_error,
        NewSessionError::EmptyKnownNodesList => {
            return "target.addresses names no server; set one".to_owned();
        }
        NewSessionError::FailedToResolveAnyHostname(_) => {
            return format!("{place}: cannot connect: no such host; check target.addresses");
        }
        other => return format!("{place}: cannot connect: {other}; is the server ready?"),
    };
    let access = target.access.as_ref();
    if let (Some(wrong), Some(tls)) = (of_tls(last), access.and_then(|access| access.tls.as_ref()))
    {
        return explain_tls(tls, &place, wrong);
    }
    match last {
        ConnectionError::ConnectionSetupRequestError(setup)
            if refuses_account(setup.get_error()) =>
        {
            refuse_account(access, &place)
        }
        ConnectionError::ConnectTimeout => say_silent(&place, CONNECT_TIMEOUT),
        other => {
            format!(
                "{place}: cannot connect: {other}; is the server running, and is this its port?"
            )
        }
    }
}

fn refuses_account(error: &ConnectionSetupRequestErrorKind) -> bool {
    matches!(
        error,
        ConnectionSetupRequestErrorKind::MissingAuthentication
            | ConnectionSetupRequestErrorKind::DbError(DbError::AuthenticationError, _)
    )
}

fn of_tls(error: &ConnectionError) -> Option<&rustls::Error> {
    match error {
        ConnectionError::IoError(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}
