//! A connection to the server that breaks: before a request arrives, in the middle of it, between request and reply, in a reply.

use std::{
    io,
    net::Ipv4Addr,
    sync::{
        atomic::{AtomicU64, AtomicUsize, Ordering},
        Arc, Mutex,
    },
};

use chasquimq::ConnectOptions;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use crate::probe::connect_options;

/// Where a piece of the conversation is cut.
#[derive(Debug, Clone, Copy)]
enum Cut {
    Before,
    Inside,
    Behind,
}

/// What is made of the answer to a step that brings jobs.
#[derive(Debug, Clone, Copy)]
pub enum Garble {
    /// What no server sends.
    Foreign,
    /// Values of other kinds, at once.
    Shape,
    /// Nobody can tell which jobs it brings.
    Jobs,
    /// The same, and that is seen last.
    Columns,
}

struct Faults {
    /// One piece in so many is cut; 0 = none.
    one_in: AtomicU64,
    pieces: AtomicU64,
    cuts: AtomicUsize,
    /// What is made of answers, of so many of them.
    garble: Mutex<Option<(Garble, usize)>>,
    garbled: AtomicUsize,
}

impl Faults {
    fn none() -> Self {
        Self {
            one_in: AtomicU64::new(0),
            pieces: AtomicU64::new(0),
            cuts: AtomicUsize::new(0),
            garble: Mutex::default(),
            garbled: AtomicUsize::new(0),
        }
    }

    /// Garbles an answer, if that is wanted and one is here.
    fn garble(&self, piece: &mut [u8]) {
        let mut garble = self.garble.lock().expect("a garble");
        let Some((kind, left)) = garble.as_mut().filter(|(_, left)| *left > 0) else {
            return;
        };
        // its nine values, none refused, and what it took
        const HEAD: &[u8] = b"*9\r\n*0\r\n*";
        let starts = piece.windows(HEAD.len()).position(|window| window == HEAD);
        let Some(at) = starts.filter(|at| piece.get(at + HEAD.len()).is_some_and(|byte| *byte != b'0')) else {
            return;
        };
        let taken = |from: usize, wanted: &[u8]| {
            let found = piece[from..].windows(wanted.len()).position(|window| window == wanted);
            found.map(|found| from + found + wanted.len())
        };
        let (place, byte) = match kind {
            Garble::Foreign => (Some(at), b'?'),
            Garble::Shape => (Some(at + 4), b':'),
            Garble::Jobs => (taken(at + HEAD.len(), b"\r\n"), b'+'),
            // of records, behind the length of the columns
            Garble::Columns => {
                let records = taken(at + HEAD.len(), b"\r\n:-").and_then(|from| taken(from, b"\r\n$"));
                (records.and_then(|from| taken(from, b"\r\n")), 0xc1)
            }
        };
        if let Some(garbled) = place.and_then(|place| piece.get_mut(place)) {
            *garbled = byte;
            *left -= 1;
            self.garbled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Chance, different in each run: what is tested holds for any place of the cuts.
    fn cut(&self) -> Option<Cut> {
        let one_in = self.one_in.load(Ordering::Relaxed);
        if one_in == 0 {
            return None;
        }
        let piece = self.pieces.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mut bits = (piece ^ (piece >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        if !bits.is_multiple_of(one_in) {
            return None;
        }
        self.cuts.fetch_add(1, Ordering::Relaxed);
        Some(match (bits >> 32) % 3 {
            0 => Cut::Before,
            1 => Cut::Inside,
            _ => Cut::Behind,
        })
    }
}

pub struct Proxy {
    port: u16,
    faults: Arc<Faults>,
    orphan: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// A way to the test server on which one piece in `one_in` is cut.
    pub async fn start(one_in: u64) -> Self {
        let server = connect_options();
        assert!(server.path.is_none(), "faults need a server that is reached by TCP");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let seed = u64::from_str_radix(&chasquimq::unique_id()[..16], 16).expect("hexadecimal");
        let faults = Arc::new(Faults {
            one_in: AtomicU64::new(one_in),
            pieces: AtomicU64::new(seed),
            ..Faults::none()
        });
        let (orphan, orphaned) = watch::channel(());
        let task = tokio::spawn(accept(listener, (server.host, server.port), faults.clone(), orphaned));
        Self {
            port,
            faults,
            orphan,
            task,
        }
    }

    pub fn connect_options(&self) -> ConnectOptions {
        ConnectOptions {
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: self.port,
            ..connect_options()
        }
    }

    /// Number of connections that were cut.
    pub fn cuts(&self) -> usize {
        self.faults.cuts.load(Ordering::Relaxed)
    }

    /// From now on so many answers are garbled.
    pub fn garble(&self, kind: Garble, answers: usize) {
        *self.faults.garble.lock().expect("a garble") = Some((kind, answers));
    }

    /// Number of answers that were.
    pub fn garbled(&self) -> usize {
        self.faults.garbled.load(Ordering::Relaxed)
    }

    /// Ends every connection on the client's side; the server does not hear of it.
    pub fn orphan(&self) {
        self.orphan.send_replace(());
    }

    /// Cuts nothing any more.
    pub fn calm(&self) {
        self.faults.one_in.store(0, Ordering::Relaxed);
    }
}

impl Proxy {
    /// Ends every connection, and accepts no more.
    pub fn cut_off(self) {
        drop(self);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, server: (String, u16), faults: Arc<Faults>, orphaned: watch::Receiver<()>) {
    // its connections end with it
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (server, faults, mut orphaned) = (server.clone(), faults.clone(), orphaned.clone());
        orphaned.mark_unchanged();
        connections.spawn(async move {
            if let Ok(server) = TcpStream::connect(server).await {
                let (mut requests, mut answers) = client.into_split();
                let (mut replies, mut orders) = server.into_split();
                // when either way ends, both connections are closed
                tokio::select! {
                    _ = wake_next(&mut requests, &mut orders, &faults) => {}
                    _ = wake_next(&mut replies, &mut answers, &faults) => {}
                    _ = orphaned.changed() => {
                        drop((requests, answers));
                        // nothing is said to the server; what it says is heard by nobody
                        let _ = wake_next(&mut replies, &mut tokio::io::sink(), &Faults::none()).await;
                    }
                }
            }
        });
    }
}

async fn wake_next(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    faults: &Faults,
) -> io::Result<()> {
    let mut piece = vec![0; 64 * 1024];
    loop {
        let len = from.read(&mut piece).await?;
        if len == 0 {
            return Ok(());
        }
        faults.garble(&mut piece[..len]);
        let cut = faults.cut();
        let passed = match cut {
            Some(Cut::Before) => 0,
            Some(Cut::Inside) => len / 2,
            Some(Cut::Behind) | None => len,
        };
        to.write_all(&piece[..passed]).await?;
        if cut.is_some() {
            return Ok(());
        }
    }
}
