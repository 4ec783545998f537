//! A bare socket to Redis that somebody's event loop drives: written to where a command is made, read where its answer is wanted.
//! It saves the two thread changes a command otherwise costs. It does not come back by itself: what it was asked and did not answer
//! is sent again over a [`super::connection::Connection`].

use std::{
    io::{self, ErrorKind, IoSlice, Read, Write},
    os::fd::RawFd,
};

use redis::{Cmd, Value};

use super::{
    commands::Commands,
    failure::fault_of,
    framing::{foreign_in, Foreign, Framing},
    login::{login, needs_no_password, refusal_alone, set_name},
    options::ConnectOptions,
    plain_stream::Stream,
    resp::parse,
};
use crate::error::{Error, Result};

/// What a command is answered.
pub type Answer = Value;

const READ_AT_ONCE: usize = 4096;
const READ_AT_MOST: usize = 256 * 1024;

/// A connected, logged-in socket that never blocks.
#[derive(Debug)]
pub struct DirectSocket {
    stream: Stream,
    place: String,
    outbox: Vec<u8>,
    // bytes of it that were sent
    sent: usize,
    inbox: Vec<u8>,
    // how far of a large reply has come
    framing: Framing,
    framed: usize,
    fault: Option<Foreign>,
}

impl DirectSocket {
    /// Connects and logs in. Blocks; call it off the event loop.
    /// # Errors
    /// [`Error::Connection`] when the server cannot be reached, [`Error::Refused`] when it refuses the login.
    pub fn open(options: &ConnectOptions) -> Result<Self> {
        let stream = Stream::connect(options).map_err(|error| lost(&error))?;
        let place = stream.place(options).map_err(|error| lost(&error))?;
        let mut socket = Self::over(stream, place);
        let wait = Some(options.connect_timeout);
        socket.stream.set_timeout(wait).map_err(|error| lost(&error))?;
        socket.log_in(options)?;
        socket.stream.set_timeout(None).map_err(|error| lost(&error))?;
        socket.stream.set_nonblocking().map_err(|error| lost(&error))?;
        Ok(socket)
    }

    fn over(stream: Stream, place: String) -> Self {
        Self {
            stream,
            place,
            outbox: Vec::new(),
            sent: 0,
            inbox: Vec::new(),
            framing: Framing::default(),
            framed: 0,
            fault: None,
        }
    }

    fn log_in(&mut self, options: &ConnectOptions) -> Result<()> {
        for command in login(options) {
            match self.ask(&command)? {
                Err(error) if needs_no_password(&error.to_string()) => {}
                Err(Error::Refused(refusal)) => {
                    return Err(Error::Refused(refusal_alone(&refusal).to_owned().into()));
                }
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
            match self.next_reply(0) {
                Ok(Some((answer, end))) => {
                    self.inbox.drain(..end);
                    return Ok(answer);
                }
                Ok(None) => {}
                Err(foreign) => return Err(fault_of(self.server(), &foreign)),
            }
            let mut bytes = [0; 512];
            match self.stream.read(&mut bytes).map_err(|error| lost(&error))? {
                0 => return Err(Error::Closed),
                n => self.inbox.extend_from_slice(&bytes[..n]),
            }
        }
    }

    fn server(&self) -> &str {
        self.place.split(' ').next().unwrap_or_default()
    }

    /// What came that no server of Redis sends, for which the connection was broken off. It is said once.
    pub fn take_fault(&mut self) -> Option<Error> {
        let foreign = self.fault.take()?;
        Some(fault_of(self.server(), &foreign))
    }

    /// Server, database and user: sockets of the same see and may do the same.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The descriptor to watch.
    pub fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Sends a command, or as much of it as the kernel takes now. True when nothing is left to send.
    /// # Errors
    /// When the connection is broken.
    pub fn send(&mut self, command: &[u8]) -> io::Result<bool> {
        self.send_pieces(&mut [IoSlice::new(command)])
    }

    /// Sends commands in the same way.
    /// # Errors
    /// As [`DirectSocket::send`].
    pub fn send_all(&mut self, commands: &Commands<'_>) -> io::Result<bool> {
        if let Some(all) = commands.in_one() {
            return self.send(all);
        }
        let mut pieces: Vec<_> = commands.pieces().map(IoSlice::new).collect();
        self.send_pieces(&mut pieces)
    }

    fn send_pieces(&mut self, mut pieces: &mut [IoSlice<'_>]) -> io::Result<bool> {
        if self.outbox.is_empty() {
            write_some(&mut self.stream, &mut pieces)?;
        }
        for piece in pieces {
            self.outbox.extend_from_slice(piece);
        }
        Ok(self.outbox.is_empty())
    }

    /// Sends what was left. True when nothing is left any more.
    /// # Errors
    /// As [`DirectSocket::send`].
    pub fn flush(&mut self) -> io::Result<bool> {
        let mut pieces = [IoSlice::new(&self.outbox[self.sent..])];
        let mut left = pieces.as_mut_slice();
        write_some(&mut self.stream, &mut left)?;
        if let Some(piece) = left.first() {
            self.sent = self.outbox.len() - piece.len();
            // one that is never quite empty must not grow with all that was ever sent
            if self.sent >= self.outbox.len() / 2 {
                self.outbox.drain(..self.sent);
                self.sent = 0;
            }
            return Ok(false);
        }
        self.outbox.clear();
        self.outbox.shrink_to(READ_AT_MOST);
        self.sent = 0;
        Ok(true)
    }

    /// Reads what is there, and gives every whole reply.
    /// # Errors
    /// When the connection is broken or closed by the server, or brings what is no reply ([`DirectSocket::take_fault`]).
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
        let read = self.take_replies(replies).map_err(io::Error::from);
        self.fault = read.as_ref().err().and_then(foreign_in).cloned();
        read
    }

    fn take_replies(&mut self, replies: &mut Vec<Result<Value>>) -> std::result::Result<(), Foreign> {
        let mut from = 0;
        while let Some((reply, len)) = self.next_reply(from)? {
            replies.push(reply);
            from += len;
        }
        self.inbox.drain(..from);
        if self.inbox.is_empty() {
            self.inbox.shrink_to(READ_AT_MOST);
        }
        Ok(())
    }

    /// Breaks the connection off; the descriptor stays.
    pub fn shutdown(&self) {
        // one that is broken already is no worse for it
        let _ = self.stream.shutdown();
    }

    /// The reply at this place of the inbox, and its length.
    fn next_reply(&mut self, from: usize) -> std::result::Result<Option<(Result<Value>, usize)>, Foreign> {
        let came = &self.inbox[from..];
        // a large reply comes in many pieces, and is parsed once
        if came.len() > READ_AT_ONCE {
            let Some(end) = self.framing.end(&came[self.framed..])? else {
                self.framed = came.len();
                return Ok(None);
            };
            let end = std::mem::take(&mut self.framed) + end;
            return parse(&came[..end]);
        }
        parse(came)
    }
}

/// Writes as much as the kernel takes now, which leaves the pieces.
fn write_some(stream: &mut Stream, pieces: &mut &mut [IoSlice<'_>]) -> io::Result<()> {
    // those at the front that are empty
    IoSlice::advance_slices(pieces, 0);
    while !pieces.is_empty() {
        let written = match pieces {
            [all] => stream.write(all),
            _ => stream.write_vectored(pieces),
        };
        match written {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(pieces, n),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn lost(error: &io::Error) -> Error {
    Error::Connection {
        message: error.to_string(),
        code: None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn open_pair() -> (DirectSocket, UnixStream) {
        let (near, far) = UnixStream::pair().expect("a pair");
        let socket = DirectSocket::over(Stream::Unix(near), "here 0 None".to_owned());
        socket.stream.set_nonblocking().expect("an option");
        (socket, far)
    }

    #[test]
    fn what_waits_to_be_sent_takes_no_more_room_than_twice_itself() {
        const WAITING: usize = 100;
        let (mut socket, mut far) = open_pair();
        let mut some = vec![b'a'; 64 << 10];
        for _ in 0..WAITING {
            socket.send(&some).expect("an open connection");
        }
        for round in 0..10 * WAITING {
            far.read_exact(&mut some).expect("it was sent");
            assert!(!socket.flush().expect("an open connection"));
            assert!(!socket.send(&some).expect("an open connection"));
            assert!(socket.outbox.len() <= 2 * (WAITING + 2) * some.len(), "{round}");
        }
    }

    #[test]
    fn replies_are_received_whole_until_something_comes_that_is_none() {
        let (mut socket, mut far) = open_pair();
        let large = format!("*2\r\n:1\r\n${}\r\n{}\r\n", 100_000, "x".repeat(100_000));
        let all = format!(":7\r\n{large}+OK\r\n:x\r\n");
        let mut replies = Vec::new();
        for piece in all.as_bytes().chunks(3000) {
            far.write_all(piece).expect("room");
            assert!(socket.receive(&mut replies).is_ok() || replies.len() == 3);
        }
        assert_eq!(replies.len(), 3);
        let fault = socket.take_fault().expect("a fault").to_string();
        assert_eq!(fault, "here does not speak the protocol of Redis: not a number: :x");
        assert!(socket.take_fault().is_none());
    }

    #[test]
    fn what_the_kernel_does_not_take_at_once_is_sent_later() {
        let (mut socket, mut far) = open_pair();
        let texts = [vec![b'a'; 3 << 20], Vec::new(), vec![b'b'; 5 << 20]];
        let mut commands = Commands::default();
        texts.iter().for_each(|text| commands.push_set("name", text, "9"));
        let mut expected = commands.pieces().collect::<Vec<_>>().concat();
        expected.extend_from_slice(b"next");
        assert!(!socket.send_all(&commands).expect("a part is sent"));
        assert!(!socket.send(b"next").expect("it waits for the rest"));

        let len = expected.len();
        let reads = std::thread::spawn(move || {
            let mut bytes = vec![0; len];
            far.read_exact(&mut bytes).map(|()| bytes)
        });
        while !socket.flush().expect("an open connection") {
            std::thread::yield_now();
        }
        assert!(reads.join().expect("a reader").expect("all bytes") == expected);
        assert!(socket.outbox.is_empty() && socket.sent == 0);
    }
}
