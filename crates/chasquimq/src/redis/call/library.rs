//! The library of functions that runs in the server, and the only code that calls it.

use std::time::Instant;

use redis::Value;

pub use super::scripts::*;
use super::{
    commands::{decimal, push_bulk, push_line},
    functions::{judge, list, Found, Known, JUST_NOW},
    reply::Reply,
};
use crate::{
    error::{Error, Refusal, Result},
    job::msgpack::Packer,
    redis::connection::Connection,
};

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
    ($($arg:expr),*) => { [$($crate::redis::call::library::Arg::from($arg)),*] };
}
pub(crate) use args;

/// How often one call loads a library that keeps being flushed, before it runs as a script.
const LOADS: usize = 3;

impl Script {
    /// Calls the function, and loads the library where the server lacks it. Where that cannot be, the functions are somebody else's, or it is a script
    /// alone, it calls the script by its hash, which nobody can replace. The call repeats when the connection breaks, so it must bear running twice.
    /// # Errors
    /// As [`Connection::send`], and [`Error::NoScripts`], [`Error::LibraryMissing`], [`Error::LibraryForeign`].
    pub async fn run(&self, connection: &Connection, base: &str, args: &[Arg<'_>]) -> Result<Value> {
        let functions = connection.functions();
        for _ in 0..LOADS {
            let Some(function) = self.function else { break };
            if functions.are_doubtful() && functions.take_doubt() {
                Box::pin(connection.look_at_functions(JUST_NOW)).await?;
            }
            let loads = functions.loads();
            let is_missing = match functions.known() {
                Known::Missing => true,
                _ if !functions.may_be_called() => break,
                _ => match self.send(connection, "FCALL", function, base, args).await {
                    Err(Error::Refused(message)) if is_no_function(&message) => true,
                    // it has connected since, to a server with others
                    Err(Error::LibraryMissing(_) | Error::LibraryForeign(_)) => false,
                    Err(Error::NoScripts(_)) => {
                        functions.note(Known::Uncallable);
                        false
                    }
                    Err(Error::Refused(message)) if is_denied(&message, "fcall") => {
                        functions.note(Known::Uncallable);
                        false
                    }
                    done => return done,
                },
            };
            if is_missing && !Box::pin(functions.load_once(loads, load(connection))).await? {
                break;
            }
        }
        // boxed: it would make every call's future larger
        Box::pin(self.run_by_hash(connection, base, args)).await
    }

    async fn run_by_hash(&self, connection: &Connection, base: &str, args: &[Arg<'_>]) -> Result<Value> {
        let answer = match self.send(connection, "EVALSHA", self.sha, base, args).await {
            Err(Error::Refused(message)) if message.code() == "NOSCRIPT" => {
                self.send(connection, "EVAL", self.text, base, args).await
            }
            done => done,
        };
        match answer {
            // what the library lacks is no reason why a script alone is refused
            Err(Error::Refused(message)) if self.function.is_some() && is_denied(&message, "eval") => {
                connection.functions().doubt();
                Err(connection.functions().fault().unwrap_or(Error::Refused(message)))
            }
            answer => answer,
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

    /// Names those on a job's path, and those that idle workers call.
    fn writes(&self) -> Writes {
        if [
            STEP.sha,
            PARK.sha,
            READ_STATES.sha,
            ADD_FRAMES.sha,
            ADD.sha,
            LOG_JOB.sha,
        ]
        .contains(&self.sha)
        {
            return Writes::Always;
        }
        match self.sha == UPDATE_JOB.sha {
            true => Writes::UnlessMissing,
            false => Writes::Perhaps,
        }
    }

    /// The call as one packed command, for an event loop that sends it itself. After any error, [`Script::run`] is the fallback.
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
        match self.function.filter(|_| connection.functions().may_be_called()) {
            Some(function) => ("FCALL", function),
            None => ("EVALSHA", self.sha),
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

fn is_denied(refusal: &Refusal, command: &str) -> bool {
    refusal.code() == "NOPERM" && refusal.contains(&format!("'{command}"))
}

/// Loads the library. False when the server refuses it, or has another one: then this call, at least, runs as a script.
async fn load(connection: &Connection) -> Result<bool> {
    let functions = connection.functions();
    if matches!(functions.known(), Known::Foreign | Known::Uncallable) {
        return Ok(false);
    }
    if functions.was_denied() {
        functions.note_denial();
        return Ok(false);
    }
    let began = Instant::now();
    match connection.send_write(&load_command(false)).await {
        Ok(_) => functions.note(Known::Ours),
        // another connection was faster, or somebody else
        Err(Error::Refused(message)) if is_there(&message) => {
            connection.look_at_functions(began.elapsed()).await?;
        }
        // another library has a function of that name
        Err(Error::Refused(message)) if message.starts_with("ERR Function") => connection.found(Found::Foreign),
        Err(Error::Refused(message)) if is_denied(&message, "function") => functions.note_denial(),
        Err(Error::Refused(message)) => {
            if message.code() == "ERR" {
                functions.note(Known::Uncallable);
            }
            return Ok(false);
        }
        Err(other) => return Err(other),
    }
    Ok(functions.may_be_called())
}

fn load_command(replaces: bool) -> redis::Cmd {
    let mut load = redis::cmd("FUNCTION");
    load.arg("LOAD");
    if replaces {
        load.arg("REPLACE");
    }
    load.arg(LIBRARY);
    load
}

fn is_there(message: &str) -> bool {
    message.starts_with("ERR Library") && message.ends_with("already exists")
}

/// What a server has of the library, as an administrator asks.
/// # Errors
/// As [`Connection::send`].
pub(crate) async fn find(connection: &Connection) -> Result<Found> {
    match connection.send(&list()).await {
        Ok(libraries) => Ok(judge(&libraries)),
        Err(Error::Refused(message)) if is_denied(&message, "function") => Ok(Found::Hidden),
        Err(other) => Err(other),
    }
}

/// Loads the library where it is missing, as an administrator does; over another one of its name only if it `replaces` that.
/// # Errors
/// As [`Connection::send`]: this user may not load it, or another library has functions of the same names.
pub(crate) async fn provide(connection: &Connection, replaces: bool) -> Result<Found> {
    match find(connection).await? {
        Found::Ours => return Ok(Found::Ours),
        Found::Foreign if !replaces => return Ok(Found::Foreign),
        Found::Missing | Found::Hidden | Found::Foreign => {}
    }
    match connection.send_write(&load_command(replaces)).await {
        Ok(_) => Ok(Found::Ours),
        Err(Error::Refused(message)) if is_there(&message) => find(connection).await,
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
        let connection = Connection::new(crate::redis::reach::options::ConnectOptions::default(), |_| {});
        for _ in 0..2 {
            let command = ADD.by_name(&connection, "{bull:q}:", &args).get_packed_command();
            assert_eq!(ADD.packed(&connection, "{bull:q}:", &args), command);
            connection.functions().note(Known::Uncallable);
        }
    }
}
