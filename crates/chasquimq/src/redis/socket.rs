//! A socket that never blocks, TCP or a Unix one: read and written by whoever has it, watched by the engine where nobody else does.

use std::{
    io::{self, IoSlice, Read, Write},
    net::Shutdown,
    sync::Arc,
};

use socket2::SockRef;
use tokio::io::Interest;

#[cfg(unix)]
mod system {
    pub(crate) use std::{net::TcpStream, os::unix::net::UnixStream};
}
#[cfg(not(unix))]
mod system {
    pub(crate) use tokio::net::TcpStream;
}

#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(system::TcpStream),
    #[cfg(unix)]
    Unix(system::UnixStream),
}

impl Socket {
    /// Breaks the connection off; the descriptor stays.
    pub fn shutdown(&self) {
        // one that is broken already is no worse for it
        let _ = match self {
            Socket::Tcp(stream) => SockRef::from(stream).shutdown(Shutdown::Both),
            #[cfg(unix)]
            Socket::Unix(stream) => SockRef::from(stream).shutdown(Shutdown::Both),
        };
    }

    /// Address of the other end; none of a Unix socket.
    pub fn peer(&self) -> Option<String> {
        match self {
            Socket::Tcp(stream) => stream.peer_addr().ok().map(|address| address.to_string()),
            #[cfg(unix)]
            Socket::Unix(_) => None,
        }
    }
}

#[cfg(unix)]
mod of_unix {
    use std::os::fd::{AsRawFd, RawFd};

    use tokio::io::unix::AsyncFd;

    use super::{io, Arc, Interest, IoSlice, Read, Socket, Write};

    impl TryFrom<tokio::net::TcpStream> for Socket {
        type Error = io::Error;

        fn try_from(stream: tokio::net::TcpStream) -> io::Result<Self> {
            stream.into_std().map(Self::Tcp)
        }
    }

    impl TryFrom<tokio::net::UnixStream> for Socket {
        type Error = io::Error;

        fn try_from(stream: tokio::net::UnixStream) -> io::Result<Self> {
            stream.into_std().map(Self::Unix)
        }
    }

    impl AsRawFd for Socket {
        fn as_raw_fd(&self) -> RawFd {
            match self {
                Socket::Tcp(stream) => stream.as_raw_fd(),
                Socket::Unix(stream) => stream.as_raw_fd(),
            }
        }
    }

    impl Read for &Socket {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            match self {
                Socket::Tcp(stream) => (&*stream).read(bytes),
                Socket::Unix(stream) => (&*stream).read(bytes),
            }
        }
    }

    impl Write for &Socket {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self {
                Socket::Tcp(stream) => (&*stream).write(bytes),
                Socket::Unix(stream) => (&*stream).write(bytes),
            }
        }

        fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
            match self {
                Socket::Tcp(stream) => (&*stream).write_vectored(pieces),
                Socket::Unix(stream) => (&*stream).write_vectored(pieces),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The engine watches a socket as long as this is there: what an event loop watches costs the engine nothing.
    pub(crate) struct Watch(AsyncFd<Arc<Socket>>);

    impl Watch {
        #[expect(
            deprecated,
            reason = "what stands for it is unsafe; the descriptor is the socket's, which lives as long"
        )]
        pub fn begin(socket: &Arc<Socket>) -> io::Result<Self> {
            AsyncFd::new(socket.clone()).map(Self)
        }

        /// Does `work`, which goes on until the socket would block, once that is ready.
        pub async fn when(&self, interest: Interest, work: impl FnOnce()) -> io::Result<()> {
            let mut ready = self.0.ready(interest).await?;
            work();
            ready.clear_ready();
            Ok(())
        }
    }

    #[cfg(test)]
    impl From<super::system::UnixStream> for Socket {
        fn from(stream: super::system::UnixStream) -> Self {
            Self::Unix(stream)
        }
    }
}

#[cfg(not(unix))]
mod of_others {
    use super::{io, Arc, Interest, IoSlice, Read, Socket, Write};

    impl TryFrom<tokio::net::TcpStream> for Socket {
        type Error = io::Error;

        fn try_from(stream: tokio::net::TcpStream) -> io::Result<Self> {
            Ok(Self::Tcp(stream))
        }
    }

    impl Read for &Socket {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let Socket::Tcp(stream) = self;
            stream.try_read(bytes)
        }
    }

    impl Write for &Socket {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let Socket::Tcp(stream) = self;
            stream.try_write(bytes)
        }

        fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
            let Socket::Tcp(stream) = self;
            stream.try_write_vectored(pieces)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The engine watches every socket.
    pub(crate) struct Watch(Arc<Socket>);

    impl Watch {
        pub fn begin(socket: &Arc<Socket>) -> io::Result<Self> {
            Ok(Self(socket.clone()))
        }

        /// Does `work`, which goes on until the socket would block, once that is ready.
        pub async fn when(&self, interest: Interest, work: impl FnOnce()) -> io::Result<()> {
            let Socket::Tcp(stream) = &*self.0;
            stream.ready(interest).await?;
            work();
            Ok(())
        }
    }
}

#[cfg(not(unix))]
pub(crate) use of_others::Watch;
#[cfg(unix)]
pub(crate) use of_unix::Watch;
