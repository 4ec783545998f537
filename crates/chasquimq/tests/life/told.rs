//! Whatever happens to workers that wait, each job that comes is told to one of them.

use std::time::{Duration, Instant};

use chasquimq::{system_now_ms, unique_id, ConnectOptions, WorkerOptions};

use crate::{
    probe::connect_options,
    random::Random,
    runner::{End, Runner},
    world::World,
};

const ROUNDS: u64 = 300;

/// A worker that finds nothing by looking: the test is over before.
fn start(world: &World, name: &str, watches_news: bool) -> Runner {
    let connect = ConnectOptions {
        client_name: Some(name.to_owned()),
        ..connect_options()
    };
    let options = WorkerOptions {
        concurrency: 3,
        drain_delay: Duration::from_secs(3_600),
        stalled_interval: None,
        watches_news,
        ..WorkerOptions::default()
    };
    Runner::start(connect, world.keys.clone(), options, |_| async { End::DONE })
}

/// Kills what workers hear by.
fn kill(world: &mut World, name: &str) {
    let clients: String = world.server(&["CLIENT", "LIST"]);
    let name = format!(" name={name} ");
    for client in clients.lines().filter(|client| client.contains(&name)) {
        let id = client.split(['=', ' ']).nth(1).expect("an id");
        world.server::<i64>(&["CLIENT", "KILL", "ID", id]);
    }
}

fn spin(micros: u64) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_micros(micros) {
        std::hint::spin_loop();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_starts_whatever_becomes_of_those_who_wait() {
    let seed = std::env::var("TOLD_SEED").map_or_else(|_| system_now_ms(), |seed| seed.parse().expect("a number"));
    // a failure tells it
    println!("TOLD_SEED={seed}");
    let mut random = Random::seeded(seed);
    for workers in [1, 2] {
        disturb(workers, &mut random).await;
    }
}

async fn disturb(workers: u64, random: &mut Random) {
    let mut world = World::new();
    let name = unique_id();
    let mut workers: Vec<_> = (0..workers).map(|_| start(&world, &name, random.once_in(2))).collect();
    let mut added = 0;
    for _ in 0..ROUNDS {
        let at = random.below(workers.len() as u64) as usize;
        let worker = workers[at].worker();
        match random.below(8) {
            0..=2 => {
                worker.pause();
                spin(random.below(300));
                worker.run(system_now_ms());
            }
            3 => worker.set_concurrency(1 + random.below(3) as u32),
            4 => worker.scan(),
            5 => worker.tick(system_now_ms()),
            6 => kill(&mut world, &name),
            _ => {
                let next = start(&world, &name, random.once_in(2));
                std::mem::replace(&mut workers[at], next).close().await;
            }
        }
        spin(random.below(300));
        let options = match random.below(5) {
            0 => format!(r#"{{"delay":{}}}"#, random.below(30)),
            1 => r#"{"priority":3}"#.to_owned(),
            _ => "{}".to_owned(),
        };
        let jobs = 1 + random.below(3);
        world.add(&options, (0..jobs).map(|number| number.to_string())).await;
        added += jobs;
        if random.once_in(2) {
            world.completed(added).await;
        }
    }
    world.completed(added).await;
    for worker in workers {
        worker.close().await;
    }
    world.end();
}
