//! Why a connection is of no use, and what a server refuses.

use std::io;

use redis::{RedisError, RedisResult, Value};

use super::framing::Foreign;

/// How a server's words to a client begin that it turns away: it has as many clients as it may have, or is in protected mode. It waits for no command.
const REFUSALS: [&str; 2] = ["ERR max number of clients", "DENIED "];

/// Why a connection is of no use.
pub(super) enum Why {
    /// In the server's words.
    TurnedAway(String),
    /// That is no server of Redis.
    Foreign(Foreign),
}

impl Why {
    /// What the first words of a server say, if it turns the client away.
    pub fn of_first(words: &str) -> Option<Self> {
        let is_turned_away = REFUSALS.iter().any(|refusal| words.starts_with(refusal));
        is_turned_away.then(|| Self::TurnedAway(words.to_owned()))
    }

    pub fn error(&self) -> RedisError {
        match self {
            Self::TurnedAway(words) => refusal(words),
            Self::Foreign(foreign) => io::Error::from(foreign.clone()).into(),
        }
    }
}

/// A server's refusal, as the library has it in a pipeline.
pub(in crate::redis) fn refused(words: &str) -> RedisResult<Value> {
    redis::parse_redis_value(format!("-{words}\r\n").as_bytes())
}

/// The same of a command.
pub(in crate::redis) fn refusal(words: &str) -> RedisError {
    refused(words)
        .and_then(Value::extract_error)
        .err()
        .unwrap_or_else(reset)
}

pub(super) fn reset() -> RedisError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}
