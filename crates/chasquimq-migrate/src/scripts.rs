//! What `build.rs` makes of `lua/`: each transition as a script.

use chasquimq::redis::call::library::Script;

include!(concat!(env!("OUT_DIR"), "/scripts.rs"));
