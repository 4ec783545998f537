//! What a failed command means for the connection, and the error that users see.

use std::{
    error::Error as StdError,
    io::{self, ErrorKind},
    sync::Arc,
};

use redis::{Arg, Cmd, RedisError};

use super::{
    reach::{certificate::code_of, options::ConnectOptions},
    wire::framing::{foreign_in, Foreign},
};
use crate::error::{Error, RefusedCommand};

/// Bytes of an argument that an error shows: nobody wants the text of a script, or a job's data, in a log.
const LONGEST_SHOWN: usize = 256;

// the server is not ready for commands yet; ASK: the queue moves to another node key by key, and no script may see half of it
pub(super) fn is_passing(error: &RedisError) -> bool {
    matches!(
        error.code(),
        Some("LOADING" | "TRYAGAIN" | "BUSY" | "MASTERDOWN" | "ASK")
    )
}

// the connection is broken
pub(super) fn is_broken(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped() || error.is_unrecoverable_error()
}

pub(super) fn to_error(error: &RedisError, options: &ConnectOptions) -> Error {
    let place = options.place();
    if options.path.as_ref().is_some_and(|path| !path.exists()) {
        return Error::Connection {
            message: format!("connect ENOENT {place}"),
            code: Some("ENOENT"),
        };
    }
    if let Some((code, message)) = io_cause(error).and_then(|cause| in_words_of_node(cause, &options.host, &place)) {
        return Error::Connection {
            message,
            code: Some(code),
        };
    }
    if let Some(foreign) = io_cause(error).and_then(foreign_in) {
        return fault_of(&place, foreign);
    }
    if error.is_io_error() || error.is_connection_dropped() {
        return Error::Connection {
            message: format!("{error} ({place})"),
            code: io_cause(error).and_then(code_of),
        };
    }
    if error.is_unrecoverable_error() {
        return unread(error, &place);
    }
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => Error::Refused(format!("{code} {detail}").into()),
        (Some(_), None) => Error::Refused(error.to_string().into()),
        _ => Error::Server(error.to_string()),
    }
}

/// What came was no reply: it ended before its end, or is of another protocol.
fn unread(error: &RedisError, place: &str) -> Error {
    let text = error.to_string();
    match text.contains("end of input") {
        true => Error::Connection {
            message: "read ECONNRESET".to_owned(),
            code: Some("ECONNRESET"),
        },
        false => fault_of(place, &Foreign::new(text)),
    }
}

/// The error of a server that is none of Redis.
pub(super) fn fault_of(place: &str, foreign: &Foreign) -> Error {
    Error::Connection {
        message: format!("{place} does not speak the protocol of Redis: {foreign}"),
        code: None,
    }
}

/// The same for the answer to this command.
pub(super) fn answer_to(command: &Cmd, error: &RedisError, options: &ConnectOptions) -> Error {
    let mut told = to_error(error, options);
    if let Error::Refused(refusal) = &mut told {
        refusal.command = shown(command).map(Box::new);
    }
    told
}

/// A command, as an error names it.
fn shown(command: &Cmd) -> Option<RefusedCommand> {
    let mut parts = command.args_iter().map(|part| match part {
        Arg::Simple(bytes) => String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_SHOWN)]).into_owned(),
        _ => String::new(),
    });
    let name = parts.next()?.to_lowercase();
    let args = match name.as_str() {
        // its name, hash or text, the number of keys, the key
        "fcall" | "evalsha" | "eval" => parts.take(3).collect(),
        _ => parts.collect(),
    };
    Some(RefusedCommand { name, args })
}

/// The I/O error behind it, which the library may hold in an `Arc`.
fn io_cause(error: &RedisError) -> Option<&io::Error> {
    let cause = error.source()?;
    match cause.downcast_ref::<Arc<dyn StdError + Send + Sync>>() {
        Some(shared) => shared.downcast_ref(),
        None => cause.downcast_ref(),
    }
}

/// Node's code for a failure, and its message.
fn in_words_of_node(cause: &io::Error, host: &str, place: &str) -> Option<(&'static str, String)> {
    let connecting = |code| Some((code, format!("connect {code} {place}")));
    let talking = |doing: &str, code| Some((code, format!("{doing} {code}")));
    match cause.kind() {
        ErrorKind::ConnectionRefused => connecting("ECONNREFUSED"),
        ErrorKind::HostUnreachable => connecting("EHOSTUNREACH"),
        ErrorKind::NetworkUnreachable => connecting("ENETUNREACH"),
        ErrorKind::PermissionDenied => connecting("EACCES"),
        // as ioredis says it
        ErrorKind::TimedOut | ErrorKind::WouldBlock => talking("connect", "ETIMEDOUT"),
        ErrorKind::BrokenPipe if cause.raw_os_error().is_some() => talking("write", "EPIPE"),
        // the library reports a connection that ends before the reply as this
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => talking("read", "ECONNRESET"),
        _ if cause.to_string().starts_with("failed to lookup address") => {
            let is_passing = cause.to_string().contains("Temporary failure");
            let code = if is_passing { "EAI_AGAIN" } else { "ENOTFOUND" };
            Some((code, format!("getaddrinfo {code} {host}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(cause: io::Error) -> (Option<&'static str>, String) {
        match to_error(&RedisError::from(cause), &ConnectOptions::default()) {
            Error::Connection { message, code } => (code, message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_reply_is_a_fault_of_the_connection() {
        let read = |bytes: &'static [u8]| match redis::parse_redis_value(bytes) {
            Err(error) if is_broken(&error) => match to_error(&error, &ConnectOptions::default()) {
                Error::Connection { message, code } => (code, message),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        let cut = (Some("ECONNRESET"), "read ECONNRESET".to_owned());
        assert_eq!(read(b"*2\r\n$1\r\na\r\n"), cut);
        assert_eq!(read(b"$10\r\nabc"), cut);
        let (code, message) = read(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        assert_eq!(code, None);
        assert!(
            message.starts_with("127.0.0.1:6379 does not speak the protocol of Redis: "),
            "{message}"
        );
    }

    #[test]
    fn failures_of_the_network_are_told_as_node_tells_them() {
        let place = "127.0.0.1:6379";
        for (kind, code, message) in [
            (
                ErrorKind::ConnectionRefused,
                "ECONNREFUSED",
                format!("connect ECONNREFUSED {place}"),
            ),
            (
                ErrorKind::HostUnreachable,
                "EHOSTUNREACH",
                format!("connect EHOSTUNREACH {place}"),
            ),
            (
                ErrorKind::NetworkUnreachable,
                "ENETUNREACH",
                format!("connect ENETUNREACH {place}"),
            ),
            (ErrorKind::TimedOut, "ETIMEDOUT", "connect ETIMEDOUT".to_owned()),
            (ErrorKind::ConnectionReset, "ECONNRESET", "read ECONNRESET".to_owned()),
            (ErrorKind::UnexpectedEof, "ECONNRESET", "read ECONNRESET".to_owned()),
        ] {
            assert_eq!(told(kind.into()), (Some(code), message));
        }
        #[cfg(unix)]
        assert_eq!(
            told(io::Error::from_raw_os_error(32)),
            (Some("EPIPE"), "write EPIPE".to_owned())
        );
    }

    #[test]
    fn a_host_without_address_is_told_as_node_tells_it() {
        let unknown = io::Error::other("failed to lookup address information: Name or service not known");
        assert_eq!(
            told(unknown),
            (Some("ENOTFOUND"), "getaddrinfo ENOTFOUND 127.0.0.1".to_owned())
        );
        let later = io::Error::other("failed to lookup address information: Temporary failure in name resolution");
        assert_eq!(told(later).0, Some("EAI_AGAIN"));
    }

    #[test]
    fn what_node_has_no_word_for_is_told_as_it_is() {
        let (code, message) = told(io::Error::new(ErrorKind::InvalidData, "bad certificate"));
        assert_eq!(code, None);
        assert!(message.contains("bad certificate"), "{message}");
    }
}
