//! Additions by a connection that an event loop watches, as the binding makes them: what it does not answer is sent again over the engine's own.

use std::{collections::VecDeque, time::Duration};

use chasquimq::{
    add::{read_added, Call},
    redis::wire::{Watch, Watched},
    system_now_ms, AddBatch, JobOptions, NewJob, Queue,
};

use crate::{
    proxy::Proxy,
    world::{waits_once_each, World},
};

const BATCHES: usize = 400;
const JOBS_A_BATCH: usize = 25;
const AT_ONCE: usize = 10;

/// Calls on such a connection, and what they were answered.
struct Adding<'a> {
    queue: &'a Queue,
    socket: Option<Watched>,
    waiting: VecDeque<Call>,
    // what was stored for the first of them, as far as that is answered
    stored: usize,
    numbers: Vec<u64>,
    broken: usize,
}

impl Adding<'_> {
    async fn add(&mut self, batch: AddBatch) {
        if self.socket.is_none() {
            // a connection that breaks while it is made is tried again with the next batch
            self.socket = match self.queue.watch(|| {}).await {
                Ok(Some(Watch::Begins(socket))) => Some(socket),
                _ => None,
            };
        }
        let call = self.queue.producer().begin(batch);
        let commands = self.queue.producer().commands(&call);
        let replies = call.stashes() + 1;
        let sent = self.socket.as_ref().map(|socket| socket.send(&commands, replies));
        self.waiting.push_back(call);
        if !matches!(sent, Some(Ok(_))) {
            self.send_again().await;
        }
    }

    /// Waits until every call is answered.
    async fn drain(&mut self) {
        while !self.waiting.is_empty() {
            let mut replies = Vec::new();
            let mut alive = self
                .socket
                .as_ref()
                .is_some_and(|socket| socket.receive(&mut replies).is_ok());
            for reply in replies {
                if self.waiting.front().is_some_and(|call| self.stored < call.stashes()) {
                    self.stored += 1;
                    continue;
                }
                self.stored = 0;
                // a refusal, for instance because the server forgot its scripts
                let Ok(added) = reply.and_then(|reply| read_added(reply, "q")) else {
                    alive = false;
                    break;
                };
                let call = self.waiting.pop_front().expect("a call");
                self.numbers.push(added.first);
                self.queue.producer().end(&call, &Ok(added));
            }
            if !alive {
                self.send_again().await;
            }
            // nobody watches the socket here
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn send_again(&mut self) {
        self.broken += 1;
        self.stored = 0;
        self.socket = None;
        while let Some(call) = self.waiting.pop_front() {
            let added = self.queue.producer().send(&call).await;
            self.queue.producer().end(&call, &added);
            self.numbers.push(added.expect("an addition").first);
        }
    }
}

/// Those of each eighth batch are so long that their frame lies apart.
fn data_of(batch: usize, job: usize) -> String {
    let number = (batch * JOBS_A_BATCH + job).to_string();
    match batch % 8 {
        0 => format!("\"{number:0>10000}\""),
        _ => number,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_are_added_once_each_though_the_socket_breaks() {
    let proxy = Proxy::start(8).await;
    let world = World::behind(proxy.connect_options());
    let options = JobOptions::parse("{}").expect("options");
    let mut adding = Adding {
        queue: &world.queue,
        socket: None,
        waiting: VecDeque::new(),
        stored: 0,
        numbers: Vec::new(),
        broken: 0,
    };
    let mut batches = 0;
    // on a busy machine few of them meet a break
    while batches < BATCHES || (adding.broken <= 5 && batches < 50 * BATCHES) {
        let data: Vec<String> = (0..JOBS_A_BATCH).map(|job| data_of(batches, job)).collect();
        let jobs = data.iter().map(|data| NewJob {
            name: "a",
            data,
            options: &options,
        });
        adding.add(AddBatch::pack(system_now_ms(), jobs)).await;
        if batches % AT_ONCE == 0 {
            adding.drain().await;
        }
        batches += 1;
    }
    adding.drain().await;
    assert!(adding.broken > 5, "broken {} times only", adding.broken);
    adding.numbers.sort_unstable();
    let expected = (0..batches).map(|batch| (batch * JOBS_A_BATCH) as u64 + 1);
    assert!(adding.numbers.iter().copied().eq(expected), "{:?}", adding.numbers);
    proxy.calm();

    waits_once_each(&world.end(), batches * JOBS_A_BATCH);
}
