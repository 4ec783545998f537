//! What is compared, as text.

use redis::Value;

use crate::{
    given::{
        plan::Plan,
        queue::{show_reply, TestQueue},
    },
    probe::tree::{show_bytes, Tree},
};

/// Where `unlimited` stands in the state, and how many numbers that has.
pub const UNLIMITED: (usize, usize) = (16, 18);

/// A reply without what the server's clock says.
pub fn show_steady(value: &Value) -> String {
    match value {
        Value::Array(parts) if parts.len() == 9 => {
            let (server_us, limited_ms) = (Value::Nil, Value::Boolean(parts[7] != Value::Int(0)));
            let mut parts = parts.clone();
            (parts[6], parts[7]) = (server_us, limited_ms);
            show_reply(&Value::Array(parts))
        }
        Value::Array(parts) if parts.len() == 1 => show_steady(&parts[0]),
        other => show_reply(other),
    }
}

pub fn show_plan(plan: &Plan) -> String {
    let mut call = redis::Cmd::new();
    plan.append_to(&mut call);
    let arguments = call.args_iter().map(|argument| match argument {
        redis::Arg::Simple(bytes) => show_bytes(bytes),
        _ => String::new(),
    });
    arguments.take(1).collect()
}

/// The events of a group of records, a group each: which of them share one says nothing.
pub fn one_by_one(group: &Tree) -> Vec<String> {
    let items = group.items();
    if items[0].bytes() != b"X" {
        return vec![group.show()];
    }
    let ids = items[2].items();
    let of_job = |at: usize| {
        let own = items.iter().map(|item| match item {
            Tree::Array(values) if values.len() == ids.len() => values[at].clone(),
            other => other.clone(),
        });
        Tree::Array(own.collect()).show()
    };
    (0..ids.len()).map(of_job).collect()
}

/// Without what is written behind a worker's name where many jobs are active (`NO_LIST`, `lua/step/fetched.lua`).
pub fn unpadded(keys: &str) -> String {
    keys.replace(&" ".repeat(1 + 24), "")
}

/// The place of the number of waiting jobs among the numbers of the state.
pub const WAITING: usize = 3;

/// The numbers of the state, but for `unlimited`.
pub fn state_of(queue: &mut TestQueue) -> Vec<f64> {
    let Value::BulkString(raw) = queue.command("GET", "state", &[]) else {
        return Vec::new();
    };
    assert_eq!(raw.len(), 8 * UNLIMITED.1);
    let numbers = raw
        .chunks_exact(8)
        .map(|bytes| f64::from_le_bytes(bytes.try_into().expect("eight bytes")));
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.remove(UNLIMITED.0);
    numbers
}

/// Without the ends of windows of keys, which go by the server's clock.
pub fn without_windows(text: &str) -> String {
    let mut parts = text.split("ku:[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "ku:[" + &part[part.find(']').unwrap_or_default()..]
    })
}
