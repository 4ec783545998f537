//! The event log: reads its batched entries (`lua/lib/events.lua`) and takes them apart into BullMQ's events.

use std::{borrow::Cow, future::Future, sync::Arc, time::Duration};

use redis::Value;
use tokio::sync::{watch, Semaphore};

use crate::{
    error::{Error, Result},
    job::{
        frame::{child_id, MAX_JOBS},
        msgpack::{Item, Reader},
    },
    keys::Keys,
    redis::{
        connection::{ConnectOptions, Connection, ConnectionEvent},
        reply::Reply,
    },
};

/// Most entries of a read; the first reads fewer, as nobody knows how large they are.
const ENTRIES_A_READ: usize = 256;
const FIRST_ENTRIES: usize = 8;
/// Bytes of a read, and of what is handed over at once, unless a single entry, or event, has more.
const BYTES_AT_ONCE: usize = 8 << 20;
const RETRY: Duration = Duration::from_millis(200);
const GRACE: Duration = Duration::from_secs(1);
/// Records that an entry tells of at most.
const MOST_RECORDS: i64 = 1 << 16;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Place in the log: `<ms>-<count>`, increasing.
    pub id: String,
    /// Name, in BullMQ's words.
    pub name: String,
    /// Fields, all texts.
    pub fields: Vec<(String, String)>,
}

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
        let mut last = loop {
            let start = self.start(last_event_id).await;
            self.starting.send_replace(false);
            match start {
                Ok(last) => break last,
                Err(Error::Closed) => return,
                Err(error) => sink(EventMessage::Failed(error)),
            }
            tokio::time::sleep(RETRY).await;
        };
        let mut entries = FIRST_ENTRIES;
        loop {
            match self.read(&mut last, wait, &mut entries).await {
                Ok(events) => {
                    for part in in_parts(events) {
                        if !self.has_room().await {
                            return;
                        }
                        sink(EventMessage::Events(part));
                    }
                }
                Err(Error::Closed) => return,
                Err(error) => {
                    if !error.is_connection() {
                        sink(EventMessage::Failed(error));
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
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

    async fn start(&self, last_event_id: &str) -> Result<(u64, u64)> {
        if last_event_id != "$" {
            return parse_id(last_event_id);
        }
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

    /// Reads that many entries, and sets how many the next read asks for: as many as fit, by the size of those that came.
    async fn read(&self, last: &mut (u64, u64), wait: Duration, count: &mut usize) -> Result<Vec<Event>> {
        let mut read = redis::cmd("XREAD");
        read.arg("COUNT").arg(*count).arg("BLOCK").arg(wait.as_millis() as u64);
        read.arg("STREAMS")
            .arg(self.keys.key("events"))
            .arg(format!("{}-{}", last.0, last.1));
        let reply = match tokio::time::timeout(wait + GRACE, self.connection.send_once(&read)).await {
            Ok(reply) => reply?,
            Err(_) => {
                self.connection.drop_connection();
                return Ok(Vec::new());
            }
        };
        let mut events = Vec::new();
        if reply == Value::Nil {
            return Ok(events);
        }
        let mut streams = Reply::new("the event log", reply)?;
        let mut stream = streams.array()?;
        stream.text()?;
        let mut entries = stream.array()?;
        let (came, mut bytes) = (entries.len(), 0);
        while !entries.is_empty() {
            let mut entry = entries.array()?;
            let id = parse_id(&entry.text()?)?;
            let mut fields = entry.array()?;
            fields.text()?;
            let groups = fields.bytes()?;
            let large = large_values(fields)?;
            bytes += groups.len() + large.iter().map(String::len).sum::<usize>();
            // what another program wrote there is no event, and must not keep those around it
            let _ = unpack_entry(id, *last, &groups, large, &mut events);
            *last = id;
        }
        let fitting = (BYTES_AT_ONCE * came).checked_div(bytes).unwrap_or(ENTRIES_A_READ);
        *count = fitting.clamp(1, ENTRIES_A_READ.min(2 * *count));
        Ok(events)
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

/// Events as JSON text: `[[id, name, {field: value}], ...]`.
pub fn to_json(events: &[Event]) -> String {
    let rows: Vec<(&str, &str, Fields<'_>)> = events
        .iter()
        .map(|event| (event.id.as_str(), event.name.as_str(), Fields(&event.fields)))
        .collect();
    serde_json::to_string(&rows).unwrap_or_else(|_| "[]".to_owned())
}

struct Fields<'a>(&'a [(String, String)]);

impl serde::Serialize for Fields<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(field, value)| (field, value)))
    }
}

fn parse_id(id: &str) -> Result<(u64, u64)> {
    let (ms, seq) = id.split_once('-').unwrap_or((id, "0"));
    match (ms.parse(), seq.parse()) {
        (Ok(ms), Ok(seq)) => Ok((ms, seq)),
        _ => Err(Error::Invalid(format!(
            "Invalid stream ID specified as stream command argument: {id}"
        ))),
    }
}

/// The values of an entry's other fields.
fn large_values(mut fields: Reply) -> Result<Vec<String>> {
    let mut values = Vec::with_capacity(fields.len() / 2);
    while fields.len() > 1 {
        fields.text()?;
        values.push(fields.text()?);
    }
    Ok(values)
}

/// Number of events in an entry.
pub(crate) fn count_events(blob: &[u8]) -> Result<u64> {
    let mut unpacking = Unpacking::default();
    let mut reader = Reader::new(blob);
    while !reader.is_empty() {
        unpacking.group(&mut reader)?;
    }
    Ok(unpacking.found.len() as u64)
}

/// Takes one entry apart. Events up to `after` are passed over: a reader may resume in the middle of an entry.
fn unpack_entry(
    id: (u64, u64),
    after: (u64, u64),
    blob: &[u8],
    large: Vec<String>,
    events: &mut Vec<Event>,
) -> Result<()> {
    let mut unpacking = Unpacking {
        found: Vec::new(),
        large: large.into_iter(),
    };
    let mut reader = Reader::new(blob);
    while !reader.is_empty() {
        unpacking.group(&mut reader)?;
    }
    let count = unpacking.found.len() as u64;
    for (i, (name, fields)) in unpacking.found.into_iter().enumerate() {
        let place = (id.0, (id.1 + i as u64 + 1).saturating_sub(count));
        if place > after {
            events.push(Event {
                id: format!("{}-{}", place.0, place.1),
                name,
                fields,
            });
        }
    }
    Ok(())
}

#[derive(Default)]
struct Unpacking {
    found: Vec<(String, Vec<(String, String)>)>,
    // results that lie behind the groups
    large: std::vec::IntoIter<String>,
}

impl Unpacking {
    fn push(&mut self, name: &str, fields: &[(&str, &str)]) {
        let fields = fields
            .iter()
            .map(|(field, value)| ((*field).to_owned(), (*value).to_owned()))
            .collect();
        self.found.push((name.to_owned(), fields));
    }

    fn group(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let len = reader.array()?;
        match reader.str()? {
            "A" => self.added_frame(reader, len),
            "a" => {
                let (first, n) = (reader.int()?, reader.int()?);
                let ids = Ids::read_front(reader, len > 3, first)?;
                for i in 0..numbers(first, n, MAX_JOBS as i64)?.count() {
                    self.push("active", &[("jobId", &ids.at(i)), ("prev", "waiting")]);
                }
                Ok(())
            }
            "C" => self.completed_run(reader, len),
            "B" => self.added_records(reader, len),
            "X" => self.columns(reader, len),
            "L" => {
                let fields = [
                    ("jobId", reader.str()?.to_owned()),
                    ("returnvalue", self.large.next().unwrap_or_default()),
                    ("prev", "active".to_owned()),
                ];
                let fields = fields.map(|(field, value)| (field.to_owned(), value));
                self.found.push(("completed".to_owned(), fields.to_vec()));
                Ok(())
            }
            "E" => {
                let name = reader.str()?;
                let mut fields = Vec::new();
                for _ in 0..len.saturating_sub(2) / 2 {
                    fields.push((reader.str()?, reader.str()?));
                }
                self.push(name, &fields);
                Ok(())
            }
            // a newer version's group
            _ => {
                for _ in 1..len {
                    reader.skip()?;
                }
                Ok(())
            }
        }
    }

    fn added_frame(&mut self, reader: &mut Reader<'_>, len: usize) -> Result<()> {
        let (first, n) = (reader.int()?, reader.int()?);
        let names = column(reader)?;
        let ids = Ids::read_front(reader, len > 4, first)?;
        for i in 0..numbers(first, n, MAX_JOBS as i64)?.count() {
            let id = ids.at(i);
            self.push("added", &[("jobId", &id), ("name", &names.at(i))]);
            self.push("waiting", &[("jobId", &id)]);
        }
        Ok(())
    }

    fn completed_run(&mut self, reader: &mut Reader<'_>, len: usize) -> Result<()> {
        let (first, n) = (reader.int()?, reader.int()?);
        let results = reader.bytes()?;
        let ids = Ids::read_front(reader, len > 4, first)?;
        let mut results = (!results.is_empty()).then(|| Reader::new(results));
        if let Some(results) = &mut results {
            results.array()?;
        }
        for i in 0..numbers(first, n, MAX_JOBS as i64)?.count() {
            let value = match &mut results {
                Some(results) => results.str()?,
                None => "",
            };
            let value = if value.is_empty() { "null" } else { value };
            let fields = [("jobId", &*ids.at(i)), ("returnvalue", value), ("prev", "active")];
            self.push("completed", &fields);
        }
        Ok(())
    }

    fn added_records(&mut self, reader: &mut Reader<'_>, len: usize) -> Result<()> {
        let ids = Ids::read(reader)?;
        let n = numbers(0, reader.int()?, MOST_RECORDS)?.end as usize;
        let names = column(reader)?;
        let event = reader.str()?;
        let dues = if len > 5 { Some(column(reader)?) } else { None };
        for i in 0..n {
            let id = ids.at(i);
            self.push("added", &[("jobId", &id), ("name", &names.at(i))]);
            match &dues {
                Some(dues) => self.push(event, &[("jobId", &id), ("delay", &dues.at(i))]),
                None => self.push(event, &[("jobId", &id)]),
            }
        }
        Ok(())
    }

    fn columns(&mut self, reader: &mut Reader<'_>, len: usize) -> Result<()> {
        let event = reader.str()?;
        let ids = column(reader)?;
        let mut columns = Vec::new();
        for _ in 0..len.saturating_sub(3) / 2 {
            columns.push((reader.str()?, column(reader)?));
        }
        for i in 0..ids.len() {
            let id = ids.at(i);
            let values: Vec<_> = columns.iter().map(|(field, values)| (*field, values.at(i))).collect();
            let mut fields = vec![("jobId", &*id)];
            fields.extend(values.iter().map(|(field, value)| (*field, &**value)));
            self.push(event, &fields);
        }
        Ok(())
    }
}

/// Consecutive numbers, `most` of them at most.
fn numbers(first: i64, n: i64, most: i64) -> Result<std::ops::Range<i64>> {
    if !(0..=most).contains(&n) {
        return Err(Error::malformed("an event", format_args!("{n} jobs")));
    }
    Ok(first..first.saturating_add(n))
}

/// Ids: numbered from one on, with what those of children begin with, or one each.
enum Ids<'a> {
    From(i64),
    Children(&'a str, i64),
    Each(Column<'a>),
}

impl<'a> Ids<'a> {
    /// Those of a frame's jobs.
    fn read_front(reader: &mut Reader<'a>, are_children: bool, first: i64) -> Result<Self> {
        Ok(match are_children {
            true => Ids::Children(reader.str()?, first),
            false => Ids::From(first),
        })
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut ahead = *reader;
        match ahead.item()? {
            Item::Number(first) => {
                *reader = ahead;
                Ok(Ids::From(first as i64))
            }
            _ => Ok(Ids::Each(column(reader)?)),
        }
    }

    fn at(&self, i: usize) -> Cow<'a, str> {
        match self {
            Ids::From(first) => first.saturating_add(i as i64).to_string().into(),
            Ids::Children(front, first) => child_id(front, first.saturating_add(i as i64) as u64).into(),
            Ids::Each(ids) => ids.at(i),
        }
    }
}

/// One value for all, or one each. Numbers are whole.
enum Column<'a> {
    Same(Cow<'a, str>),
    Each(Vec<Cow<'a, str>>),
}

impl<'a> Column<'a> {
    fn at(&self, i: usize) -> Cow<'a, str> {
        match self {
            Column::Same(value) => value.clone(),
            Column::Each(values) => values.get(i).cloned().unwrap_or_default(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Column::Same(_) => 1,
            Column::Each(values) => values.len(),
        }
    }
}

fn column<'a>(reader: &mut Reader<'a>) -> Result<Column<'a>> {
    let item = reader.item()?;
    let Item::Array(len) = item else {
        return Ok(Column::Same(value(item)?));
    };
    let mut values = Vec::with_capacity(len.min(4096));
    for _ in 0..len {
        values.push(value(reader.item()?)?);
    }
    Ok(Column::Each(values))
}

fn value(item: Item<'_>) -> Result<Cow<'_, str>> {
    match item {
        Item::Bytes(bytes) => Ok(text(bytes)?.into()),
        Item::Number(number) => Ok((number as i64).to_string().into()),
        Item::Nil | Item::Map(0) => Ok("".into()),
        other => Err(Error::malformed("an event", format_args!("{other:?}"))),
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| Error::malformed("an event", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::msgpack::Packer;

    fn frame_entry() -> Vec<u8> {
        let mut packer = Packer::default();
        packer.array(4).str("A").int(5).int(2).str("mail");
        packer.array(4).str("C").int(4).int(1).str("");
        packer.0
    }

    #[test]
    fn an_entry_is_taken_apart_in_order() {
        let mut events = Vec::new();
        unpack_entry((100, 5), (0, 0), &frame_entry(), Vec::new(), &mut events).expect("events");
        let seen: Vec<(&str, &str)> = events
            .iter()
            .map(|event| (event.id.as_str(), event.name.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                ("100-1", "added"),
                ("100-2", "waiting"),
                ("100-3", "added"),
                ("100-4", "waiting"),
                ("100-5", "completed")
            ]
        );
        assert_eq!(events[4].fields[1], ("returnvalue".to_owned(), "null".to_owned()));
    }

    #[test]
    fn a_reader_resumes_inside_an_entry() {
        let mut events = Vec::new();
        unpack_entry((100, 5), (100, 3), &frame_entry(), Vec::new(), &mut events).expect("events");
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].id, "100-4");
    }

    #[test]
    fn a_start_position_that_is_none_is_refused() {
        assert!(parse_id("yesterday").is_err());
        assert_eq!(parse_id("7").expect("id"), (7, 0));
    }
}
