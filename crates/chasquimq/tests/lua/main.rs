//! One module a script of `lua/`: a state is built, one script runs, its reply, all keys and its events are compared.
//! After every call `probe::check` compares each key with the others.

mod given;
#[path = "../probe/mod.rs"]
mod probe;

mod add;
mod add_and_step;
mod add_flows;
mod add_frames;
mod adopt_dedup;
mod adopt_jobs;
mod adopt_queue;
mod apart;
mod change_jobs;
mod change_priority;
mod clean_jobs;
mod configure;
mod count_frames;
mod count_jobs;
mod count_priorities;
mod remove_dependency;
mod update_job;

mod extend_locks;
mod find_jobs;
mod find_lost;
mod flows;
mod gather;
mod groups_at_random;
mod job_state;
mod limit_left;
mod list_active;
mod list_children;
mod list_groups;
mod list_jobs;
mod list_schedulers;
mod log_job;
mod lost_keys;
mod move_active;
mod move_delayed;
mod move_to_waiting_children;
mod next_iterations;
mod obliterate;
mod pause;
mod places;
mod promote_jobs;
mod publish_event;
mod read_dependencies;
mod read_group;
mod read_jobs;
mod recall;
mod recover_stalled;
mod release_worker;
mod remove_children;
mod remove_dedup_key;
mod remove_descendants;
mod remove_job;
mod remove_scheduler;
mod renew_lease;
mod retry_job;
mod retry_jobs;
mod return_jobs;
mod return_queue;
mod set_group;
mod set_limit;
mod settle_adopted;
mod step;
mod step_job;
mod upsert_scheduler;
mod wake_next;

mod events;
mod garbage;
mod lint;
mod model;
mod twins;
