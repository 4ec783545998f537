//! Ids of clients.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// 64 random bits: the standard library's hash keys are random in each process.
pub(crate) fn random_bits() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(COUNTER.fetch_add(1, Ordering::Relaxed));
    hasher.write_u32(std::process::id());
    hasher.write_u128(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos()),
    );
    hasher.finish()
}

/// A random number in 0..1.
pub(crate) fn random_unit() -> f64 {
    (random_bits() >> 11) as f64 / (1u64 << 53) as f64
}

/// What 2^48 random UUIDs begin with, and nobody else's do: 24 characters, which twelve hexadecimal digits follow.
pub(crate) fn unique_uuid_front() -> String {
    let (high, low) = (random_bits(), random_bits());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low & 0x3fff | 0x8000
    )
}

/// An id no other client has, 32 hexadecimal digits.
pub fn unique_id() -> String {
    format!("{:016x}{:016x}", random_bits(), random_bits())
}
