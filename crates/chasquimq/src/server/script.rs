//! The scripts, and their only runner.

use redis::Value;

use super::conn::Connection;
use crate::error::{Error, Result};

/// A Lua script of the engine.
#[derive(Debug)]
pub struct Script {
    /// File name under `lua/`, without the suffix.
    pub name: &'static str,
    /// The text that is sent.
    pub text: &'static str,
    /// Its SHA-1.
    pub sha: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

/// One argument of a script.
#[derive(Debug, Clone, Copy)]
pub enum Arg<'a> {
    /// Bytes as they are.
    Bytes(&'a [u8]),
    /// A whole number.
    Int(i64),
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Arg::Bytes(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Arg<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Arg::Bytes(bytes)
    }
}

impl From<i64> for Arg<'_> {
    fn from(number: i64) -> Self {
        Arg::Int(number)
    }
}

impl From<bool> for Arg<'_> {
    fn from(flag: bool) -> Self {
        Arg::Int(i64::from(flag))
    }
}

impl Script {
    /// Runs the script by its hash; a server that does not know it is sent the text, and keeps it.
    /// The call is sent again when the connection breaks, so the script must bear being carried out twice.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn run(&self, connection: &Connection, base: &str, args: &[Arg<'_>]) -> Result<Value> {
        match connection.send(&self.command("EVALSHA", self.sha, base, args)).await {
            Err(Error::Server(message)) if message.starts_with("NOSCRIPT") => {
                connection.send(&self.command("EVAL", self.text, base, args)).await
            }
            done => done,
        }
    }

    /// The script as one command by its hash, for a connection of the caller's own.
    pub fn packed(&self, base: &str, args: &[Arg<'_>]) -> Vec<u8> {
        self.command("EVALSHA", self.sha, base, args).get_packed_command()
    }

    /// The script as one command by its hash, for a pipeline.
    pub fn by_hash(&self, base: &str, args: &[Arg<'_>]) -> redis::Cmd {
        self.command("EVALSHA", self.sha, base, args)
    }

    fn command(&self, how: &str, script: &str, base: &str, args: &[Arg<'_>]) -> redis::Cmd {
        let mut command = redis::cmd(how);
        command.arg(script).arg(1).arg(base);
        for arg in args {
            match arg {
                Arg::Bytes(bytes) => command.arg(bytes),
                Arg::Int(number) => command.arg(number),
            };
        }
        command
    }
}
