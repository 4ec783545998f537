//! A queue in the hands of a script test: runs one script at a time, and shows the keys and events it left as text.

use std::{
    cell::Cell,
    sync::{Arc, Once},
    time::Duration,
};

use chasquimq::{
    active::{in_range, Active},
    lost::Lost,
    msgpack::Packer,
    redis::call::library::{
        Script, ADD, ADD_FLOWS, COUNT_FRAMES, FIND_LOST, LIBRARY, LIBRARY_NAME, LIST_ACTIVE, LIST_JOBS, READ_JOBS,
        RECOVER_STALLED, STEP,
    },
    Event, EventMessage, EventReader, Keys,
};
use redis::{ConnectionLike, Value};

use super::{plan::Plan, step::Step, tree::Tree as Family};
use crate::probe::{
    connect_options,
    snapshot::{Content, Snapshot, FIRST_PLACE, REFERENCE_SEQ},
    tree::{show_all, show_bytes, Tree},
    Probe,
};

/// Runs a script on a queue with these arguments, checks every key, and gives the reply as text. The engine's by its name, another's by reference.
macro_rules! run {
    ($queue:expr, $script:ident $(, $arg:expr)* $(,)?) => {
        $crate::given::queue::run!($queue, &chasquimq::redis::call::library::$script $(, $arg)*)
    };
    ($queue:expr, $script:expr $(, $arg:expr)* $(,)?) => {{
        #[allow(unused_mut, reason = "a script without arguments")]
        let mut call = $queue.call($script);
        $(call.arg($arg);)*
        $queue.carry_out(&call)
    }};
}
pub(crate) use run;

/// The same for a script that is carried out once however often it is sent, under a number that no call had before. `;` in the place of the
/// time: for one that is not told it.
macro_rules! run_once {
    ($queue:expr, $script:ident, $now_ms:expr $(, $arg:expr)* $(,)?) => {{
        let number = $queue.next_ticket();
        $crate::given::queue::run!($queue, $script, $now_ms, "t", "t", number $(, $arg)*)
    }};
    ($queue:expr, $script:ident; $($arg:expr),+ $(,)?) => {{
        let number = $queue.next_ticket();
        $crate::given::queue::run!($queue, $script, "t", "t", number, $($arg),+)
    }};
}
pub(crate) use run_once;

static LOADED: Once = Once::new();

/// A library of another release, as the server sees it: its name is another.
const OTHER_LIBRARY: &str = "chasquimq_another";

fn load(connection: &mut redis::Connection) {
    for library in [LIBRARY.to_owned(), LIBRARY.replace(LIBRARY_NAME, OTHER_LIBRARY)] {
        let loaded: redis::RedisResult<String> = redis::cmd("FUNCTION").arg("LOAD").arg(library).query(connection);
        if let Err(error) = loaded {
            assert!(error.to_string().contains("already exists"), "{error}");
        }
    }
}

pub struct TestQueue {
    pub probe: Probe,
    told: (u64, u64),
    number: u64,
    tickets: u64,
    calls: Cell<u64>,
}

impl TestQueue {
    pub fn fresh() -> Self {
        let mut probe = Probe::fresh();
        LOADED.call_once(|| load(&mut probe.connection));
        Self {
            probe,
            told: (0, 0),
            number: 0,
            tickets: 0,
            calls: Cell::new(0),
        }
    }

    /// A queue that had data before, and told its last event then: the times of the test's calls give its events their places, not the server's.
    pub fn told_before(ms: u64) -> Self {
        let mut queue = Self::fresh();
        let last = [ms as f64, 0.0].map(f64::to_le_bytes).concat();
        let mut set = redis::cmd("SET");
        set.arg(queue.probe.keys.key("memo:last-event")).arg(last);
        set.exec(&mut queue.probe.connection).expect("set");
        queue
    }

    /// A queue to which this was added at 1000.
    pub fn with(plan: Plan) -> Self {
        let mut queue = Self::fresh();
        queue.add(1000, plan);
        queue
    }

    /// A call of the library's function, in turn of either release: they work on one queue side by side. Of the script where there is no function, or
    /// `CHASQUIMQ_TEST_SCRIPTS` is set: by its text, not its hash, as another test may empty the server's script cache at any time.
    pub fn call(&self, script: &Script) -> redis::Cmd {
        self.calls.set(self.calls.get() + 1);
        let is_script = std::env::var_os("CHASQUIMQ_TEST_SCRIPTS").is_some();
        let (how, what) = match script.function.filter(|_| !is_script) {
            None => ("EVAL", script.text.to_owned()),
            Some(function) if self.calls.get().is_multiple_of(2) => {
                ("FCALL", function.replace(LIBRARY_NAME, OTHER_LIBRARY))
            }
            Some(function) => ("FCALL", function.to_owned()),
        };
        let mut call = redis::cmd(how);
        call.arg(what).arg(1).arg(&self.probe.keys.base);
        call
    }

    /// A call that is carried out once however often it is sent; `now_ms` of a script that is told it.
    pub fn numbered_call(&mut self, script: &Script, now_ms: Option<u64>) -> redis::Cmd {
        let number = self.next_ticket();
        let mut call = self.call(script);
        call.arg(now_ms).arg("t").arg("t").arg(number);
        call
    }

    pub fn carry_out(&mut self, call: &redis::Cmd) -> String {
        show_reply(&self.carry_out_value(call))
    }

    pub fn carry_out_value(&mut self, call: &redis::Cmd) -> Value {
        let value = self.carry_out_unchecked(call);
        self.probe.checked();
        value
    }

    /// Carries out a step that refuses no outcome. Gives what it has taken, and the reply without that.
    pub fn taken_by(&mut self, call: &redis::Cmd) -> (Vec<Value>, Vec<Value>) {
        let Value::Array(mut reply) = self.carry_out_value(call) else {
            panic!("a reply")
        };
        assert_eq!(reply[0], Value::Array(Vec::new()), "no outcome is refused");
        let Value::Array(taken) = std::mem::replace(&mut reply[1], Value::Nil) else {
            panic!("what was taken")
        };
        (taken, reply)
    }

    pub fn carry_out_unchecked(&mut self, call: &redis::Cmd) -> Value {
        let value: Value = call.query(&mut self.probe.connection).expect("script");
        value
    }

    /// A number that no call had before.
    pub fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// The same for calls of client `t`, slot `t`.
    pub fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Adds as client `c`, slot 0, with the next number.
    pub fn add(&mut self, now_ms: u64, plan: Plan) -> String {
        self.number += 1;
        self.add_numbered(now_ms, self.number, &plan)
    }

    pub fn add_numbered(&mut self, now_ms: u64, number: u64, plan: &Plan) -> String {
        let mut call = self.call(&ADD);
        call.arg(now_ms).arg("c").arg(0).arg(number);
        plan.append_to(&mut call);
        self.carry_out(&call)
    }

    /// Adds trees as client `f`, slot 0, with the next number.
    pub fn add_flows(&mut self, now_ms: u64, tree: &Family) -> String {
        self.number += 1;
        self.add_flows_numbered(now_ms, self.number, tree)
    }

    pub fn add_flows_numbered(&mut self, now_ms: u64, number: u64, tree: &Family) -> String {
        let call = self.add_flows_call(now_ms, number, tree);
        match self.carry_out_value(&call) {
            // where frames of children begin is told in the log
            Value::Array(parts) => show_reply(&parts[0]),
            other => panic!("{other:?}"),
        }
    }

    pub fn add_flows_call(&mut self, now_ms: u64, number: u64, tree: &Family) -> redis::Cmd {
        let flows = tree.pack(now_ms, &self.probe.keys);
        let (plan, bodies) = flows.packed();
        let mut call = self.call(&ADD_FLOWS);
        call.arg(now_ms).arg("f").arg(0).arg(number).arg(plan);
        for body in bodies {
            call.arg(body.as_slice());
        }
        call
    }

    /// Takes a step with the next number, unless it has one.
    pub fn step(&mut self, step: Step) -> String {
        let call = self.step_call(&step);
        match self.carry_out_value(&call) {
            // the times that end a reply are compared by one test
            Value::Array(parts) => show_reply(&Value::Array(parts[..5].to_vec())),
            other => panic!("{other:?}"),
        }
    }

    /// Takes steps like this one until nothing is left to take: a step takes so many jobs at most.
    pub fn take_all(&mut self, step: impl Fn() -> Step) {
        while !self.step(step()).starts_with("[[] [] ") {}
    }

    /// Takes a step. Gives for how many ms the rate limit lets its worker start nothing.
    pub fn limited_ms(&mut self, step: Step) -> u64 {
        let call = self.step_call(&step);
        match self.carry_out_value(&call) {
            Value::Array(parts) => redis::from_redis_value(parts[7].clone()).expect("ms"),
            other => panic!("{other:?}"),
        }
    }

    pub fn step_call(&mut self, step: &Step) -> redis::Cmd {
        self.number += 1;
        let mut call = self.call(&STEP);
        step.append_to(self.number, &mut call);
        call
    }

    /// Jobs by state and rank, five values each or their ids alone, and the number of steps that took.
    /// The scan that a worker makes once an interval. Gives the ids of those brought back that stalled.
    pub fn recover_stalled(&mut self, now_ms: u64, interval_ms: u64, max_stalled: u64) -> String {
        let ids = self.bring_back(now_ms, interval_ms, "", &[], max_stalled);
        self.probe.checked();
        format!("[{}]", ids.join(" "))
    }

    /// As a worker does it that tells what it holds, each with its claim. Nothing is checked.
    pub fn bring_back(
        &mut self,
        now_ms: u64,
        interval_ms: u64,
        owner: &str,
        held: &[(&str, i64)],
        max_stalled: u64,
    ) -> Vec<String> {
        let mut lost = self.find_lost(interval_ms, owner, held);
        let mut parcels = Vec::new();
        while let Some((items, count, is_last)) = lost.parcel() {
            let mut call = self.numbered_call(&RECOVER_STALLED, Some(now_ms));
            call.arg(max_stalled).arg(owner);
            call.arg(items).arg(u8::from(is_last));
            let (left, _, ids): (usize, usize, Vec<String>) =
                redis::from_redis_value(self.carry_out_unchecked(&call)).expect("left, a count and ids");
            lost.done(count, left);
            parcels.push(ids);
        }
        parcels.reverse();
        parcels.concat()
    }

    /// What a scan finds, but for what is held.
    pub fn find_lost(&mut self, interval_ms: u64, owner: &str, held: &[(&str, i64)]) -> Lost {
        let mut lost = self.find_uncounted(interval_ms, owner, held);
        while let Some(firsts) = lost.uncounted() {
            let mut call = self.call(&COUNT_FRAMES);
            call.arg(firsts);
            lost.counted(self.carry_out_unchecked(&call)).expect("counts");
        }
        lost
    }

    /// The same, before frames are counted.
    pub fn find_uncounted(&mut self, mut interval_ms: u64, owner: &str, held: &[(&str, i64)]) -> Lost {
        let (mut lost, mut cursor, scan) = (Lost::default(), String::new(), self.next_ticket());
        loop {
            let mut call = self.call(&FIND_LOST);
            call.arg(interval_ms).arg(scan).arg(owner).arg(cursor);
            let found = self.carry_out_unchecked(&call);
            cursor = lost
                .take_in(found, &|id, claim| held.contains(&(id, claim)))
                .expect("found");
            interval_ms = 0;
            if cursor.is_empty() {
                return lost;
            }
        }
    }

    /// Active jobs by their start, and the number of steps. Nothing is checked.
    pub fn list_active(&mut self, whose: &str) -> (Vec<String>, u32) {
        let (mut active, mut cursor, mut steps) = (Active::default(), String::new(), 0);
        loop {
            let mut call = self.call(&LIST_ACTIVE);
            call.arg(whose).arg(cursor);
            cursor = active.take_in(self.carry_out_unchecked(&call)).expect("a page");
            steps += 1;
            if cursor.is_empty() {
                return (active.ids(), steps);
            }
        }
    }

    /// Where a `clean_jobs` of active jobs starts, all of them in one step.
    pub fn abandoned(&mut self) -> Vec<u8> {
        let (ids, _) = self.list_active("lost");
        pack_abandoned(&ids)
    }

    /// Jobs by state and rank, as values of a reply, and the number of steps.
    pub fn list(
        &mut self,
        types: &[&str],
        start: i64,
        stop: i64,
        ascending: bool,
        ids_only: bool,
    ) -> (Vec<Vec<Value>>, u32) {
        let (mut jobs, mut steps) = (Vec::new(), 0);
        for some in types.chunk_by(|one, other| (*one == "active") == (*other == "active")) {
            let part = if some[0] == "active" {
                let (ids, steps) = self.list_active("all");
                let ids = in_range(ids, start, stop, ascending);
                (self.read_active(&ids, ids_only), steps)
            } else {
                self.list_in_order(some, start, stop, ascending, ids_only)
            };
            jobs.extend(part.0);
            steps += part.1;
        }
        (jobs, steps)
    }

    fn read_active(&mut self, ids: &[String], ids_only: bool) -> Vec<Vec<Value>> {
        if ids_only {
            let value = |id: &String| vec![Value::BulkString(id.clone().into_bytes())];
            return ids.iter().map(value).collect();
        }
        let mut packed = Packer::default();
        packed.array(ids.len());
        for id in ids {
            packed.str(id);
        }
        let mut call = self.call(&READ_JOBS);
        call.arg(packed.0);
        let values: Vec<Value> = redis::from_redis_value(self.carry_out_unchecked(&call)).expect("jobs");
        values.chunks_exact(5).map(<[Value]>::to_vec).collect()
    }

    fn list_in_order(
        &mut self,
        types: &[&str],
        start: i64,
        stop: i64,
        ascending: bool,
        ids_only: bool,
    ) -> (Vec<Vec<Value>>, u32) {
        let mut packed = Packer::default();
        packed.array(types.len());
        for state in types {
            packed.str(state);
        }
        let mut found: Vec<(bool, Vec<Vec<Value>>)> = types.iter().map(|_| (false, Vec::new())).collect();
        let (mut cursor, mut steps) = (Vec::new(), 0);
        loop {
            let mut call = self.call(&LIST_JOBS);
            call.arg(packed.0.as_slice()).arg(start).arg(stop);
            call.arg(u8::from(ascending))
                .arg(u8::from(ids_only))
                .arg(cursor.as_slice());
            let value = self.carry_out_unchecked(&call);
            let (next, parts, jobs): (Vec<u8>, Vec<usize>, Vec<Value>) =
                redis::from_redis_value(value).expect("an answer");
            (cursor, steps) = (next, steps + 1);
            let mut jobs = jobs.chunks_exact(if ids_only { 1 } else { 5 }).map(<[Value]>::to_vec);
            for part in parts.chunks_exact(3) {
                found[part[0] - 1].0 = part[1] == 1;
                found[part[0] - 1].1.extend(jobs.by_ref().take(part[2]));
            }
            assert!(jobs.next().is_none(), "more jobs than were told");
            if cursor.is_empty() {
                break;
            }
        }
        let in_order = found.into_iter().flat_map(|(turned, mut part)| {
            if turned {
                part.reverse();
            }
            part
        });
        (in_order.collect(), steps)
    }

    /// A plain command on one of the queue's keys.
    pub fn command(&mut self, name: &str, suffix: &str, args: &[&str]) -> Value {
        let key = self.probe.keys.key(suffix);
        let mut command = redis::cmd(name);
        command.arg(key).arg(args);
        command.query(&mut self.probe.connection).expect("command")
    }

    /// Listens as a worker does that waits to be told of work.
    pub fn listen(&mut self, owner: &str) -> Ear {
        Ear::of(&self.probe.keys.key(&format!("worker:{owner}")))
    }

    /// What a worker that dies leaves behind: no lease.
    pub fn end_lease(&mut self, owner: &str) {
        self.command("DEL", &format!("lease:{owner}"), &[]);
    }

    /// Ends what holds jobs that were let go.
    pub fn end_leases_of_nobody(&mut self) {
        for suffix in self.probe.suffixes() {
            if suffix.starts_with("lease:-") {
                self.command("DEL", &suffix, &[]);
            }
        }
    }

    /// Compares every key but `events` and `memo:*`, one a line: `name: content`.
    pub fn keys_are(&mut self, expected: &str) {
        let found = self.show();
        let expected = unindent(expected);
        assert!(found == expected, "\nexpected keys\n{expected}\nfound\n{found}\n");
    }

    /// Compares one key, `(none)` when it does not exist.
    pub fn key_is(&mut self, name: &str, expected: &str) {
        let prefix = format!("{name}: ");
        let all = self.show();
        let found = all
            .lines()
            .find_map(|line| line.strip_prefix(&prefix))
            .unwrap_or("(none)");
        assert_eq!(found, expected, "key {name}\n{all}");
    }

    /// Compares the event groups since the last look.
    pub fn events_are(&mut self, expected: &str) {
        assert_eq!(self.events(), expected);
    }

    /// The event groups since the last look, ` | ` between entries.
    pub fn events(&mut self) -> String {
        let entries: Vec<String> = self.groups().iter().map(|groups| show_all(groups)).collect();
        entries.join(" | ").replace(&self.probe.keys.qualified_name, "q")
    }

    /// The event groups since the last look, of each entry.
    pub fn groups(&mut self) -> Vec<Vec<Tree>> {
        let snapshot = self.probe.checked();
        let is_new = |(id, _): &&((u64, u64), Vec<u8>)| *id > self.told;
        let entries = snapshot.events.iter().filter(is_new);
        let entries = entries.map(|(_, groups)| Tree::all(groups).expect("groups")).collect();
        if let Some((last, _)) = snapshot.events.last() {
            self.told = *last;
        }
        entries
    }

    /// The events since the last look, as a reader hears them.
    pub fn told(&mut self) -> Vec<Event> {
        let Some((last, _)) = self.probe.checked().events.last().cloned() else {
            return Vec::new();
        };
        let events = read_events(self.probe.keys.clone(), self.told, last);
        self.told = last;
        events
    }

    /// Forgets the events so far.
    pub fn skip_events(&mut self) {
        if let Some((last, _)) = self.probe.snapshot().events.last() {
            self.told = *last;
        }
    }

    /// Every key but `events` and `memo:*` as text.
    pub fn show(&mut self) -> String {
        let snapshot = self.probe.checked();
        let mut lines = Vec::new();
        for suffix in self.probe.suffixes() {
            if matches!(suffix.as_str(), "events" | "trims" | "delays") || suffix.starts_with("memo:") {
                continue;
            }
            // keys of children, and their parents' bases
            let content = self
                .show_key(&snapshot, &suffix)
                .replace(&self.probe.keys.qualified_name, "q");
            // a stream stays when its last entry is gone
            if !content.is_empty() {
                lines.push(format!("{suffix}: {content}"));
            }
        }
        lines.join("\n")
    }

    fn show_key(&mut self, snapshot: &Snapshot, suffix: &str) -> String {
        match suffix {
            "state" => show_state(snapshot),
            "log" => show_log(snapshot),
            "front" => snapshot.front.join(" "),
            "parents" => snapshot.families.keys().cloned().collect::<Vec<_>>().join(" "),
            "waiting-children" => show_set(snapshot, suffix, |score| score.to_string()),
            "logged" => {
                let mut ids = snapshot.logged.clone();
                ids.sort();
                ids.join(" ")
            }
            "takes" | "active" => show_hash(snapshot, suffix, show_held),
            "jobs" | "vitals" | "runs" => show_hash(snapshot, suffix, |raw| Tree::one(raw).show()),
            "meta" | "frames" | "holes" | "gone" | "traces" | "large" => {
                show_hash(snapshot, suffix, |raw| String::from_utf8_lossy(raw).into_owned())
            }
            "scheduler" => show_hash(snapshot, suffix, |raw| {
                let (count, fields) = raw.split_first_chunk::<8>().expect("a count");
                format!("{}{}", f64::from_le_bytes(*count), Tree::one(fields).show())
            }),
            "completed" | "failed" | "schedulers" => show_set(snapshot, suffix, |score| score.to_string()),
            // the low twelve bits count the arrivals of a millisecond
            "delayed" => show_set(snapshot, suffix, |score| {
                let score = score as u64;
                format!("{}+{}", score >> 12, score & 4095)
            }),
            "prioritized" => show_set(snapshot, suffix, show_place),
            "waiting-workers" => {
                let mut owners: Vec<String> =
                    redis::from_redis_value(self.command("SMEMBERS", suffix, &[])).expect("owners");
                owners.sort();
                owners.join(" ")
            }
            _ if suffix.starts_with("logs:") => {
                let rows: Vec<String> =
                    redis::from_redis_value(self.command("LRANGE", suffix, &["0", "-1"])).expect("rows");
                rows.join(" ")
            }
            _ if suffix.split_once(':').is_some_and(|(kind, _)| FAMILY.contains(&kind)) => {
                show_family(snapshot, suffix)
            }
            _ if suffix.starts_with("de:") => self.show_dedup_key(suffix),
            _ => "set".to_owned(),
        }
    }

    /// The owner, and `...` if the key expires.
    fn show_dedup_key(&mut self, suffix: &str) -> String {
        let owner: String = redis::from_redis_value(self.command("GET", suffix, &[])).expect("owner");
        let expires = self.command("PTTL", suffix, &[]) != Value::Int(-1);
        owner + if expires { "..." } else { "" }
    }
}

pub fn read_events(keys: Keys, after: (u64, u64), last: (u64, u64)) -> Vec<Event> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
        let sink = Arc::new(move |message| {
            if let EventMessage::Events(events) = message {
                // the reader outlives the test's interest
                let _ = sender.send(events);
            }
        });
        let reader = Arc::new(EventReader::new(connect_options(), keys, sink.clone()));
        let from = format!("{}-{}", after.0, after.1);
        let task = tokio::spawn(reader.run(&from, Duration::from_secs(1), sink));
        let mut events: Vec<Event> = Vec::new();
        let end = format!("{}-{}", last.0, last.1);
        while events.last().is_none_or(|event| event.id != end) {
            let more = tokio::time::timeout(Duration::from_secs(10), received.recv()).await;
            events.extend(more.expect("events in time").expect("a reader"));
        }
        reader.close();
        task.await.expect("a reader that ends");
        events
    })
}

/// Who holds jobs, without the claim: steps of which tests do not name the number count up.
fn show_held(raw: &[u8]) -> String {
    let mut items = Tree::one(raw).items().to_vec();
    items.remove(4);
    Tree::Array(items).show()
}

/// Priority, and the place in it: 0 the front, else counted from the first one.
fn show_place(score: f64) -> String {
    let (priority, place) = ((score as i64).div_euclid(1 << 32), (score as i64).rem_euclid(1 << 32));
    match place {
        0 => format!("{priority}+front"),
        _ => format!("{priority}{:+}", place - FIRST_PLACE),
    }
}

fn show_state(snapshot: &Snapshot) -> String {
    let mut fields = Vec::new();
    if snapshot.cursor() != (0, 0) {
        let (ms, seq) = snapshot.cursor();
        fields.push(format!("cursor={}", show_entry_id(ms, seq)));
    }
    for field in [
        "id",
        "waiting",
        "active",
        "completed",
        "references",
        "holes",
        "gone",
        "max_length",
    ] {
        if snapshot.state(field) != 0 {
            fields.push(format!("{field}={}", snapshot.state(field)));
        }
    }
    fields.join(" ")
}

fn show_entry_id(ms: u64, seq: u64) -> String {
    match seq.checked_sub(REFERENCE_SEQ) {
        Some(count) => format!("{ms}-r{count}"),
        None => format!("{ms}-{seq}"),
    }
}

fn show_log(snapshot: &Snapshot) -> String {
    let entries = snapshot.log.iter().map(|entry| {
        let id = show_entry_id(entry.ms, entry.seq);
        match &entry.content {
            // its jobs are numbered texts in most tests: the id says enough
            Content::Frame(_) => id,
            Content::References(ids) => format!("{id}({})", ids.join(" ")),
        }
    });
    entries.collect::<Vec<_>>().join(" ")
}

const FAMILY: [&str; 6] = ["children", "processed", "ignored", "faults", "spans", "returned"];

fn show_family(snapshot: &Snapshot, suffix: &str) -> String {
    let (kind, id) = suffix.split_once(':').unwrap_or_default();
    let Some(family) = snapshot.families.get(id) else {
        return "of nobody".to_owned();
    };
    let show = |hash: &std::collections::BTreeMap<String, Vec<u8>>| {
        let fields = hash
            .iter()
            .map(|(key, value)| format!("{key}={}", String::from_utf8_lossy(value)));
        fields.collect::<Vec<_>>().join(" ")
    };
    match kind {
        "children" => family.pending.join(" "),
        "processed" => show(&family.processed),
        "ignored" => show(&family.ignored),
        "spans" => family.ranges.join(" "),
        "returned" => {
            let spans = family.returned.iter();
            let spans = spans.map(|(span, values)| format!("{span}={}", show_bytes(values)));
            spans.collect::<Vec<_>>().join(" ")
        }
        _ => family
            .faults
            .iter()
            .map(|(key, _)| key.clone())
            .collect::<Vec<_>>()
            .join(" "),
    }
}

fn show_hash(snapshot: &Snapshot, name: &str, show: impl Fn(&[u8]) -> String) -> String {
    let mut fields: Vec<(&String, &Vec<u8>)> = snapshot.hash(name).iter().collect();
    fields.sort_by_key(|(field, _)| {
        (
            field.parse::<u64>().ok().map_or(u64::MAX, |number| number),
            (*field).clone(),
        )
    });
    let fields = fields.into_iter().map(|(field, raw)| format!("{field}={}", show(raw)));
    fields.collect::<Vec<_>>().join(" ")
}

fn show_set(snapshot: &Snapshot, name: &str, show: impl Fn(f64) -> String) -> String {
    let members = snapshot
        .set(name)
        .iter()
        .map(|(member, score)| format!("{member}@{}", show(*score)));
    members.collect::<Vec<_>>().join(" ")
}

/// A reply as text: arrays in brackets, MessagePack in angle brackets.
/// What a step took, with the columns of its records (`lua/step/fetched.lua`) taken apart: 0, id, body, state fields, starts of each, and its
/// stack traces, if they came along.
pub fn taken_apart(values: &[Value]) -> Vec<Value> {
    let mut apart = Vec::new();
    let mut values = values.iter();
    while let Some(value) = values.next() {
        match (value, values.as_slice().first()) {
            (Value::Int(count), Some(Value::BulkString(columns))) if *count < 0 => {
                let columns = Tree::one(columns);
                let [ids, bodies, fields, starts, traces @ ..] = columns.items() else {
                    panic!("{}", columns.show())
                };
                values.next();
                let are_behind = !matches!(bodies, Tree::Array(_));
                let jobs = ids.items().len();
                let mut take = |are_there: bool| -> Vec<Value> {
                    let wanted = if are_there { jobs } else { 0 };
                    let found: Vec<Value> = values.by_ref().take(wanted).cloned().collect();
                    assert_eq!(found.len(), wanted, "values behind the columns");
                    found
                };
                let (behind, traces) = (take(are_behind), take(!traces.is_empty()));
                for (at, id) in ids.items().iter().enumerate() {
                    let texts = |column: &Tree| match column {
                        Tree::Array(items) => items[at].bytes().to_vec(),
                        _ => Vec::new(),
                    };
                    let starts = match starts {
                        Tree::Array(items) => items[at].number() as i64,
                        _ => 1,
                    };
                    apart.push(Value::Int(0));
                    apart.push(Value::BulkString(id.bytes().to_vec()));
                    let body = behind.get(at).cloned();
                    apart.push(body.unwrap_or_else(|| Value::BulkString(texts(bodies))));
                    apart.push(Value::BulkString(texts(fields)));
                    apart.push(Value::Int(starts));
                    apart.extend(
                        traces
                            .get(at)
                            .filter(|traces| **traces != Value::BulkString(Vec::new()))
                            .cloned(),
                    );
                }
            }
            _ => apart.push(value.clone()),
        }
    }
    apart
}

pub fn show_reply(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::BulkString(bytes) => show_bytes(bytes),
        Value::SimpleString(text) => text.clone(),
        Value::Array(values) => {
            let values = taken_apart(values);
            format!("[{}]", values.iter().map(show_reply).collect::<Vec<_>>().join(" "))
        }
        other => format!("{other:?}"),
    }
}

fn unindent(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// A connection that hears what comes by a channel.
pub struct Ear {
    connection: redis::Connection,
}

impl Ear {
    fn of(channel: &str) -> Self {
        let client = redis::Client::open(crate::probe::server_url()).expect("REDIS_URL");
        let mut connection = client.get_connection().expect("a connection");
        let subscribe = redis::cmd("SSUBSCRIBE").arg(channel).get_packed_command();
        connection.req_packed_command(&subscribe).expect("a channel");
        Self { connection }
    }

    /// How many messages came since this was asked.
    pub fn heard(&mut self) -> u64 {
        let ping = redis::cmd("PING").get_packed_command();
        self.connection.send_packed_command(&ping).expect("a connection");
        let mut heard = 0;
        loop {
            match self.connection.recv_response().expect("an answer") {
                Value::Array(parts) if parts.len() == 3 => heard += 1,
                _ => return heard,
            }
        }
    }
}

/// A connection of a user who may do all but this; the user goes with it.
pub struct Forbidden {
    pub connection: redis::Connection,
    admin: redis::Connection,
    name: String,
}

impl Forbidden {
    pub fn command(command: &str) -> Self {
        let client = redis::Client::open(crate::probe::server_url()).expect("REDIS_URL");
        let mut admin = client.get_connection().expect("a connection");
        let mut connection = client.get_connection().expect("a connection");
        let name = format!("chasqui-test-{}", chasquimq::unique_id());
        let mut setuser = redis::cmd("ACL");
        setuser
            .arg("SETUSER")
            .arg(&name)
            .arg("on")
            .arg(">secret")
            .arg("~*")
            .arg("+@all");
        setuser.arg(format!("-{command}")).exec(&mut admin).expect("a user");
        let mut auth = redis::cmd("AUTH");
        auth.arg(&name).arg("secret").exec(&mut connection).expect("a login");
        Self {
            connection,
            admin,
            name,
        }
    }
}

impl Drop for Forbidden {
    fn drop(&mut self) {
        let mut deluser = redis::cmd("ACL");
        // a user that stays harms nobody
        let _ = deluser.arg("DELUSER").arg(&self.name).exec(&mut self.admin);
    }
}

/// Active jobs of which there are no others, as `clean_jobs` is given them.
pub fn pack_abandoned(ids: &[String]) -> Vec<u8> {
    let mut found = Packer::default();
    found.map(2).str("ids").array(ids.len());
    for id in ids {
        found.str(id);
    }
    found.str("last").int(1);
    found.0
}
