//! Bytes to and from a server, through TLS where there is any. Nothing here waits.

use std::{
    io::{self, ErrorKind, IoSlice, Read, Write},
    sync::Arc,
};

use rustls::ClientConnection;

use crate::redis::call::commands::Commands;
use crate::redis::socket::Socket;

const READ_AT_ONCE: usize = 4096;
const READ_AT_MOST: usize = 256 * 1024;

/// A connection, once hands are shaken.
#[derive(Debug)]
pub(crate) struct Transport {
    socket: Arc<Socket>,
    tls: Option<Box<ClientConnection>>,
    // what came through it and was not opened yet
    sealed: Vec<u8>,
    // without TLS, which keeps what is left to send itself
    outbox: Vec<u8>,
    // bytes of it that were sent
    sent: usize,
    // nothing can be sent any more
    is_mute: bool,
}

impl Transport {
    pub fn new(socket: Socket, tls: Option<ClientConnection>) -> Self {
        Self {
            socket: Arc::new(socket),
            tls: tls.map(|mut tls| {
                // what was given is sent, however long it waits
                tls.set_buffer_limit(None);
                Box::new(tls)
            }),
            sealed: Vec::new(),
            outbox: Vec::new(),
            sent: 0,
            is_mute: false,
        }
    }

    pub fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Whether something waits until the system takes it.
    pub fn is_full(&self) -> bool {
        match &self.tls {
            _ if self.is_mute => false,
            Some(tls) => tls.wants_write(),
            None => !self.outbox.is_empty(),
        }
    }

    /// Has commands sent behind what was given before, by the next [`Transport::flush`].
    pub fn put(&mut self, bytes: &[u8]) {
        match &mut self.tls {
            _ if self.is_mute => {}
            // without a limit it takes all
            Some(tls) => drop(tls.writer().write_all(bytes)),
            None => self.outbox.extend_from_slice(bytes),
        }
    }

    /// Sends commands, or as much of them as the system takes now. True when nothing is left to send.
    /// # Errors
    /// When nothing can be sent any more. What came before that can be read.
    pub fn send(&mut self, commands: &Commands<'_>) -> io::Result<bool> {
        if self.tls.is_some() || self.is_full() {
            commands.pieces().for_each(|piece| self.put(piece));
            return self.flush();
        }
        let mut pieces: Vec<_> = commands.pieces().map(IoSlice::new).collect();
        let mut left = pieces.as_mut_slice();
        self.guard(|transport| write_some(&transport.socket, &mut left))?;
        for piece in left {
            self.outbox.extend_from_slice(piece);
        }
        Ok(self.outbox.is_empty())
    }

    /// Sends what was left. True when nothing is left any more.
    /// # Errors
    /// As [`Transport::send`].
    pub fn flush(&mut self) -> io::Result<bool> {
        self.guard(Self::flush_some)?;
        Ok(!self.is_full())
    }

    fn flush_some(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            return unless_blocked(|| {
                while tls.wants_write() {
                    if tls.write_tls(&mut &*self.socket)? == 0 {
                        return Err(ErrorKind::WriteZero.into());
                    }
                }
                Ok(())
            });
        }
        let mut pieces = [IoSlice::new(&self.outbox[self.sent..])];
        let mut left = pieces.as_mut_slice();
        write_some(&self.socket, &mut left)?;
        if let Some(piece) = left.first() {
            self.sent = self.outbox.len() - piece.len();
            // one that is never quite empty must not grow with all that was ever sent
            if self.sent >= self.outbox.len() / 2 {
                self.outbox.drain(..self.sent);
                self.sent = 0;
            }
            return Ok(());
        }
        self.outbox.clear();
        self.outbox.shrink_to(READ_AT_MOST);
        self.sent = 0;
        Ok(())
    }

    fn guard(&mut self, send: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        if self.is_mute {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let sent = send(self);
        self.is_mute = sent.is_err();
        sent
    }

    /// Reads what is there.
    /// # Errors
    /// When nothing more comes.
    pub fn read(&mut self, inbox: &mut Vec<u8>) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return read_all(&*self.socket, inbox);
        };
        // the library would ask the system for one small piece after the other
        let came = read_all(&*self.socket, &mut self.sealed);
        let opened = open(tls, &self.sealed, inbox);
        self.sealed.clear();
        shrink(&mut self.sealed);
        // answers of the protocol itself: to new keys, say, or why it ends
        if tls.wants_write() {
            let _ = self.flush();
        }
        opened.and(came)
    }
}

/// What is in bytes of TLS.
fn open(tls: &mut ClientConnection, mut sealed: &[u8], inbox: &mut Vec<u8>) -> io::Result<()> {
    while !sealed.is_empty() {
        tls.read_tls(&mut sealed)?;
        let passed = tls.process_new_packets();
        read_all(tls.reader(), inbox)?;
        passed.map_err(io::Error::other)?;
    }
    Ok(())
}

/// What a source that does not block has now.
fn read_all(mut source: impl Read, inbox: &mut Vec<u8>) -> io::Result<()> {
    let mut room = READ_AT_ONCE;
    loop {
        let held = inbox.len();
        inbox.resize(held + room, 0);
        let read = source.read(&mut inbox[held..]);
        inbox.truncate(held + read.as_ref().map_or(0, |n| *n));
        match read {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) if n < room => return Ok(()),
            Ok(_) => room = (room * 2).min(READ_AT_MOST),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Room that is not needed any more is given back.
pub(crate) fn shrink(inbox: &mut Vec<u8>) {
    if inbox.is_empty() {
        inbox.shrink_to(READ_AT_MOST);
    }
}

/// Bytes beyond which a reply may be long in coming.
pub(crate) const LONG: usize = READ_AT_ONCE;

fn unless_blocked(mut work: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match work() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Writes as much as the system takes now, which leaves the pieces.
fn write_some(socket: &Socket, pieces: &mut &mut [IoSlice<'_>]) -> io::Result<()> {
    // those at the front that are empty
    IoSlice::advance_slices(pieces, 0);
    unless_blocked(|| {
        while !pieces.is_empty() {
            let mut writes = socket;
            let written = match &**pieces {
                [all] => writes.write(all),
                _ => writes.write_vectored(pieces),
            }?;
            if written == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(pieces, written);
        }
        Ok(())
    })
}
