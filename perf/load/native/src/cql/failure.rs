//! Names of what went wrong: those of `perf/systems/cql/client.py`, so that counters of both engines are the same.
//!
//! | what the crate says | counter | the class of the Python driver |
//! |---|---|---|
//! | `RequestTimeout`, or the server's `ReadTimeout`, `WriteTimeout` | timeouts | `OperationTimedOut`, `Timeout` |
//! | the server's `Unavailable` | error:unavailable | `Unavailable` |
//! | no connection of any node, no free stream of one, or no node at all | error:no-host-available | `NoHostAvailable` |
//! | a connection that the crate gives up since 1024 answers of it are overdue | timeouts | `OperationTimedOut` |
//! | a connection that broke otherwise under a request | error:ConnectionShutdown | the same |
//! | `SyntaxError` | error:SyntaxException | the same |
//! | `Invalid` | error:InvalidRequest | the same |
//! | `ReadFailure`, `WriteFailure`, `FunctionFailure`, `AlreadyExists` | error:*the same* | the same |
//! | `Unauthorized`, `ServerError`, `TruncateError` | error:*the same* | the same |
//! | `AuthenticationError` | error:BadCredentials | the same |
//! | `ConfigError` | error:ConfigurationException | the same |
//! | `Overloaded`, `IsBootstrapping` | error:*the same*`ErrorMessage` | the same |
//! | `Unprepared` | error:PreparedQueryNotFound | the same |
//! | `ProtocolError` | error:ProtocolException | the same |
//! | an error code that has no name: 0x1600 | error:CDCWriteException | the same |
//! | any other | error:ErrorMessage | the same |
//! | values that a column cannot have | error:TypeError | the same, of Python |
//! | an answer that cannot be understood | error:DriverException | several |

use scylla::errors::{
    BadQuery, BrokenConnectionError, BrokenConnectionErrorKind, DbError, ExecutionError,
    PrepareError, RequestAttemptError,
};

use crate::session::Failure;

const TIMEOUTS: &str = "timeouts";
const UNAVAILABLE: &str = "error:unavailable";
const NO_HOST: &str = "error:no-host-available";
const DRIVER: &str = "error:DriverException";
const UNFIT: &str = "error:TypeError";
const CDC_WRITE_FAILURE: i32 = 0x1600;

/// Names a request that failed.
pub fn of_request(error: &ExecutionError) -> Failure {
    let kind = match error {
        ExecutionError::RequestTimeout(_) => TIMEOUTS,
        ExecutionError::EmptyPlan | ExecutionError::ConnectionPoolError(_) => NO_HOST,
        ExecutionError::LastAttemptError(error) => attempt_kind(error),
        ExecutionError::PrepareError(error) => prepare_kind(error),
        ExecutionError::BadQuery(BadQuery::SerializationError(_)) => UNFIT,
        _ => DRIVER,
    };
    failure(kind, error)
}

/// Names a statement that could not be prepared.
pub fn of_prepare(error: &PrepareError) -> Failure {
    failure(prepare_kind(error), error)
}

/// Names a statement that no node has prepared in time.
pub fn of_late_prepare() -> Failure {
    failure(TIMEOUTS, &"the statement was not prepared in time")
}

/// Names an answer that is not what the statement gives.
pub fn of_answer(error: &dyn std::fmt::Display) -> Failure {
    failure(DRIVER, error)
}

/// Says whether it failed since the table is not there, or has other columns.
pub fn is_invalid_request(failure: &Failure) -> bool {
    failure.kind == "error:InvalidRequest"
}

/// Says whether the server does not know what a statement asks for, or about.
pub fn is_refused_statement(failure: &Failure) -> bool {
    is_invalid_request(failure) || failure.kind == "error:SyntaxException"
}

fn failure(kind: &str, message: &dyn std::fmt::Display) -> Failure {
    Failure {
        kind: kind.to_owned(),
        message: message.to_string(),
    }
}

fn prepare_kind(error: &PrepareError) -> &'static str {
    match error {
        PrepareError::ConnectionPoolError(_) => NO_HOST,
        PrepareError::AllAttemptsFailed { first_attempt } => attempt_kind(first_attempt),
        _ => DRIVER,
    }
}

fn attempt_kind(error: &RequestAttemptError) -> &'static str {
    match error {
        RequestAttemptError::DbError(error, _) => server_kind(error),
        RequestAttemptError::BrokenConnectionError(error) if has_overdue(error) => TIMEOUTS,
        RequestAttemptError::BrokenConnectionError(_) => "error:ConnectionShutdown",
        RequestAttemptError::UnableToAllocStreamId => NO_HOST,
        _ => DRIVER,
    }
}

/// Says whether the crate itself gave the connection up: it was sent to, and was not answered in time.
fn has_overdue(error: &BrokenConnectionError) -> bool {
    matches!(
        error.downcast_ref(),
        Some(BrokenConnectionErrorKind::TooManyOrphanedStreamIds(_))
    )
}

fn server_kind(error: &DbError) -> &'static str {
    match error {
        DbError::ReadTimeout { .. } | DbError::WriteTimeout { .. } => TIMEOUTS,
        DbError::Unavailable { .. } => UNAVAILABLE,
        DbError::SyntaxError => "error:SyntaxException",
        DbError::Invalid => "error:InvalidRequest",
        DbError::AlreadyExists { .. } => "error:AlreadyExists",
        DbError::FunctionFailure { .. } => "error:FunctionFailure",
        DbError::AuthenticationError => "error:BadCredentials",
        DbError::Unauthorized => "error:Unauthorized",
        DbError::ConfigError => "error:ConfigurationException",
        DbError::Overloaded => "error:OverloadedErrorMessage",
        DbError::IsBootstrapping => "error:IsBootstrappingErrorMessage",
        DbError::TruncateError => "error:TruncateError",
        DbError::ReadFailure { .. } => "error:ReadFailure",
        DbError::WriteFailure { .. } => "error:WriteFailure",
        DbError::Unprepared { .. } => "error:PreparedQueryNotFound",
        DbError::ServerError => "error:ServerError",
        DbError::ProtocolError => "error:ProtocolException",
        DbError::Other(CDC_WRITE_FAILURE) => "error:CDCWriteException",
        _ => "error:ErrorMessage",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use scylla::errors::WriteType;
    use scylla::serialize::SerializationError;
    use scylla::statement::Consistency;

    use super::*;

    fn kind_of(error: DbError) -> String {
        let attempt = RequestAttemptError::DbError(error, "said".to_owned());
        of_request(&ExecutionError::LastAttemptError(attempt)).kind
    }

    #[test]
    fn errors_have_the_names_that_the_python_engine_gives_them() {
        let consistency = Consistency::Quorum;
        let late = DbError::ReadTimeout {
            consistency,
            received: 1,
            required: 2,
            data_present: false,
        };
        assert_eq!(kind_of(late), "timeouts");
        let write_type = WriteType::UnloggedBatch;
        let late = DbError::WriteTimeout {
            consistency,
            received: 1,
            required: 2,
            write_type,
        };
        assert_eq!(kind_of(late), "timeouts");
        assert_eq!(
            kind_of(DbError::Unavailable {
                consistency,
                required: 2,
                alive: 1
            }),
            UNAVAILABLE
        );
        assert_eq!(kind_of(DbError::Invalid), "error:InvalidRequest");
        assert_eq!(kind_of(DbError::Overloaded), "error:OverloadedErrorMessage");
        assert_eq!(kind_of(DbError::Other(0x1600)), "error:CDCWriteException");
        assert_eq!(kind_of(DbError::Other(0x7777)), "error:ErrorMessage");
    }

    #[test]
    fn the_clients_own_limit_is_a_timeout_and_no_node_is_no_host() {
        let late = ExecutionError::RequestTimeout(Duration::from_millis(250));
        let failure = of_request(&late);
        assert_eq!(failure.kind, "timeouts");
        assert!(failure.message.contains("250"), "{}", failure.message);
        assert_eq!(of_request(&ExecutionError::EmptyPlan).kind, NO_HOST);
        let full = ExecutionError::LastAttemptError(RequestAttemptError::UnableToAllocStreamId);
        assert_eq!(of_request(&full).kind, NO_HOST);
    }

    #[test]
    fn a_value_that_a_column_cannot_have_is_a_type_error() {
        let unfit = BadQuery::SerializationError(SerializationError::new(std::fmt::Error));
        assert_eq!(
            of_request(&ExecutionError::BadQuery(unfit)).kind,
            "error:TypeError"
        );
        let others = BadQuery::PartitionKeyExtraction;
        assert_eq!(of_request(&ExecutionError::BadQuery(others)).kind, DRIVER);
    }

    #[test]
    fn a_connection_that_is_given_up_for_overdue_answers_is_late_and_another_is_broken() {
        let kind = |why: BrokenConnectionErrorKind| {
            let attempt = RequestAttemptError::BrokenConnectionError(why.into());
            of_request(&ExecutionError::LastAttemptError(attempt)).kind
        };
        let overdue = BrokenConnectionErrorKind::TooManyOrphanedStreamIds(1025);
        assert_eq!(kind(overdue), TIMEOUTS);
        let broken = BrokenConnectionErrorKind::ChannelError;
        assert_eq!(kind(broken), "error:ConnectionShutdown");
    }

    #[test]
    fn a_missing_table_is_told_from_other_failures_of_a_prepare() {
        let refused = |error| PrepareError::AllAttemptsFailed {
            first_attempt: RequestAttemptError::DbError(error, "said".to_owned()),
        };
        assert!(is_invalid_request(&of_prepare(&refused(DbError::Invalid))));
        assert!(!is_invalid_request(&of_prepare(&refused(
            DbError::Unauthorized
        ))));
        assert!(!is_invalid_request(&of_late_prepare()));
    }
}
