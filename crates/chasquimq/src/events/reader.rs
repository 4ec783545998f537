//! Reads a queue's event log as it grows.

use std::{future::Future, sync::Arc, time::Duration};

use redis::Value;
use tokio::sync::{watch, Semaphore};

use super::{
    entries::{parse_id, Entry, PageSize, BYTES_AT_ONCE},
    unpack::Event,
};
use crate::{
    error::{Error, Result},
    keys::Keys,
    redis::{call::reply::Reply, connection::Connection, reach::options::ConnectOptions, session::ConnectionEvent},
};

const RETRY: Duration = Duration::from_millis(200);
// a server that refuses a read will mostly do so again; as BullMQ
const AFTER_REFUSAL: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(1);

/// What a reader tells.
#[derive(Debug)]
pub enum EventMessage {
    /// Events, in order.
    Events(Vec<Event>),
    /// Reading failed; it goes on.
    Failed(Error),
    /// The connection failed or broke.
    Connection(ConnectionEvent),
}

/// Reads a queue's events as they come, on a connection of its own.
#[derive(Debug)]
pub struct EventReader {
    connection: Connection,
    keys: Keys,
    // a read is asked for whose first event is not fixed yet
    starting: watch::Sender<bool>,
    room: Option<Arc<Semaphore>>,
}

/// Up to where the log was read.
struct Position {
    last: (u64, u64),
    // the server that had it in its log (`Connection::servers`); `None`: the user named it
    server: Option<u64>,
}

type EventSink = Arc<dyn Fn(EventMessage) + Send + Sync>;

impl EventReader {
    /// A reader that is not connected yet.
    pub fn new(connect: ConnectOptions, keys: Keys, sink: EventSink) -> Self {
        let named = ConnectOptions {
            client_name: Some(keys.events_client()),
            ..connect.for_keys(&keys.base)
        };
        let connection = Connection::new(named, move |event| sink(EventMessage::Connection(event)));
        Self {
            connection,
            keys,
            starting: watch::Sender::new(false),
            room: None,
        }
    }

    /// Takes a permit before each [`EventMessage::Events`]: who has handled it gives the permit back, and is never handed more than
    /// there are permits. Without it a slow listener's events gather in memory.
    #[must_use]
    pub fn paced_by(self, room: Arc<Semaphore>) -> Self {
        Self {
            room: Some(room),
            ..self
        }
    }

    /// Connects. Once [`EventReader::run`] was called, it also waits until the first event to read is fixed: what happens from then
    /// on is read.
    /// # Errors
    /// As [`Connection::ready`].
    pub async fn ready(&self) -> Result<()> {
        self.connection.ready().await?;
        // its sender is this reader's own
        let _ = self.starting.subscribe().wait_for(|starting| !starting).await;
        Ok(())
    }

    /// Reads until closed: everything after `last_event_id`, or with `$` everything from now on. A read waits for `wait` at most.
    pub fn run(
        self: &Arc<Self>,
        last_event_id: &str,
        wait: Duration,
        sink: EventSink,
    ) -> impl Future<Output = ()> + use<> {
        self.starting.send_replace(true);
        let (reader, last_event_id) = (self.clone(), last_event_id.to_owned());
        async move { reader.read_on(&last_event_id, wait, sink).await }
    }

    async fn read_on(&self, last_event_id: &str, wait: Duration, sink: EventSink) {
        let mut position = loop {
            let start = self.start(last_event_id).await;
            self.starting.send_replace(false);
            match start {
                Ok(position) => break position,
                Err(error) => {
                    if !self.rest_after(error, &sink).await {
                        return;
                    }
                }
            }
        };
        let mut page = PageSize::first();
        loop {
            match self.read(&mut position, wait, &mut page).await {
                Ok(events) => {
                    for part in in_parts(events) {
                        if !self.has_room().await {
                            return;
                        }
                        sink(EventMessage::Events(part));
                    }
                }
                Err(error) => {
                    if !self.rest_after(error, &sink).await {
                        return;
                    }
                }
            }
        }
    }

    /// Tells why it could not read, unless its connection does, and rests before the next try. False once it is closed.
    async fn rest_after(&self, error: Error, sink: &EventSink) -> bool {
        let pause = match error {
            Error::Closed => return false,
            error if error.is_connection() => RETRY,
            error => {
                sink(EventMessage::Failed(error));
                AFTER_REFUSAL
            }
        };
        self.connection.rest(pause).await.is_ok()
    }

    /// False once it is closed.
    async fn has_room(&self) -> bool {
        match &self.room {
            Some(room) => room.acquire().await.map(tokio::sync::SemaphorePermit::forget).is_ok(),
            None => true,
        }
    }

    /// Ends reading.
    pub fn close(&self) {
        if let Some(room) = &self.room {
            room.close();
        }
        self.connection.close();
    }

    async fn start(&self, last_event_id: &str) -> Result<Position> {
        if last_event_id != "$" {
            let last = parse_id(last_event_id)?;
            return Ok(Position { last, server: None });
        }
        let last = self.newest().await?;
        Ok(self.at(last))
    }

    fn at(&self, last: (u64, u64)) -> Position {
        let server = Some(self.connection.servers());
        Position { last, server }
    }

    /// Id of the newest entry; 0-0 when there is none.
    async fn newest(&self) -> Result<(u64, u64)> {
        let mut newest = redis::cmd("XREVRANGE");
        newest
            .arg(self.keys.key("events"))
            .arg("+")
            .arg("-")
            .arg("COUNT")
            .arg(1);
        let mut entries = Reply::new("the event log", self.connection.send(&newest).await?)?;
        if entries.is_empty() {
            return Ok((0, 0));
        }
        parse_id(&entries.array()?.text()?)
    }

    /// Reads a page of entries.
    async fn read(&self, position: &mut Position, wait: Duration, page: &mut PageSize) -> Result<Vec<Event>> {
        let (key, after) = (
            self.keys.key("events"),
            format!("{}-{}", position.last.0, position.last.1),
        );
        let read = |wait: Duration| {
            let mut read = redis::cmd("XREAD");
            read.arg("COUNT").arg(page.0).arg("BLOCK").arg(wait.as_millis() as u64);
            read.arg("STREAMS").arg(&key).arg(&after);
            read
        };
        let reply = match tokio::time::timeout(wait + GRACE, self.connection.wait_once(wait, read)).await {
            Ok(reply) => reply?,
            Err(_) => {
                self.connection.drop_connection();
                return Ok(Vec::new());
            }
        };
        let mut events = Vec::new();
        if reply == Value::Nil {
            self.find_back(position).await?;
            return Ok(events);
        }
        let mut streams = Reply::new("the event log", reply)?;
        let mut stream = streams.array()?;
        stream.text()?;
        let mut entries = stream.array()?;
        let (came, mut bytes) = (entries.len(), 0);
        while !entries.is_empty() {
            let entry = Entry::take(&mut entries)?;
            bytes += entry.bytes();
            let (after, id) = (position.last, entry.id);
            entry.unpack(after, &mut events);
            *position = self.at(id);
        }
        page.learn(came, bytes);
        Ok(events)
    }

    /// A log that was lost begins anew, perhaps before where it was: of the same server, all of it is news. Another server may have all but the
    /// last of what was read.
    async fn find_back(&self, position: &mut Position) -> Result<()> {
        let Some(server) = position.server else { return Ok(()) };
        let newest = self.newest().await?;
        if newest < position.last {
            let is_same = server == self.connection.servers();
            *position = self.at(if is_same { (0, 0) } else { newest });
        }
        Ok(())
    }
}

/// Events in parts of bounded size, none of them empty.
fn in_parts(events: Vec<Event>) -> Vec<Vec<Event>> {
    let size = |event: &Event| {
        let fields = event.fields.iter().map(|(field, value)| field.len() + value.len());
        event.name.len() + fields.sum::<usize>()
    };
    let (mut parts, mut bytes) = (Vec::new(), usize::MAX);
    for event in events {
        let more = size(&event);
        bytes = bytes.saturating_add(more);
        if bytes > BYTES_AT_ONCE {
            parts.push(Vec::new());
            bytes = more;
        }
        if let Some(part) = parts.last_mut() {
            part.push(event);
        }
    }
    parts
}
