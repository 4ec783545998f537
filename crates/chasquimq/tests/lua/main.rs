//! One module a script of `lua/`: a state is built, one script runs, its reply, all keys and its events are compared.
//! After every call `probe::check` compares each key with the others.

mod plan;
#[path = "../probe/mod.rs"]
mod probe;
mod queue;
mod step;

mod add;
mod model;
