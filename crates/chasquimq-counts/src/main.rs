//! What the engine does to a job between JavaScript and Redis, a set number of times and without either: `npm run bench:gate` runs it
//! below valgrind, twice as often the second time, and takes the difference for what the jobs cost.
//!
//! `chasquimq-counts PART ROUNDS`; a round is [`JOBS`] jobs.

#![forbid(unsafe_code)]

use std::{hint::black_box, process::ExitCode};

use chasquimq::{
    frame::{single_frame, FrameBuilder, MAX_JOBS},
    redis::call::library::{Arg, ADD_FRAMES},
    worker::counted::Desk,
    AddBatch, ConnectOptions, Connection, JobOptions, NewJob,
};
use redis::Value;

/// Jobs of a round.
const JOBS: usize = 4 * MAX_JOBS;
const NOW_MS: u64 = 1_700_000_000_000;
const BASE: &str = "{bull:counts}:";
const NAME: &str = "job";
const DATA: &str = r#"{"to":"ana@example.com","subject":"welcome","attempt":1}"#;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (part, rounds) = (words.next(), words.next().and_then(|rounds| rounds.parse().ok()));
    let (Some(part), Some(rounds)) = (part, rounds) else {
        eprintln!("usage: chasquimq-counts encode-one|encode-many|decode|complete|fail ROUNDS");
        return ExitCode::from(2);
    };
    let body: Box<dyn FnMut()> = match part.as_str() {
        "encode-one" => Box::new(encode_one()),
        "encode-many" => Box::new(encode_many()),
        "decode" => Box::new(decode()),
        "complete" => Box::new(dispatch(|desk| desk.complete_all())),
        "fail" => Box::new(dispatch(|desk| desk.fail_all())),
        _ => {
            eprintln!("there is no part {part}");
            return ExitCode::from(2);
        }
    };
    repeat(rounds, body);
    ExitCode::SUCCESS
}

fn repeat(rounds: usize, mut body: Box<dyn FnMut()>) {
    for _ in 0..rounds {
        body();
    }
}

/// One add after the other: its options, its frame, its command.
fn encode_one() -> impl FnMut() {
    let connection = unconnected();
    move || {
        for number in 0..JOBS {
            let options = JobOptions::none("{}");
            black_box(AddBatch::one(NOW_MS, job(&options)));
            let frame = single_frame(NOW_MS, &options.text, NAME, black_box(DATA));
            black_box(command(&connection, 1, &frame, number));
        }
    }
}

/// All jobs as one batch, and the frame and command of as many as go into a frame.
fn encode_many() -> impl FnMut() {
    let connection = unconnected();
    move || {
        let options = JobOptions::none("{}");
        black_box(AddBatch::pack(NOW_MS, (0..JOBS).map(|_| job(&options))));
        for number in 0..JOBS / MAX_JOBS {
            black_box(command(&connection, MAX_JOBS, &full_frame(), number));
        }
    }
}

/// The answer to a step, from its bytes to jobs as a worker hands them on.
fn decode() -> impl FnMut() {
    let answer = answer();
    move || {
        let mut desk = Desk::default();
        desk.take(read(&answer));
        black_box(&desk);
    }
}

/// What [`decode`] does, and the ends of these jobs on their way back, as `end` has them.
fn dispatch(end: impl Fn(&mut Desk) -> usize) -> impl FnMut() {
    let answer = answer();
    move || {
        let mut desk = Desk::default();
        desk.take(read(&answer));
        black_box(end(&mut desk));
    }
}

fn job(options: &JobOptions) -> NewJob<'_> {
    NewJob {
        name: NAME,
        data: black_box(DATA),
        options,
    }
}

/// It is never used: it knows in which form calls go.
fn unconnected() -> Connection {
    Connection::new(ConnectOptions::default(), |_| {})
}

fn full_frame() -> Vec<u8> {
    let mut builder = FrameBuilder::new(NOW_MS, "{}");
    for _ in 0..MAX_JOBS {
        builder.push(NAME, black_box(DATA));
    }
    builder.finish().0
}

fn command(connection: &Connection, jobs: usize, frame: &[u8], number: usize) -> Vec<u8> {
    let args = [
        Arg::Int(NOW_MS as i64),
        Arg::from("a1b2c3d4e5f6a7b8"),
        Arg::Int(0),
        Arg::Int(number as i64),
        Arg::Int(jobs as i64),
        Arg::from(NAME),
        Arg::from(frame),
    ];
    ADD_FRAMES.packed(connection, BASE, &args)
}

/// The bytes of an answer to a step that took [`JOBS`] jobs.
fn answer() -> Vec<u8> {
    let frame = full_frame();
    let frames = JOBS / MAX_JOBS;
    let mut bytes = format!("*9\r\n*0\r\n*{}\r\n", 3 * frames).into_bytes();
    for number in 0..frames {
        bytes.extend(format!(":{}\r\n:{MAX_JOBS}\r\n${}\r\n", 1 + number * MAX_JOBS, frame.len()).into_bytes());
        bytes.extend(&frame);
        bytes.extend(b"\r\n");
    }
    // nothing is due, no gate, nothing more waits, the times of both clocks, no limit, the claim
    bytes.extend(format!(":-1\r\n:0\r\n:0\r\n:{NOW_MS}\r\n:{NOW_MS}000\r\n:0\r\n:1\r\n").into_bytes());
    bytes
}

fn read(answer: &[u8]) -> Value {
    redis::parse_redis_value(black_box(answer)).unwrap_or(Value::Nil)
}
