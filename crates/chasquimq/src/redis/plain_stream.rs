//! The bytes to and from the server where nobody waits for them: TCP, or a Unix socket.

use std::{
    io::{self, ErrorKind, IoSlice, Read, Write},
    net::{Shutdown, TcpStream, ToSocketAddrs},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use super::{options::ConnectOptions, stream::keep_alive};

#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects. Blocks.
    pub fn connect(options: &ConnectOptions) -> io::Result<Self> {
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

    /// Server, database and user.
    pub fn place(&self, options: &ConnectOptions) -> io::Result<String> {
        let server = match (self, &options.path) {
            (Stream::Tcp(stream), _) => stream.peer_addr()?.to_string(),
            (Stream::Unix(_), path) => format!("{path:?}"),
        };
        Ok(format!("{server} {} {:?}", options.db, options.username))
    }

    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(true),
            Stream::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    pub fn shutdown(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        }
    }

    pub fn as_raw_fd(&self) -> RawFd {
        match self {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
        }
    }
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
        let Ok(Stream::Tcp(socket)) = Stream::connect(&options) else {
            panic!("no connection")
        };
        assert!(socket2::SockRef::from(&socket).keepalive().expect("an option"));
    }
}
