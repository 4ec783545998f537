//! What an event loop does for a worker: it reads what the worker hears by, takes its steps, and tells what they brought.

use std::{collections::VecDeque, sync::Arc};

use chasquimq::{
    redis::wire::{Watch, Watched},
    worker::{Message, Standby},
};
use tokio::sync::{mpsc, Notify};

/// Number of a step, and its command.
pub type Carried = (i64, Vec<u8>);

/// The connection that a worker hears by, and the steps that have no answer there.
struct Lane<T> {
    standby: Standby,
    watched: Watched,
    waiting: VecDeque<i64>,
    tell: T,
}

/// Watches until the connection breaks. `carried`: steps that record how jobs ended.
pub async fn watch(
    standby: Standby,
    carried: mpsc::UnboundedReceiver<Carried>,
    tell: impl Fn(Message) + Send + Sync + 'static,
) {
    let woken = Arc::<Notify>::default();
    let wakes = woken.clone();
    let Some(Watch::Begins(watched)) = standby.watch(move || wakes.notify_one()) else {
        return;
    };
    standby.watched(true);
    let lane = Lane {
        standby,
        watched,
        waiting: VecDeque::new(),
        tell,
    };
    lane.run(woken, carried).await;
}

impl<T: Fn(Message)> Lane<T> {
    async fn run(mut self, woken: Arc<Notify>, mut carried: mpsc::UnboundedReceiver<Carried>) {
        #[expect(
            deprecated,
            reason = "the connection, which stays, owns it, and lends its number only"
        )]
        let readable = tokio::io::unix::AsyncFd::with_interest(self.watched.fd(), tokio::io::Interest::READABLE);
        let readable = readable.expect("a socket");
        loop {
            tokio::select! {
                ready = readable.readable() => ready.expect("readiness").clear_ready(),
                () = woken.notified() => {}
                step = carried.recv() => match step {
                    Some(step) => self.send(step),
                    // nobody runs what would come
                    None => break,
                },
            }
            if !self.read() {
                break;
            }
        }
        self.standby.watched(false);
        for number in self.waiting {
            self.standby.lose(number);
        }
    }

    fn send(&mut self, (number, command): Carried) {
        match self.watched.send(&command.into(), 1) {
            Ok(_) => self.waiting.push_back(number),
            Err(_) => self.standby.lose(number),
        }
    }

    fn read(&mut self) -> bool {
        let mut answers = Vec::new();
        let alive = self.watched.receive(&mut answers).is_ok();
        for answer in answers {
            let number = self.waiting.pop_front().expect("a step");
            match answer {
                Ok(reply) => self
                    .standby
                    .stepped(number, Some(reply), |told| (self.tell)(told.into())),
                Err(_) => self.standby.lose(number),
            }
        }
        for _ in self.watched.heard() {
            if let Some(step) = self.standby.step_on_news() {
                self.send(step);
            }
        }
        alive
    }
}
