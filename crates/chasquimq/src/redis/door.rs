//! Looks at what a server sends before the library reads it, for two things that nobody is told otherwise.
//!
//! What a server says to a client that it turns away: it does not wait for a command, and hangs up at once. The words may come before the first
//! command is sent, and the command may find a broken connection, so that nobody would take them for its answer.
//!
//! And what no server of Redis sends: the library would keep all that comes, and tell one call of many why the connection broke.

use std::{
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use redis::RedisError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    framing::{foreign_in, Foreign, Framing},
    stream::Stream,
};

/// How these words begin: it has as many clients as it may have, or is in protected mode.
const REFUSALS: [&[u8]; 2] = [b"-ERR max number of clients", b"-DENIED "];
/// Bytes of them that are looked for behind a failed write.
const LONGEST: usize = 1024;

/// Why a connection is of no use, once that was heard.
#[derive(Clone, Default)]
pub(super) struct Words(Arc<OnceLock<Why>>);

enum Why {
    /// In the server's words.
    TurnedAway(Vec<u8>),
    /// That is no server of Redis.
    Foreign(Foreign),
}

impl Words {
    /// The server's error, or what stands for it.
    pub fn error(&self) -> Option<RedisError> {
        match self.0.get()? {
            Why::TurnedAway(words) => redis::parse_redis_value(words)
                .and_then(|value| value.extract_error())
                .err(),
            Why::Foreign(foreign) => Some(io::Error::from(foreign.clone()).into()),
        }
    }

    /// What came that no server of Redis sends.
    pub fn fault(&self) -> Option<RedisError> {
        match self.0.get()? {
            Why::TurnedAway(_) => None,
            Why::Foreign(_) => self.error(),
        }
    }
}

/// A stream of which is looked at what comes.
pub(super) struct Door<S> {
    stream: S,
    words: Words,
    framing: Framing,
    is_first: bool,
    // why the first command could not be sent, until what came before it was read
    broken: Option<io::Error>,
}

impl<S: Stream> Door<S> {
    pub fn new(stream: S, words: Words) -> Self {
        Self {
            stream,
            words,
            framing: Framing::default(),
            is_first: true,
            broken: None,
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.is_first &= bytes.is_empty();
        if REFUSALS.iter().any(|refusal| bytes.starts_with(refusal)) {
            // there is one first time
            let _ = self.words.0.set(Why::TurnedAway(bytes.to_vec()));
        }
    }

    /// # Errors
    /// Once something came that no server of Redis sends, whatever comes then.
    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        let passed = self.framing.pass(bytes).map_err(io::Error::from);
        if let Some(foreign) = passed.as_ref().err().and_then(foreign_in) {
            let _ = self.words.0.set(Why::Foreign(foreign.clone()));
        }
        passed
    }

    /// Of a connection that broke as the first command was sent: what came before is not read by anybody.
    /// It is there, or the end of the connection is, though the system may tell of it later.
    fn poll_broken(&mut self, error: io::Error, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = [0; LONGEST];
        let mut read = ReadBuf::new(&mut room);
        if Pin::new(&mut self.stream).poll_read(context, &mut read).is_pending() {
            self.broken = Some(error);
            return Poll::Pending;
        }
        self.hear(read.filled());
        Poll::Ready(Err(error))
    }

    /// Passes on what a write gave, but for the failure of the first.
    fn written(&mut self, written: Poll<io::Result<usize>>, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Err(error)) if self.is_first => self.poll_broken(error, context),
            written => written,
        }
    }
}

impl<S: Stream> AsyncRead for Door<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buf);
        let came = &buf.filled()[before..];
        if self.is_first {
            self.hear(came);
        }
        match (read, self.pass(came)) {
            (Poll::Ready(Ok(())), Err(foreign)) => Poll::Ready(Err(foreign)),
            (read, _) => read,
        }
    }
}

impl<S: Stream> AsyncWrite for Door<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = match self.broken.take() {
            Some(error) => Poll::Ready(Err(error)),
            None => Pin::new(&mut self.stream).poll_write(context, bytes),
        };
        self.written(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = match self.broken.take() {
            Some(error) => Poll::Ready(Err(error)),
            None => Pin::new(&mut self.stream).poll_write_vectored(context, pieces),
        };
        self.written(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
