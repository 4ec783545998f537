//! Opens the way to the server: TCP or a Unix socket, and TLS over them.

use std::{io, net::SocketAddr, time::Duration};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use super::{options::ConnectOptions, tls::secure};
use crate::redis::{socket::Socket, wire::transport::Transport};

/// How long a peer may take nothing in, and how far probes are apart.
const SILENT: Duration = Duration::from_secs(30);
const PROBE: Duration = Duration::from_secs(10);

/// Connects, without logging in.
/// # Errors
/// The cause, when there is no way to the server or its certificate is refused.
pub(crate) async fn open(options: &ConnectOptions) -> io::Result<Transport> {
    match &options.path {
        #[cfg(unix)]
        Some(path) => over(tokio::net::UnixStream::connect(path).await?, options).await,
        #[cfg(not(unix))]
        Some(_) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this system has no Unix sockets",
        )),
        None => over(open_tcp(options).await?, options).await,
    }
}

async fn over<S>(stream: S, options: &ConnectOptions) -> io::Result<Transport>
where
    S: AsyncRead + AsyncWrite + Unpin,
    Socket: TryFrom<S, Error = io::Error>,
{
    let Some(tls) = &options.tls else {
        return Ok(Transport::new(stream.try_into()?, None));
    };
    // Node's name for what is behind a path
    let host = options.path.as_ref().map_or(options.host.as_str(), |_| "localhost");
    let (stream, session) = secure(stream, tls, host).await?.into_inner();
    Ok(Transport::new(stream.try_into()?, Some(session)))
}
async fn open_tcp(options: &ConnectOptions) -> io::Result<TcpStream> {
    let found = tokio::net::lookup_host((options.host.as_str(), options.port)).await?;
    let socket = connect_to_any(&options.wanted(found)?, options.connect_timeout).await?;
    socket.set_nodelay(true)?;
    keep_alive(&socket)?;
    Ok(socket)
}

/// Tries each address that a host's name has, in turn. One that swallows what is sent to it must not use up the time of the others.
async fn connect_to_any(addresses: &[SocketAddr], within: Duration) -> io::Result<TcpStream> {
    let share = within / (2 * addresses.len().max(1) as u32);
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for (at, address) in addresses.iter().enumerate() {
        let connecting = TcpStream::connect(address);
        // the last one has what is left
        let connected = match at + 1 == addresses.len() {
            true => connecting.await,
            false => tokio::time::timeout(share, connecting)
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
        };
        match connected {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Has the system find out that a peer is gone without a word: what is sent to it, or a probe, is not even taken in.
pub(crate) fn keep_alive<'a, S>(socket: &'a S) -> io::Result<()>
where
    SockRef<'a>: From<&'a S>,
{
    let socket = SockRef::from(socket);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(SILENT).with_interval(PROBE))?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(SILENT))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_is_kept_alive() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let options = ConnectOptions {
            port: server.local_addr().expect("an address").port(),
            ..ConnectOptions::default()
        };
        let socket = open_tcp(&options).await.expect("a connection");
        assert!(SockRef::from(&socket).keepalive().expect("an option"));
    }

    /// An address that answers nothing: its line of connections that nobody accepts is full. It does as long as they live.
    #[cfg(target_os = "linux")]
    fn swallowing() -> (SocketAddr, Vec<socket2::Socket>) {
        let new = || socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        let listener = new();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        listener.bind(&any.into()).expect("a port");
        listener.listen(0).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let mut sockets = vec![listener];
        for _ in 0..4 {
            let waiting = new();
            waiting.set_nonblocking(true).expect("an option");
            // those that fit, and those that do not, are told nothing yet
            let _ = waiting.connect(&address);
            sockets.push(waiting);
        }
        (address.as_socket().expect("an address"), sockets)
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_address_that_refuses_or_answers_nothing_leaves_time_for_those_behind_it() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let reached = server.local_addr().expect("an address");
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let refusing = closed.local_addr().expect("an address");
        drop(closed);
        let (silent, _line) = swallowing();
        let within = Duration::from_millis(600);
        for addresses in [
            vec![refusing, reached],
            vec![silent, reached],
            vec![silent, refusing, silent, reached],
        ] {
            let socket = tokio::time::timeout(within, connect_to_any(&addresses, within)).await;
            let socket = socket.expect("in time").expect("a connection");
            assert_eq!(socket.peer_addr().expect("an address"), reached);
        }
        let refused = connect_to_any(&[silent, refusing], within).await;
        assert_eq!(refused.expect_err("no server").kind(), io::ErrorKind::ConnectionRefused);
    }
}
