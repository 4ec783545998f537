//! Takes entries of the event log apart.

use std::borrow::Cow;

use crate::{
    error::{Error, Result},
    job::{
        frame::{child_id, MAX_JOBS},
        msgpack::{Item, Reader},
    },
};

/// Records that an entry tells of at most.
const MOST_RECORDS: i64 = 1 << 16;
/// Bytes of the events of an entry at most. A few bytes may tell the same of many jobs.
const MOST_BYTES: usize = 256 << 20;
/// An event, and a field of one, has about so many without its texts.
const EVENT_BYTES: usize = 64;

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

/// Events as JSON texts, one for each name: who listens to some names reads those texts only.
#[derive(Debug, Default, PartialEq)]
pub struct EventTexts {
    /// The names, each once.
    pub names: Vec<String>,
    /// Of each name its events, in order: `[[id, {field: value}], ...]`.
    pub texts: Vec<String>,
    /// The order of all of them, in pairs: the index of a name, and how many of its events come next.
    pub runs: Vec<u32>,
}

impl EventTexts {
    /// Writes events.
    pub fn new(events: &[Event]) -> Self {
        let mut written = Self::default();
        let mut rows: Vec<Vec<(&str, Fields<'_>)>> = Vec::new();
        for event in events {
            let known = written.names.iter().position(|name| *name == event.name);
            let at = known.unwrap_or_else(|| {
                written.names.push(event.name.clone());
                rows.push(Vec::new());
                rows.len() - 1
            });
            rows[at].push((&event.id, Fields(&event.fields)));
            match written.runs.last_chunk_mut() {
                Some([last, count]) if *last == at as u32 => *count += 1,
                _ => written.runs.extend([at as u32, 1]),
            }
        }
        let texts = rows.iter().map(serde_json::to_string);
        written.texts = texts.map(|text| text.unwrap_or_else(|_| "[]".to_owned())).collect();
        written
    }
}

struct Fields<'a>(&'a [(String, String)]);

impl serde::Serialize for Fields<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(field, value)| (field, value)))
    }
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
pub(super) fn unpack_entry(
    id: (u64, u64),
    after: (u64, u64),
    blob: &[u8],
    large: Vec<String>,
    events: &mut Vec<Event>,
) -> Result<()> {
    let mut unpacking = Unpacking {
        large: large.into_iter(),
        ..Unpacking::default()
    };
    let mut reader = Reader::new(blob);
    while !reader.is_empty() {
        unpacking.group(&mut reader)?;
    }
    let count = unpacking.found.len() as u64;
    for (i, (name, fields)) in unpacking.found.into_iter().enumerate() {
        let place = (id.0, id.1.saturating_add(i as u64 + 1).saturating_sub(count));
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
    bytes: usize,
    // results that lie behind the groups
    large: std::vec::IntoIter<String>,
}

impl Unpacking {
    fn push(&mut self, name: &str, fields: &[(&str, &str)]) -> Result<()> {
        let texts: usize = fields.iter().map(|(field, value)| field.len() + value.len()).sum();
        self.bytes += EVENT_BYTES * (1 + fields.len()) + name.len() + texts;
        if self.bytes > MOST_BYTES {
            return Err(Error::malformed("events", format_args!("more than {MOST_BYTES} bytes")));
        }
        let fields = fields
            .iter()
            .map(|(field, value)| ((*field).to_owned(), (*value).to_owned()))
            .collect();
        self.found.push((name.to_owned(), fields));
        Ok(())
    }

    fn group(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let len = reader.array()?;
        match reader.str()? {
            "A" => self.added_frame(reader, len),
            "a" => {
                let (first, n) = (reader.int()?, reader.int()?);
                let ids = Ids::read_front(reader, len > 3, first)?;
                for i in 0..numbers(first, n, MAX_JOBS as i64)?.count() {
                    self.push("active", &[("jobId", &ids.at(i)), ("prev", "waiting")])?;
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
                self.push(name, &fields)?;
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
            self.push("added", &[("jobId", &id), ("name", &names.at(i))])?;
            self.push("waiting", &[("jobId", &id)])?;
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
            self.push("completed", &fields)?;
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
            self.push("added", &[("jobId", &id), ("name", &names.at(i))])?;
            match &dues {
                Some(dues) => self.push(event, &[("jobId", &id), ("delay", &dues.at(i))])?,
                None => self.push(event, &[("jobId", &id)])?,
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
            self.push(event, &fields)?;
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
    fn events_are_written_by_their_names_in_an_order_that_is_known() {
        let mut events = Vec::new();
        unpack_entry((100, 5), (100, 1), &frame_entry(), Vec::new(), &mut events).expect("events");
        events.push(events[3].clone());
        let written = EventTexts::new(&events);
        assert_eq!(written.names, ["waiting", "added", "completed"]);
        assert_eq!(written.runs, [0, 1, 1, 1, 0, 1, 2, 2]);
        assert_eq!(written.texts[0], r#"[["100-2",{"jobId":"5"}],["100-4",{"jobId":"6"}]]"#);
        assert_eq!(EventTexts::new(&[]), EventTexts::default());
    }

    #[test]
    fn a_reader_resumes_inside_an_entry() {
        let mut events = Vec::new();
        unpack_entry((100, 5), (100, 3), &frame_entry(), Vec::new(), &mut events).expect("events");
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].id, "100-4");
    }
}
