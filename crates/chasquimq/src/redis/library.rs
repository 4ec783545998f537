//! The library of functions that runs in the server, and the only code that calls it.

use redis::Value;

use super::{
    commands::{decimal, push_bulk, push_line},
    connection::Connection,
    reply::Reply,
};
use crate::{
    error::{Error, Result},
    job::msgpack::Packer,
};

/// A transition (`lua/`): a function of the library, or a script where the server has no functions.
#[derive(Debug)]
pub struct Script {
    /// File name under `lua/`, without the suffix.
    pub name: &'static str,
    /// Name of its function.
    pub function: &'static str,
    /// The text of its script.
    pub text: &'static str,
    /// The text's SHA-1.
    pub sha: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

/// One argument of a call.
#[derive(Debug, Clone, Copy)]
pub enum Arg<'a> {
    /// Bytes as they are.
    Bytes(&'a [u8]),
    /// A whole number.
    Int(i64),
}

impl Arg<'_> {
    fn room(&self) -> usize {
        match self {
            Arg::Bytes(bytes) => bytes.len() + 16,
            Arg::Int(_) => 32,
        }
    }
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

impl<'a> From<&'a Packer> for Arg<'a> {
    fn from(packed: &'a Packer) -> Self {
        Arg::Bytes(&packed.0)
    }
}

impl From<u64> for Arg<'_> {
    fn from(number: u64) -> Self {
        Arg::Int(number as i64)
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

/// The arguments of a call.
macro_rules! args {
    ($($arg:expr),*) => { [$($crate::redis::library::Arg::from($arg)),*] };
}
pub(crate) use args;

/// How often one call loads a library that keeps being flushed, before it runs as a script.
const LOADS: usize = 3;

impl Script {
    /// Calls the function, and loads the library where the server lacks it. A server that takes no library gets the script.
    /// The call repeats when the connection breaks, so it must bear running twice.
    /// # Errors
    /// As [`Connection::send`], and [`Error::NoScripts`].
    pub async fn run(&self, connection: &Connection, base: &str, args: &[Arg<'_>]) -> Result<Value> {
        for _ in 0..LOADS {
            if connection.needs_scripts() {
                break;
            }
            let loads = connection.loads();
            match self.send(connection, "FCALL", self.function, base, args).await {
                Err(Error::Refused(message)) if is_no_function(&message) => {
                    if !Box::pin(connection.load_once(loads, load(connection))).await? {
                        break;
                    }
                }
                Err(Error::NoScripts(_)) => connection.use_scripts(),
                Err(Error::Refused(message)) if is_denied(&message, "fcall") => connection.use_scripts(),
                done => return done,
            }
        }
        match self.send(connection, "EVALSHA", self.sha, base, args).await {
            Err(Error::Refused(message)) if message.starts_with("NOSCRIPT") => {
                self.send(connection, "EVAL", self.text, base, args).await
            }
            done => done,
        }
    }

    /// The same for one that answers with an array.
    /// # Errors
    /// As [`Script::run`], and [`Error::Malformed`].
    pub(crate) async fn ask(&self, connection: &Connection, base: &str, args: &[Arg<'_>]) -> Result<Reply> {
        Reply::new(self.name, self.run(connection, base, args).await?)
    }

    async fn send(
        &self,
        connection: &Connection,
        how: &'static str,
        script: &str,
        base: &str,
        args: &[Arg<'_>],
    ) -> Result<Value> {
        let command = self.command(how, script, base, args);
        let done = match self.writes() {
            Writes::Always => connection.send_write(&command).await,
            Writes::UnlessMissing => match connection.send_write(&command).await {
                // a replica may not know it yet
                Ok(reply) if names_missing(&reply) => connection.send(&command).await,
                done => done,
            },
            Writes::Perhaps => connection.send(&command).await,
        };
        match done {
            // the server's message repeats the arguments
            Err(Error::Refused(message)) if message.starts_with("ERR unknown command") => Err(Error::NoScripts(how)),
            done => done,
        }
    }

    /// Names those on a job's path.
    fn writes(&self) -> Writes {
        if [STEP.sha, ADD_FRAMES.sha, ADD.sha, LOG_JOB.sha].contains(&self.sha) {
            return Writes::Always;
        }
        match self.sha == UPDATE_JOB.sha {
            true => Writes::UnlessMissing,
            false => Writes::Perhaps,
        }
    }

    /// The call as one packed command, for a socket of the caller's. After any error, [`Script::run`] is the fallback.
    pub fn packed(&self, connection: &Connection, base: &str, args: &[Arg<'_>]) -> Vec<u8> {
        let (how, name) = self.how(connection);
        let bytes: usize = args.iter().map(Arg::room).sum();
        let mut packed = Vec::with_capacity(bytes + base.len() + 128);
        push_line(&mut packed, b'*', 4 + args.len() as u64);
        for part in [how, name, "1", base] {
            push_bulk(&mut packed, part.as_bytes());
        }
        for arg in args {
            match arg {
                Arg::Bytes(bytes) => push_bulk(&mut packed, bytes),
                Arg::Int(number) => {
                    let mut digits = [0; 20];
                    push_bulk(&mut packed, decimal(*number, &mut digits));
                }
            }
        }
        packed
    }

    /// The call as one command, for a pipeline. After any error, [`Script::run`] is the fallback.
    pub fn by_name(&self, connection: &Connection, base: &str, args: &[Arg<'_>]) -> redis::Cmd {
        let (how, name) = self.how(connection);
        self.command(how, name, base, args)
    }

    fn how(&self, connection: &Connection) -> (&'static str, &'static str) {
        match connection.needs_scripts() {
            true => ("EVALSHA", self.sha),
            false => ("FCALL", self.function),
        }
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

/// Whether a function writes, which a replica refuses; nobody asks the server for its role then.
enum Writes {
    /// Its memo at least.
    Always,
    /// Unless the job is missing, which its reply tells.
    UnlessMissing,
    Perhaps,
}

/// Whether a reply tells of a missing job: nothing was written.
fn names_missing(reply: &Value) -> bool {
    matches!(reply, Value::Int(code) if *code < 0)
}

fn is_no_function(message: &str) -> bool {
    message.starts_with("ERR Function not found")
}

fn is_denied(message: &str, command: &str) -> bool {
    message.starts_with("NOPERM") && message.contains(&format!("'{command}"))
}

/// Loads the library. False when the server refuses it: then this call, at least, runs as a script.
async fn load(connection: &Connection) -> Result<bool> {
    match connection
        .send_write(redis::cmd("FUNCTION").arg("LOAD").arg(LIBRARY))
        .await
    {
        Ok(_) => Ok(true),
        // another connection was faster
        Err(Error::Refused(message)) if message.starts_with("ERR Library") && message.ends_with("already exists") => {
            Ok(true)
        }
        Err(Error::Refused(message)) => {
            if is_denied(&message, "function") || message.starts_with("ERR") {
                connection.use_scripts();
            }
            Ok(false)
        }
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_call_is_the_command() {
        let blob = vec![0; 300];
        let args = [
            Arg::Int(i64::MIN),
            Arg::Int(0),
            Arg::Int(1_700_000_000_000),
            Arg::from(""),
            Arg::from(blob.as_slice()),
        ];
        let connection = Connection::new(crate::redis::options::ConnectOptions::default(), |_| {});
        for _ in 0..2 {
            let command = ADD.by_name(&connection, "{bull:q}:", &args).get_packed_command();
            assert_eq!(ADD.packed(&connection, "{bull:q}:", &args), command);
            connection.use_scripts();
        }
    }
}
