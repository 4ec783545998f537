//! Engine errors as JavaScript knows them.

use chasquimq::{ConnectionEvent, Error, RefusedCommand};
use napi::{bindgen_prelude::JsObjectValue, Env, JsValue};
use napi_derive::napi;

/// An error in a message.
#[napi(object)]
pub struct NativeError {
    /// BullMQ's message where BullMQ has one.
    pub message: String,
    /// Node's code, such as `ECONNREFUSED`.
    pub code: Option<String>,
    /// BullMQ's numeric code.
    pub number: Option<i32>,
    /// `ReplyError` where the server answered with it.
    pub name: Option<String>,
    /// What the server was asked.
    pub command: Option<NativeCommand>,
}

/// A command that a server refused.
#[napi(object)]
pub struct NativeCommand {
    /// Its name.
    pub name: String,
    /// Its arguments, as far as they are shown.
    pub args: Vec<String>,
}

/// ioredis's name for an error of the server, and what it was asked.
fn reply_parts(error: &Error) -> (Option<&'static str>, Option<NativeCommand>) {
    let Error::Refused(refusal) = error else {
        return (None, None);
    };
    let command = refusal.command.as_deref().cloned();
    let command = command.map(|RefusedCommand { name, args }| NativeCommand { name, args });
    (Some("ReplyError"), command)
}

impl From<&Error> for NativeError {
    fn from(error: &Error) -> Self {
        let (name, command) = reply_parts(error);
        Self {
            message: error.to_string(),
            code: node_code(error).map(str::to_owned),
            number: error.code(),
            name: name.map(str::to_owned),
            command,
        }
    }
}

/// What happened to a connection.
#[derive(Default)]
pub struct Happened {
    /// Connecting failed.
    pub failure: Option<NativeError>,
    /// It closed.
    pub closed: Option<bool>,
    /// The server's eviction policy, which deletes jobs.
    pub eviction: Option<String>,
    /// The library in whose place the server has another.
    pub foreign_library: Option<String>,
}

impl From<ConnectionEvent> for Happened {
    fn from(event: ConnectionEvent) -> Self {
        let mut happened = Self::default();
        match event {
            ConnectionEvent::Failed(error) => happened.failure = Some(NativeError::from(&error)),
            ConnectionEvent::Closed => happened.closed = Some(true),
            ConnectionEvent::Evicts(policy) => happened.eviction = Some(policy),
            ConnectionEvent::ForeignLibrary(name) => happened.foreign_library = Some(name.to_owned()),
        }
        happened
    }
}

fn node_code(error: &Error) -> Option<&'static str> {
    match error {
        Error::Connection { code, .. } => *code,
        // codes of our own, for what BullMQ does not have
        Error::QueueFull { .. } => Some("ERR_QUEUE_FULL"),
        Error::GroupFull { .. } => Some("ERR_GROUP_FULL"),
        Error::ServerTooOld(_) => Some("ERR_SERVER_TOO_OLD"),
        Error::NoScripts(_) => Some("ERR_NO_SCRIPTS"),
        Error::LibraryMissing(_) => Some("ERR_NO_LIBRARY"),
        Error::LibraryForeign(_) => Some("ERR_FOREIGN_LIBRARY"),
        _ => None,
    }
}

/// A JavaScript `Error` with BullMQ's message, its numeric code or Node's, and ioredis's name and command.
pub fn js_error(env: &Env, error: &Error) -> napi::Error {
    let made = || -> napi::Result<napi::Error> {
        let mut object = env.create_error(napi::Error::from_reason(error.to_string()))?;
        match (error.code(), node_code(error)) {
            (Some(number), _) => object.set_named_property("code", number)?,
            (None, Some(code)) => object.set_named_property("code", code)?,
            (None, None) => {
                object.delete_named_property("code")?;
            }
        }
        let (name, command) = reply_parts(error);
        if let Some(name) = name {
            object.set_named_property("name", name)?;
        }
        if let Some(command) = command {
            object.set_named_property("command", command)?;
        }
        Ok(napi::Error::from(object.to_unknown()))
    };
    made().unwrap_or_else(|failed| failed)
}

/// What a promise is rejected with when the engine panicked.
pub fn panic_error() -> napi::Error {
    napi::Error::from_reason("ChasquiMQ: the engine met a state it does not know; please report this")
}
