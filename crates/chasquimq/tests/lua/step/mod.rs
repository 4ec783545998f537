//! Finishes what is done, fetches what can start.

mod again;
mod apart;
mod dedup;
mod delayed;
mod fail;
mod families;
mod fetch;
mod finish;
mod frames;
mod gate;
mod large;
mod limit;
mod metrics;
mod priority;
mod refused;
mod retention;
mod straight;
mod turns;
