//! Random operations against a model in memory. After each one, whatever can be asked of the queue is compared with the model, and
//! every key with the others. `MODEL_SEED` and `MODEL_OPERATIONS` repeat a failure or make the search longer.

mod adds;
pub mod bulk;
mod by_id;
mod compare;
mod drive;
mod ending;
mod moves;
pub mod random;
mod state;
mod steps;

use drive::Drive;

const SEEDS: [u64; 4] = [1, 2, 3, 4];
const OPERATIONS: u64 = 120;

pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn random_operations_agree_with_the_model() {
    let seeds = setting("MODEL_SEED").map_or(SEEDS.to_vec(), |seed| vec![seed]);
    let operations = setting("MODEL_OPERATIONS").unwrap_or(OPERATIONS);
    for seed in seeds {
        let mut drive = Drive::seeded(seed);
        for _ in 0..operations {
            drive.operate();
        }
        drive.end();
    }
}
