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
    /// As [`Connection::send`], and [`Error::NoScripts`].
    pub async fn run(&self, connection: &Connection, base: &str, args: &[Arg<'_>]) -> Result<Value> {
        match self.send(connection, "EVALSHA", self.sha, base, args).await {
            Err(Error::Server(message)) if message.starts_with("NOSCRIPT") => {
                self.send(connection, "EVAL", self.text, base, args).await
            }
            done => done,
        }
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
        let done = match self.writes_anyway() {
            true => connection.send_write(&command).await,
            false => connection.send(&command).await,
        };
        match done {
            // the server's own words repeat the arguments
            Err(Error::Server(message)) if message.starts_with("ERR unknown command") => Err(Error::NoScripts(how)),
            done => done,
        }
    }

    /// Whether it writes whatever it finds, its memo at least. Of those, the ones that every job takes.
    fn writes_anyway(&self) -> bool {
        [STEP.sha, ADD_FRAMES.sha, ADD.sha].contains(&self.sha)
    }

    /// The script as one command by its hash, for a connection of the caller's own.
    pub fn packed(&self, base: &str, args: &[Arg<'_>]) -> Vec<u8> {
        let bytes: usize = args.iter().map(Arg::room).sum();
        let mut packed = Vec::with_capacity(bytes + base.len() + 128);
        push_line(&mut packed, b'*', 4 + args.len() as u64);
        for part in ["EVALSHA", self.sha, "1", base] {
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

fn push_bulk(packed: &mut Vec<u8>, bytes: &[u8]) {
    push_line(packed, b'$', bytes.len() as u64);
    packed.extend_from_slice(bytes);
    packed.extend_from_slice(b"\r\n");
}

fn push_line(packed: &mut Vec<u8>, kind: u8, number: u64) {
    let mut digits = [0; 20];
    packed.push(kind);
    packed.extend_from_slice(decimal(number as i64, &mut digits));
    packed.extend_from_slice(b"\r\n");
}

/// A whole number in decimal.
fn decimal(number: i64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    &digits[at..]
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
        let command = ADD.by_hash("{bull:q}:", &args).get_packed_command();
        assert_eq!(ADD.packed("{bull:q}:", &args), command);
    }
}
