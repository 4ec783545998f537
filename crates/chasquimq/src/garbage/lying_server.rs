//! A server that answers every call with what it likes. Each call comes to an end, by a result or an error, and panics never.

use std::{future::Future, time::Duration};

use redis::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{changes, value, Chance};
use crate::{
    flows::children::{ChildKind, ChildPage, Extent},
    job::options::JobOptions,
    keys::Keys,
    queue::{
        by_id::RetryOptions,
        find::{Change, Pick},
        lists::JobRange,
        Queue,
    },
    redis::wire::framing::Framing,
    system_now_ms,
    worker::{GroupRules, ManualStep},
    AddBatch, ConnectOptions, Error, NewJob,
};

/// What it says of itself.
const INFO: &str = "redis_version:8.0.0\r\nrun_id:abc\r\nrole:x\r\n";
/// Far more than any call takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn write(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Int(number) => bytes.extend(format!(":{number}\r\n").bytes()),
        Value::SimpleString(text) => bytes.extend(format!("+{text}\r\n").bytes()),
        Value::BulkString(text) => {
            bytes.extend(format!("${}\r\n", text.len()).bytes());
            bytes.extend_from_slice(text);
            bytes.extend_from_slice(b"\r\n");
        }
        Value::Array(values) => {
            bytes.extend(format!("*{}\r\n", values.len()).bytes());
            values.iter().for_each(|value| write(value, bytes));
        }
        _ => bytes.extend_from_slice(b"$-1\r\n"),
    }
}

fn answer(chance: &mut Chance) -> Vec<u8> {
    let mut bytes = Vec::new();
    match chance.below(8) {
        // an empty page, or a cursor that goes on, is what most calls look for
        0 => bytes.extend_from_slice(b"*3\r\n$0\r\n\r\n*0\r\n*0\r\n"),
        1 => bytes.extend_from_slice(b"*2\r\n$1\r\n7\r\n*0\r\n"),
        2 => bytes.extend_from_slice(b"-ERR no\r\n"),
        3 => write(&Value::Array((0..20).map(|_| value(chance, 3)).collect()), &mut bytes),
        4 => bytes.extend(format!(":{}\r\n", [0, 1, -1, -7, 100][chance.below(5)]).bytes()),
        _ => write(&value(chance, 0), &mut bytes),
    }
    bytes
}

async fn answer_all(mut client: TcpStream, mut chance: Chance) {
    let (mut framing, mut asked) = (Framing::default(), vec![0; 1 << 16]);
    let mut is_login = true;
    while let Ok(len @ 1..) = client.read(&mut asked).await {
        let mut rest = &asked[..len];
        // a command is of the form of a reply
        while let Ok(Some(end)) = framing.end(rest) {
            let bytes = match std::mem::take(&mut is_login) {
                true => format!("${}\r\n{INFO}\r\n", INFO.len()).into_bytes(),
                false => answer(&mut chance),
            };
            rest = &rest[end..];
            if client.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }
}

async fn lying_server(seed: u64) -> ConnectOptions {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let mut connections = 0;
        while let Ok((client, _)) = listener.accept().await {
            connections += 1;
            tokio::spawn(answer_all(client, Chance::of_run(seed + (connections << 16))));
        }
    });
    ConnectOptions {
        port,
        ..ConnectOptions::default()
    }
}

async fn ends<T>(what: &str, call: impl Future<Output = Result<T, Error>>) {
    let ended = tokio::time::timeout(PATIENCE, call).await;
    assert!(ended.is_ok(), "{what} does not come to an end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_end_whatever_they_are_answered() {
    let rounds = changes() / 200;
    let queue = Queue::new(lying_server(1).await, Keys::new("bull", "q"), |_| {});
    let now_ms = system_now_ms();
    for _ in 0..rounds {
        look(&queue).await;
        change(&queue, now_ms).await;
    }
    queue.close();
}

async fn look(queue: &Queue) {
    let types = ["active", "completed", "waiting", "failed", "delayed"].map(str::to_owned);
    let range = JobRange {
        types: types.to_vec(),
        start: 0,
        stop: -1,
        ascending: true,
    };
    ends("job", queue.job("1")).await;
    ends("state", queue.state("1")).await;
    ends("outcome", queue.outcome("1")).await;
    ends("jobs", queue.jobs(&range)).await;
    ends("job_ids", queue.job_ids(&range)).await;
    ends("counts", queue.counts()).await;
    ends("counts_per_priority", queue.counts_per_priority(&[0.0, 1.0], None)).await;
    ends("metrics", queue.metrics("completed", 0, -1)).await;
    ends("oldest_ms", queue.oldest_ms(9, None)).await;
    ends("latency", queue.latency(9, 0, 9, Some("a"))).await;
    ends("latency_so_far", queue.latency_so_far()).await;
    ends("logs", queue.logs("1", 0, -1, true)).await;
    ends("meta", queue.meta()).await;
    ends("clients", queue.worker_clients()).await;
    ends("deduplication_owner", queue.deduplication_owner("1")).await;
    ends("find_step", queue.find_step("failed", &Pick::default(), "", 100)).await;
    ends("count_step", queue.count_step("waiting", &Pick::default(), "", 100)).await;
    ends("trim_events", queue.trim_events(5)).await;
    ends("names", queue.names()).await;
    for kind in ChildKind::ALL {
        for extent in [Extent::Whole, Extent::Number, Extent::Count(3)] {
            let page = ChildPage {
                kind,
                cursor: 0,
                extent,
            };
            ends("children", queue.children_pages("1", &[page])).await;
        }
        ends("children_range", queue.children_range("1", kind, 0, -1)).await;
    }
    ends("tree", queue.tree(queue.keys().clone(), "1", 3, 20)).await;
}

async fn change(queue: &Queue, now_ms: u64) {
    let options = JobOptions::parse("{}").expect("options");
    let jobs = (0..3).map(|_| NewJob {
        name: "a",
        data: "1",
        options: &options,
    });
    ends("add", queue.add(AddBatch::pack(now_ms, jobs))).await;
    ends("log", queue.log("1", "row", 5)).await;
    ends("update", queue.update_progress(now_ms, "1", "5")).await;
    ends("retry", queue.retry(now_ms, "1", "failed", RetryOptions::default())).await;
    ends("promote", queue.promote(now_ms, "1")).await;
    ends("drain", queue.drain(now_ms, true)).await;
    ends("clean", queue.clean(now_ms, "completed", None, Some(10))).await;
    let all = Pick::default();
    let change = queue.change_step(now_ms, Change::Remove, "failed", &all, ("", 10));
    ends("change_step", change).await;
    ends("promote_many", queue.promote_many(now_ms, 10)).await;
    ends("obliterate", queue.obliterate(now_ms, true, 10)).await;
    ends("remove", queue.remove(now_ms, "1", true)).await;
    let step = ManualStep {
        now_ms,
        token: "t".to_owned(),
        fetch: true,
        worker: String::new(),
        worker_name: String::new(),
        lock_duration: Duration::from_secs(30),
        limiter: None,
        group_rules: GroupRules::default(),
        ended: None,
    };
    ends("step_manually", queue.step_manually(step)).await;
    ends(
        "extend_locks",
        queue.extend_locks(&[("1".to_owned(), "t".to_owned())], 5),
    )
    .await;
}
