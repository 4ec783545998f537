//! The decoders on bytes that nobody wrote: they never panic, give no more than there is, and say what is wrong. What they are given
//! comes from valid forms and from kept finds, changed by chance that can be repeated: a failure shows the bytes.

#[cfg(unix)]
mod lying_server;

use redis::Value;

use crate::{
    active::Active,
    add::read_added,
    error::{Error, Result},
    events::unpack::count_events,
    job::{
        frame::{bodies_in_frame, Frame, FrameBuilder, MAX_JOBS},
        msgpack::{Packer, Reader},
        options::JobOptions,
        record::{prioritized_body, record_body},
        Body, StateFields,
    },
    lost::Lost,
    redis::call::reply::{int, Reply},
};

/// How often things are changed by chance, a seed. With `CHASQUIMQ_GARBAGE=<times>` as many times more often, from another place on.
const CHANGES: u64 = 4_000;
/// Finds: lengths that are not there, depth without end, heads of what no version writes.
const KEPT: [&[u8]; 14] = [
    b"",
    b"\xc1",
    b"\xdb\xff\xff\xff\xff",
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xc6\x7f\xff\xff\xffx",
    b"\x94\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xa2{}\xa1a\xa11",
    b"\x94\xcb\x7f\xf8\0\0\0\0\0\0\xa2{}\xa1a\xa11",
    b"\x94\x07\xa2\xc3\x28\xa1a\xa11",
    // events: of numbers that do not fit, and a group of nothing
    b"\x93\xa1a\xcf\x7f\xff\xff\xff\xff\xff\xff\xff\xcf\x7f\xff\xff\xff\xff\xff\xff\xff",
    b"\x94\xa1C\x01\xce\xff\xff\xff\xff\xa0",
    b"\x91\xa1X",
    b"\x91\xa1E",
    b"\x95\xa1B\x01\xce\xff\xff\xff\xff\xa1a\xa7waiting",
];

/// SplitMix64.
pub(crate) struct Chance(pub(crate) u64);

/// Changes to be made.
pub(crate) fn changes() -> u64 {
    CHANGES * times()
}

fn times() -> u64 {
    let times = std::env::var("CHASQUIMQ_GARBAGE").ok();
    times.and_then(|times| times.parse().ok()).unwrap_or(1).max(1)
}

impl Chance {
    /// The same in each short run.
    pub(crate) fn of_run(seed: u64) -> Self {
        Self(seed.wrapping_add((times() - 1) << 32))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % end.max(1) as u64) as usize
    }

    /// These bytes, with a few of them changed, taken out or put in.
    pub(crate) fn change(&mut self, bytes: &[u8]) -> Vec<u8> {
        const HEADS: [u8; 12] = [0x90, 0x80, 0xa0, 0xc0, 0xc1, 0xd9, 0xdb, 0xdc, 0xdd, 0xdf, 0xcb, 0xff];
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            match self.below(5) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] = self.below(256) as u8,
                2 if at < bytes.len() => bytes[at] = HEADS[self.below(HEADS.len())],
                3 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.insert(at, HEADS[self.below(HEADS.len())]),
            }
        }
        bytes
    }
}

fn text(chance: &mut Chance) -> String {
    const TEXTS: [&str; 8] = [
        "",
        "a",
        "mail",
        "\u{0}",
        "ñandú 🦙",
        "__proto__",
        "{\"a\":[1,2]}",
        "\"\\ud800\"",
    ];
    TEXTS[chance.below(TEXTS.len())].repeat(1 + chance.below(3) * chance.below(40))
}

pub(crate) fn frame(chance: &mut Chance) -> (Vec<u8>, Vec<(String, String)>) {
    let mut builder = FrameBuilder::new(7, "{}");
    let jobs: Vec<_> = (0..=chance.below(MAX_JOBS))
        .map(|_| (text(chance), text(chance)))
        .collect();
    for (name, data) in &jobs {
        builder.push(name, data);
    }
    (builder.finish().0, jobs)
}

/// A value as a reply may hold it.
pub(crate) fn value(chance: &mut Chance, depth: usize) -> Value {
    match chance.below(if depth < 4 { 8 } else { 5 }) {
        0 => Value::Nil,
        1 => Value::Int([0, 1, 64, -1, -3, i64::MAX, i64::MIN, 7][chance.below(8)]),
        2 => Value::BulkString(chance.change(b"\x94\x91\xa11\x91\xa7\x94\x07\xa2{}\xa1a\xa11\x00\x00")),
        3 => Value::BulkString(chance.change(b"\x07\xa2{}\xa1a\xa11\xc0\xa12")),
        4 => Value::SimpleString(["OK", "waiting", "1", "-7"][chance.below(4)].into()),
        _ => Value::Array((0..chance.below(9)).map(|_| value(chance, depth + 1)).collect()),
    }
}

fn fields() -> Vec<u8> {
    let mut map = Packer::default();
    map.map(5).str("am").int(2).str("as").int(3).str("fr").str("no");
    map.str("po")
        .float(1.5e12)
        .str("pa")
        .array(3)
        .str("{bull:q}:")
        .str("1")
        .str("f");
    map.0
}

fn events() -> Vec<u8> {
    let mut groups = Packer::default();
    groups.array(4).str("A").int(5).int(2).array(2).str("a").str("b");
    groups.array(3).str("a").int(5).int(2);
    groups.array(4).str("C").int(5).int(2).bytes(b"\x92\xa11\xa0");
    groups
        .array(6)
        .str("B")
        .int(7)
        .int(2)
        .str("a")
        .str("delayed")
        .array(2)
        .int(9)
        .int(10);
    groups
        .array(5)
        .str("X")
        .str("failed")
        .array(1)
        .str("x")
        .str("failedReason")
        .str("no");
    groups.array(4).str("E").str("cleaned").str("count").int(3);
    groups.0
}

/// Valid forms of everything that is stored.
fn seeds() -> Vec<Vec<u8>> {
    let mut chance = Chance(1);
    let mut seeds = vec![
        frame(&mut chance).0,
        frame(&mut chance).0,
        record_body(7, "{\"attempts\":3}", "mail", "{\"to\":1}"),
        record_body(7, "{\"delay\":5}", "mail", "1"),
        prioritized_body(7, "{\"priority\":5}", "mail", "1", 5),
        fields(),
        events(),
        vec![0x91; 100_000],
        vec![0x81; 100_000],
    ];
    seeds.extend(KEPT.iter().map(|bytes| bytes.to_vec()));
    seeds
}

fn each(look: impl Fn(&[u8])) {
    let mut chance = Chance::of_run(5);
    for seed in seeds() {
        look(&seed);
        for end in 0..seed.len().min(300) {
            look(&seed[..end]);
        }
        let changes = if seed.len() > 10_000 { 50 } else { changes() };
        for _ in 0..changes {
            look(&chance.change(&seed));
        }
    }
}

/// An error says what is wrong with what.
fn told<T>(read: Result<T>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(Error::Malformed { what, why }) => {
            assert!(!what.is_empty() && !why.is_empty());
            None
        }
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_frame_is_read_as_far_as_it_goes() {
    each(|bytes| {
        let bodies = bodies_in_frame(bytes, &[0, 1, 63, 2]);
        assert!(
            bodies.iter().map(Vec::len).sum::<usize>() <= 8 * bytes.len() + 200,
            "{bytes:?}"
        );
        let Some(mut frame) = told(Frame::parse(bytes)) else {
            return;
        };
        let mut jobs = 0;
        while let Some(Some((_, data))) = told(frame.next_job()) {
            assert!(frame.name().len() + data.len() <= bytes.len(), "{bytes:?}");
            jobs += 1;
        }
        assert!(jobs <= bytes.len(), "{bytes:?}");
    });
}

#[test]
fn a_frame_gives_back_what_was_put_in() {
    let mut chance = Chance(9);
    for _ in 0..500 {
        let (blob, jobs) = frame(&mut chance);
        let offsets: Vec<usize> = (0..jobs.len()).collect();
        for (body, (name, data)) in bodies_in_frame(&blob, &offsets).iter().zip(&jobs) {
            let body = Body::parse(body).expect("a body");
            assert_eq!((&body.name, &body.data, body.options.as_str()), (name, data, "{}"));
        }
    }
}

#[test]
fn a_record_is_read_or_refused() {
    each(|bytes| {
        if let Some(body) = told(Body::parse(bytes)) {
            assert!(body.name.len() + body.data.len() <= bytes.len(), "{bytes:?}");
            told(JobOptions::of_stored(&body.options));
        }
        if let Some(fields) = told(StateFields::parse(bytes)) {
            assert!(fields.failed_reason.map_or(0, |reason| reason.len()) <= bytes.len());
        }
        told(Reader::new(bytes).skip());
    });
}

#[test]
fn options_are_read_or_refused() {
    let seeds = [
        r#"{"attempts":3,"backoff":{"type":"exponential","delay":100,"jitter":0.5}}"#,
        r#"{"removeOnComplete":{"age":1e308,"count":-5,"limit":7},"lifo":0,"priority":1e300}"#,
        r#"{"jobId":"a","deduplication":{"id":5,"ttl":-1},"timestamp":"1e400","delay":1e19}"#,
        r#"{"delay":999999999999999}"#,
        r#"{"repeat":{"pattern":"* * * * *"},"fpof":true,"keepLogs":null,"__proto__":{"attempts":5}}"#,
    ];
    let mut chance = Chance::of_run(3);
    for seed in seeds {
        for _ in 0..changes() {
            let text = String::from_utf8_lossy(&chance.change(seed.as_bytes())).into_owned();
            if let Some(options) = told(JobOptions::of_stored(&text)) {
                assert_eq!(options.text, text);
            }
        }
    }
    assert!(JobOptions::of_stored(&"[".repeat(100_000)).is_err());
    assert!(JobOptions::of_stored(&format!("{}1", "{\"a\":".repeat(100_000))).is_err());
}

#[test]
fn events_are_read_or_refused() {
    each(|bytes| {
        if let Some(count) = told(count_events(bytes)) {
            // a group of eight bytes may tell of as many jobs as one call adds
            assert!(count <= bytes.len() as u64 * (1 << 14), "{bytes:?}");
        }
    });
}

/// A few bytes may tell the same of many jobs: there is an end to it.
#[test]
fn an_entry_has_no_more_events_than_fit_into_memory() {
    let long = "x".repeat(1 << 20);
    let mut records = Packer::default();
    records.array(5).str("B").int(1).int(1 << 16).str(&long).str("waiting");
    let mut columns = Packer::default();
    columns.array(5).str("X").str("failed").array(1 << 16);
    for _ in 0..1 << 16 {
        columns.str("");
    }
    columns.str("failedReason").str(&long);
    for entry in [records, columns] {
        assert!(told(count_events(&entry.0)).is_none());
    }
}

#[test]
fn replies_are_read_or_refused() {
    let mut chance = Chance::of_run(6);
    for _ in 0..5 * changes() {
        let reply = value(&mut chance, 0);
        told(Active::default().take_in(reply.clone()));
        let mut lost = Lost::default();
        told(lost.take_in(reply.clone(), &|_, _| false));
        if let Some((_, count, _)) = lost.parcel() {
            lost.done(count, chance.below(3));
        }
        if !matches!(read_added(reply.clone(), "q"), Err(Error::QueueFull { .. })) {
            told(read_added(reply.clone(), "q"));
        }
        told(int("a number", &reply));
        told(Reply::new("texts", reply).and_then(Reply::texts));
    }
}

#[test]
fn what_is_packed_is_what_is_read() {
    let mut chance = Chance::of_run(4);
    for _ in 0..changes() {
        let (name, data, options) = (text(&mut chance), text(&mut chance), text(&mut chance));
        let body = Body::parse(&record_body(7, &options, &name, &data)).expect("a body");
        assert_eq!((&body.name, &body.data, &body.options), (&name, &data, &options));
        // as Lua has numbers: exact up to 2^53
        let number = [0, 1, -1, 127, 128, -33, 1 << 31, -(1 << 31), 1 << 53, -(1 << 53)][chance.below(10)];
        let mut packed = Packer::default();
        packed
            .int(number)
            .float(0.5)
            .nil()
            .bytes(data.as_bytes())
            .map(1)
            .str(&name)
            .int(1);
        let mut reader = Reader::new(&packed.0);
        assert_eq!(reader.int().expect("a number"), number);
        assert_eq!(reader.float().expect("a number"), 0.5);
        assert_eq!(reader.opt_str().expect("nil"), None);
        assert_eq!(reader.bytes().expect("bytes"), data.as_bytes());
        reader.skip().expect("a map");
        assert!(reader.is_empty());
    }
}
