//! A bare socket to Redis that somebody's event loop drives: written to where a command is made, read where its answer is wanted.
//! It saves the two thread changes a command otherwise costs. It does not come back by itself: what it was asked and did not answer
//! is sent again over a [`super::connection::Connection`].

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, TcpStream, ToSocketAddrs},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use redis::{Cmd, Value};

use super::{
    login::{login, needs_no_password, set_name},
    options::ConnectOptions,
    stream::keep_alive,
};
use crate::error::{Error, Result};

/// What a command is answered.
pub type Answer = Value;

const READ_AT_ONCE: usize = 4096;
const READ_AT_MOST: usize = 256 * 1024;

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connected, logged-in socket that never blocks.
#[derive(Debug)]
pub struct DirectSocket {
    stream: Stream,
    place: String,
    outbox: Vec<u8>,
    // bytes of it that were sent
    sent: usize,
    inbox: Vec<u8>,
}

impl DirectSocket {
    /// Connects and logs in. Blocks; call it off the event loop.
    /// # Errors
    /// [`Error::Connection`] when the server cannot be reached, [`Error::Refused`] when it refuses the login.
    pub fn open(options: &ConnectOptions) -> Result<Self> {
        let stream = connect(options).map_err(|error| lost(&error))?;
        let mut socket = Self {
            place: place_of(&stream, options).map_err(|error| lost(&error))?,
            stream,
            outbox: Vec::new(),
            sent: 0,
            inbox: Vec::new(),
        };
        socket
            .set_timeout(Some(options.connect_timeout))
            .map_err(|error| lost(&error))?;
        socket.log_in(options)?;
        socket.set_timeout(None).map_err(|error| lost(&error))?;
        socket.set_nonblocking().map_err(|error| lost(&error))?;
        Ok(socket)
    }

    fn log_in(&mut self, options: &ConnectOptions) -> Result<()> {
        for command in login(options) {
            match self.ask(&command)? {
                Err(error) if needs_no_password(&error.to_string()) => {}
                answer => drop(answer?),
            }
        }
        if let Some(command) = set_name(options) {
            // a server may forbid CLIENT; the name is a comfort only
            let _ = self.ask(&command)?;
        }
        Ok(())
    }

    /// Sends a command and waits for its answer.
    fn ask(&mut self, command: &Cmd) -> Result<Result<Value>> {
        self.stream
            .write_all(&command.get_packed_command())
            .map_err(|error| lost(&error))?;
        loop {
            if let Some(answer) = self.next_reply() {
                return Ok(answer);
            }
            let mut bytes = [0; 512];
            match self.stream.read(&mut bytes).map_err(|error| lost(&error))? {
                0 => return Err(Error::Closed),
                n => self.inbox.extend_from_slice(&bytes[..n]),
            }
        }
    }

    /// Server, database and user: sockets of the same see and may do the same.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The descriptor to watch.
    pub fn fd(&self) -> RawFd {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
        }
    }

    /// Sends a command, or as much of it as the kernel takes now. True when nothing is left to send.
    /// # Errors
    /// When the connection is broken.
    pub fn send(&mut self, command: &[u8]) -> io::Result<bool> {
        if !self.outbox.is_empty() {
            self.outbox.extend_from_slice(command);
            return Ok(false);
        }
        let sent = write_some(&mut self.stream, command)?;
        self.outbox.extend_from_slice(&command[sent..]);
        Ok(self.outbox.is_empty())
    }

    /// Sends what was left. True when nothing is left any more.
    /// # Errors
    /// As [`DirectSocket::send`].
    pub fn flush(&mut self) -> io::Result<bool> {
        self.sent += write_some(&mut self.stream, &self.outbox[self.sent..])?;
        if self.sent < self.outbox.len() {
            return Ok(false);
        }
        self.outbox.clear();
        self.outbox.shrink_to(READ_AT_MOST);
        self.sent = 0;
        Ok(true)
    }

    /// Reads what is there, and gives every whole reply.
    /// # Errors
    /// When the connection is broken or closed by the server.
    pub fn receive(&mut self, replies: &mut Vec<Result<Value>>) -> io::Result<()> {
        let mut room = READ_AT_ONCE;
        loop {
            let held = self.inbox.len();
            self.inbox.resize(held + room, 0);
            let read = self.stream.read(&mut self.inbox[held..]);
            self.inbox.truncate(held + read.as_ref().map_or(0, |n| *n));
            match read {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) if n < room => break,
                Ok(_) => room = (room * 2).min(READ_AT_MOST),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        while let Some(reply) = self.next_reply() {
            replies.push(reply);
        }
        Ok(())
    }

    /// Breaks the connection off; the descriptor stays.
    pub fn shutdown(&self) {
        // one that is broken already is no worse for it
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    fn next_reply(&mut self) -> Option<Result<Value>> {
        // a large reply comes in many pieces, and is not parsed as often
        if self.inbox.len() > READ_AT_ONCE {
            skip(&self.inbox, 0)?;
        }
        let (reply, len) = parse(&self.inbox)?;
        self.inbox.drain(..len);
        if self.inbox.is_empty() {
            self.inbox.shrink_to(READ_AT_MOST);
        }
        Some(reply)
    }

    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => stream.set_nonblocking(true),
            Stream::Unix(stream) => stream.set_nonblocking(true),
        }
    }
}

fn connect(options: &ConnectOptions) -> io::Result<Stream> {
    if let Some(path) = &options.path {
        return UnixStream::connect(path).map(Stream::Unix);
    }
    let mut last = io::Error::from(ErrorKind::NotFound);
    for address in (options.host.as_str(), options.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, options.connect_timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                keep_alive(&stream)?;
                return Ok(Stream::Tcp(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn place_of(stream: &Stream, options: &ConnectOptions) -> io::Result<String> {
    let server = match (stream, &options.path) {
        (Stream::Tcp(stream), _) => stream.peer_addr()?.to_string(),
        (Stream::Unix(_), path) => format!("{path:?}"),
    };
    Ok(format!("{server} {} {:?}", options.db, options.username))
}

fn write_some(stream: &mut Stream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => sent += n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(bytes),
            Stream::Unix(stream) => stream.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lost(error: &io::Error) -> Error {
    Error::Connection {
        message: error.to_string(),
        code: None,
    }
}

/// The first RESP2 reply and its length, or `None` while it is not whole. Replies here are a few numbers and ids, for which the
/// library's parser, made for any size and for streams, costs more than the rest of an add on this side.
fn parse(bytes: &[u8]) -> Option<(Result<Value>, usize)> {
    let line_end = line_end(bytes)?;
    let next = line_end + 2;
    if line_end == 0 {
        return Some((Err(Error::malformed("a reply", "an empty line")), next));
    }
    let line = std::str::from_utf8(&bytes[1..line_end]).unwrap_or("");
    let number = || line.parse::<i64>().ok();
    let value = match (bytes[0], number()) {
        (b'+', _) => Value::SimpleString(line.to_owned()),
        (b'-', _) => return Some((Err(Error::Refused(line.to_owned().into())), next)),
        (b':', Some(number)) => Value::Int(number),
        (b'$' | b'*', Some(len)) if len < 0 => Value::Nil,
        (b'$', Some(len)) => {
            let end = next + len as usize;
            if bytes.len() < end + 2 {
                return None;
            }
            return Some((Ok(Value::BulkString(bytes[next..end].to_vec())), end + 2));
        }
        (b'*', Some(len)) => return parse_array(bytes, next, len as usize),
        _ => return Some((Err(Error::malformed("a reply", line)), next)),
    };
    Some((Ok(value), next))
}

/// Where the reply at `at` ends, or `None` while it is not whole.
fn skip(bytes: &[u8], at: usize) -> Option<usize> {
    let line_end = at + line_end(&bytes[at..])?;
    let next = line_end + 2;
    let len = std::str::from_utf8(&bytes[at + 1..line_end.max(at + 1)])
        .ok()
        .and_then(|line| line.parse::<usize>().ok());
    match (bytes[at], len) {
        (b'$', Some(len)) => (bytes.len() >= next + len + 2).then_some(next + len + 2),
        (b'*', Some(len)) => (0..len).try_fold(next, |at, _| skip(bytes, at)),
        _ => Some(next),
    }
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    (bytes.len() > end + 1).then_some(end)
}

fn parse_array(bytes: &[u8], mut at: usize, len: usize) -> Option<(Result<Value>, usize)> {
    let mut values = Vec::with_capacity(len.min(1024));
    let mut failed = None;
    for _ in 0..len {
        let (value, n) = parse(&bytes[at..])?;
        at += n;
        match value {
            Ok(value) => values.push(value),
            Err(error) => failed = Some(error),
        }
    }
    Some((failed.map_or(Ok(Value::Array(values)), Err), at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_kept_alive() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let options = ConnectOptions {
            port: server.local_addr().expect("an address").port(),
            ..ConnectOptions::default()
        };
        let Ok(Stream::Tcp(socket)) = connect(&options) else {
            panic!("no connection")
        };
        assert!(socket2::SockRef::from(&socket).keepalive().expect("an option"));
    }

    #[test]
    fn a_reply_counts_once_it_is_whole() {
        let reply = b"*2\r\n:7\r\n*2\r\n:0\r\n$3\r\nabc\r\n";
        for end in 0..reply.len() {
            assert!(parse(&reply[..end]).is_none(), "{end}");
        }
        let (value, len) = parse(reply).expect("whole");
        let inner = Value::Array(vec![Value::Int(0), Value::BulkString(b"abc".to_vec())]);
        assert_eq!(
            (value.expect("value"), len),
            (Value::Array(vec![Value::Int(7), inner]), reply.len())
        );
    }

    #[test]
    fn a_large_reply_is_skipped_over_as_it_is_parsed() {
        let reply = b"*4\r\n:7\r\n$-1\r\n*0\r\n$3\r\na\r\n\r\n:8\r\n";
        for end in 0..reply.len() {
            let parsed = parse(&reply[..end]).map(|(_, len)| len);
            assert_eq!(skip(&reply[..end], 0), parsed, "{end}");
        }
    }

    #[test]
    fn what_follows_is_the_next_reply() {
        assert_eq!(parse(b"*2\r\n:7\r\n*0\r\n:8\r\n").expect("whole").1, 12);
        assert_eq!(parse(b"$-1\r\n").expect("whole").0.expect("value"), Value::Nil);
    }

    #[test]
    fn a_refusal_keeps_the_servers_words() {
        let (refusal, len) = parse(b"-NOSCRIPT No matching script.\r\n+OK\r\n").expect("whole");
        assert_eq!(len, 31);
        assert_eq!(
            refusal.expect_err("refusal").to_string(),
            "NOSCRIPT No matching script."
        );
    }
}
