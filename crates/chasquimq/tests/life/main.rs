//! Whole lives of jobs, with workers, producers and readers on a real server. Each test has a queue of its own; when it is over every
//! key is compared with the others.

#[expect(dead_code, reason = "the script tests look at more than these")]
#[path = "../probe/mod.rs"]
mod probe;
mod proxy;
#[expect(dead_code, reason = "the script tests ask it for more than these")]
#[path = "../lua/model/random.rs"]
mod random;
mod runner;
mod world;

#[cfg(unix)]
mod lane;

mod add;
#[cfg(unix)]
mod along;
mod close;
mod delays;
mod events;
mod fairness;
mod faults;
mod garbled;
mod leases;
mod reconnect;
mod retries;
#[cfg(unix)]
mod short_way;
#[cfg(unix)]
mod standby;
mod told;
#[cfg(unix)]
mod watched;
