//! Connections that the server ends, and scripts that it forgets.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use chasquimq::{unique_id, ConnectOptions, EventMessage, EventReader, WorkerOptions};

use crate::{
    probe::connect_options,
    runner::{End, Runner},
    world::{until, World},
};

/// Ends every connection with this name. Gives their number.
fn kill_clients(world: &mut World, name: &str) -> usize {
    let clients: String = world.server(&["CLIENT", "LIST"]);
    let named = format!("name={name} ");
    let ids = clients.lines().filter(|line| line.contains(&named)).filter_map(|line| {
        line.split(' ')
            .find_map(|field| field.strip_prefix("id=").map(str::to_owned))
    });
    let ids: Vec<String> = ids.collect();
    // one may have ended by itself meanwhile
    ids.iter()
        .map(|id| world.server::<usize>(&["CLIENT", "KILL", "ID", id]))
        .sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_connections_and_forgotten_scripts_disturb_nobody() {
    const ROUNDS: usize = 20;
    let name = unique_id();
    let connect = ConnectOptions {
        client_name: Some(name.clone()),
        ..connect_options()
    };
    let mut world = World::behind(connect.clone());
    let events: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let told = events.clone();
    let sink = Arc::new(move |message| {
        if let EventMessage::Events(more) = message {
            let more = more.into_iter().map(|event| (event.id, event.name));
            told.lock().expect("events").extend(more);
        }
    });
    let reader = Arc::new(EventReader::new(connect.clone(), world.keys.clone(), sink.clone()));
    let reading = tokio::spawn(reader.run("0-0", Duration::from_secs(1), sink));
    let runs: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let counted = runs.clone();
    let worker = Runner::start(connect, world.keys.clone(), WorkerOptions::default(), move |job| {
        *counted.lock().expect("runs").entry(job.id).or_default() += 1;
        async { End::DONE }
    });
    let mut killed = 0;
    for round in 1..=ROUNDS {
        if round % 2 == 0 {
            world.server::<()>(&["FUNCTION", "FLUSH"]);
        }
        world.add_plain(20).await;
        killed += kill_clients(&mut world, &name);
        if round % 3 == 0 {
            // from an idle worker's wait, too
            world.completed(20 * round as u64).await;
            killed += kill_clients(&mut world, &name);
        }
    }
    world.completed(20 * ROUNDS as u64).await;
    assert!(killed > ROUNDS, "{killed} connections only");
    let count = |name: &str| {
        events
            .lock()
            .expect("events")
            .iter()
            .filter(|(_, other)| other == name)
            .count()
    };
    until("all events to be told", || async { count("completed") >= 20 * ROUNDS }).await;
    for event in ["added", "waiting", "active", "completed"] {
        assert_eq!(count(event), 20 * ROUNDS, "{event}");
    }
    assert!(runs.lock().expect("runs").values().all(|times| *times == 1));
    let seen = worker.close().await;
    assert!(
        seen.rejected.is_empty() && seen.errors.is_empty() && seen.stalled.is_empty(),
        "{seen:?}"
    );
    reader.close();
    reading.await.expect("a reader that ends");
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_connection_ends_in_the_middle_of_a_job_reports_it_later() {
    let mut world = World::new();
    world.add_plain(1).await;
    let (release, released) = tokio::sync::watch::channel(false);
    let worker = Runner::start(
        connect_options(),
        world.keys.clone(),
        WorkerOptions::default(),
        move |_| {
            let mut released = released.clone();
            async move {
                released.wait_for(|released| *released).await.expect("a release");
                End::DONE
            }
        },
    );
    until("the job to be active", || async { world.counts().await.active == 1 }).await;
    let worker_name = world.keys.worker_client("");
    assert_eq!(kill_clients(&mut world, &worker_name), 1);
    release.send(true).expect("a waiting handler");
    world.completed(1).await;
    worker.close().await;
    world.end();
}
