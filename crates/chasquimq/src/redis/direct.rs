//! A bare socket to Redis that somebody's event loop drives: written to where a command is made, read where its answer is wanted.
//! It saves the two thread changes a command otherwise costs. It does not come back by itself: what it was asked and did not answer
//! is sent again over a [`super::connection::Connection`].

use std::{
    io::{self, ErrorKind, IoSlice, Read, Write},
    net::{Shutdown, TcpStream, ToSocketAddrs},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use redis::{Cmd, Value};

use super::{
    commands::Commands,
    login::{login, needs_no_password, refusal_alone, set_name},
    options::ConnectOptions,
    resp::{parse, skip},
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
    for address in options.wanted((options.host.as_str(), options.port).to_socket_addrs()?)? {
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

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(slices),
            Stream::Unix(stream) => stream.write_vectored(slices),
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

    fn open_pair() -> (DirectSocket, UnixStream) {
        let (near, far) = UnixStream::pair().expect("a pair");
        let socket = DirectSocket {
            stream: Stream::Unix(near),
            place: String::new(),
            outbox: Vec::new(),
            sent: 0,
            inbox: Vec::new(),
        };
        socket.set_nonblocking().expect("an option");
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
