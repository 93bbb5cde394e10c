//! How an operation failed, in the words of `perf/systems/mongodb/client.py`: those of `pymongo`'s exceptions.
//!
//! | what the driver says | counter |
//! | --- | --- |
//! | nothing within the time limit; a socket that timed out | `timeouts` |
//! | error codes 50, 64, 262, of a command, a write or its concern | `timeouts` |
//! | several rows in one command, some of them not written | `error:BulkWriteError` |
//! | codes 11000, 11001, 12582 of a command, 11000 of a write | `error:DuplicateKeyError` |
//! | another write error; another error of its concern | `error:WriteError`, `error:WriteConcernError` |
//! | the codes of a server that is no primary, or stops | `error:NotPrimaryError` |
//! | code 43 | `error:CursorNotFound` |
//! | another command error; a login that is refused | `error:OperationFailure` |
//! | no server to send to | `error:ServerSelectionTimeoutError` |
//! | a connection that is refused or ends; one that the driver gives up with its server | `error:AutoReconnect` |
//! | an answer that cannot be read | `error:ProtocolError` |
//! | a row without one of its fields; with a time or metadata of another type | `error:KeyError`; `error:TypeError` |
//! | anything else, which is a mistake of this program | `error:ConfigurationError` |

use std::fmt::Display;
use std::io;

use mongodb::bson::{Bson, Document};
use mongodb::error::{Error, ErrorKind};

use crate::session::Failure;

// MaxTimeMSExpired, WriteConcernTimeout, ExceededTimeLimit.
const TIMEOUTS: [i32; 3] = [50, 64, 262];
const DUPLICATES: [i32; 3] = [11000, 11001, 12582];
const CURSOR_NOT_FOUND: i32 = 43;
const NOT_PRIMARY: [i32; 8] = [10058, 10107, 13435, 11602, 13436, 189, 11600, 91];

pub const LATE: &str = "timeouts";

/// Names what the driver says.
pub fn name_error(error: &Error) -> Failure {
    let name = match error.kind.as_ref() {
        ErrorKind::Io(cause) if cause.kind() == io::ErrorKind::TimedOut => {
            return fail(LATE, error);
        }
        ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. } => "AutoReconnect",
        ErrorKind::ServerSelection { .. } => "ServerSelectionTimeoutError",
        ErrorKind::Command(said) if DUPLICATES.contains(&said.code) => "DuplicateKeyError",
        ErrorKind::Command(said) if NOT_PRIMARY.contains(&said.code) => "NotPrimaryError",
        ErrorKind::Command(said) if said.code == CURSOR_NOT_FOUND => "CursorNotFound",
        ErrorKind::Command(said) => return name_code(said.code, "OperationFailure", &error.kind),
        ErrorKind::Authentication { .. } => "OperationFailure",
        ErrorKind::InvalidResponse { .. } | ErrorKind::Bson(_) => "ProtocolError",
        _ => "ConfigurationError",
    };
    fail(&format!("error:{name}"), &error.kind)
}

/// Says that the answer to a write is one of success.
///
/// # Errors
/// The last row that was not written, or what became of the write concern.
pub fn check_write(reply: &Document, rows: usize) -> Result<(), Failure> {
    let unwritten = reply
        .get_array("writeErrors")
        .ok()
        .and_then(|errors| errors.last());
    let unwritten = unwritten.and_then(Bson::as_document);
    let concern = reply.get_document("writeConcernError").ok();
    match (unwritten, concern) {
        (None, None) => Ok(()),
        (Some(said), _) | (None, Some(said)) if rows > 1 => {
            Err(fail("error:BulkWriteError", message(said)))
        }
        (Some(said), _) if code(said) == DUPLICATES[0] => {
            Err(fail("error:DuplicateKeyError", message(said)))
        }
        (Some(said), _) => Err(name_code(code(said), "WriteError", message(said))),
        (None, Some(said)) => Err(name_code(code(said), "WriteConcernError", message(said))),
    }
}

/// Names a failure of any kind.
pub fn fail(kind: &str, message: impl Display) -> Failure {
    Failure {
        kind: kind.to_owned(),
        message: message.to_string(),
    }
}

fn name_code(code: i32, name: &str, message: impl Display) -> Failure {
    if TIMEOUTS.contains(&code) {
        return fail(LATE, message);
    }
    fail(&format!("error:{name}"), message)
}

fn code(said: &Document) -> i32 {
    said.get_i32("code").unwrap_or_default()
}

fn message(said: &Document) -> &str {
    said.get_str("errmsg").unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    fn kind(outcome: Result<(), Failure>) -> String {
        outcome.expect_err("a failure").kind
    }

    #[test]
    fn an_answer_without_errors_is_success() {
        check_write(&doc! {"n": 1, "ok": 1.0}, 1).expect("success");
        check_write(&doc! {"n": 0, "writeErrors": [], "ok": 1.0}, 2).expect("success");
    }

    #[test]
    fn write_errors_have_the_names_of_pymongo() {
        let of = |code: i32| doc! {"n": 0, "ok": 1.0, "writeErrors": [{"index": 0, "code": code, "errmsg": "so"}]};
        assert_eq!(kind(check_write(&of(11000), 1)), "error:DuplicateKeyError");
        assert_eq!(kind(check_write(&of(2), 1)), "error:WriteError");
        assert_eq!(kind(check_write(&of(50), 1)), "timeouts");
        assert_eq!(kind(check_write(&of(11000), 2)), "error:BulkWriteError");
    }

    #[test]
    fn errors_of_the_write_concern_have_the_names_of_pymongo() {
        let of = |code: i32| doc! {"n": 1, "ok": 1.0, "writeConcernError": {"code": code, "errmsg": "so"}};
        assert_eq!(kind(check_write(&of(64), 1)), "timeouts");
        assert_eq!(kind(check_write(&of(100), 1)), "error:WriteConcernError");
        assert_eq!(kind(check_write(&of(64), 2)), "error:BulkWriteError");
    }

    #[test]
    fn a_socket_that_timed_out_is_late_and_one_that_ended_is_not() {
        let of = |kind: io::ErrorKind| name_error(&Error::from(io::Error::from(kind))).kind;
        assert_eq!(of(io::ErrorKind::TimedOut), "timeouts");
        assert_eq!(of(io::ErrorKind::ConnectionReset), "error:AutoReconnect");
        assert_eq!(of(io::ErrorKind::ConnectionRefused), "error:AutoReconnect");
    }
}
