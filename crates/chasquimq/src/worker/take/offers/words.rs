//! Which jobs of which offer are drawn, in words that whoever runs jobs changes as well.

use std::sync::{
    atomic::{AtomicU32, Ordering},
    Arc,
};

/// What stands in words for offers, which whoever runs jobs shares: the number of the offer in the upper bits (as far as words come round), the
/// offset behind its last job, and that of the next one to be drawn.
#[derive(Debug, Clone)]
pub struct Words(Arc<[AtomicU32]>);

impl Words {
    /// How many offers there may be at once. Their number is a power of two.
    pub const COUNT: u32 = 512;
    /// How many jobs one may have.
    pub(super) const MOST: u32 = Self::OFFSETS;
    const OFFSET_BITS: u32 = 12;
    const OFFSETS: u32 = (1 << Self::OFFSET_BITS) - 1;

    pub(super) fn new() -> Self {
        Self((0..Self::COUNT).map(|_| AtomicU32::new(0)).collect())
    }

    /// The words themselves.
    pub fn shared(&self) -> Arc<[AtomicU32]> {
        self.0.clone()
    }

    /// Draws the next job of an offer. False: the worker has taken it back, and all behind it.
    pub fn draw(&self, offer: u32) -> bool {
        self.change(offer, |next, end| (next < end).then_some((next + 1, end)))
            .is_some()
    }

    fn word(&self, offer: u32) -> &AtomicU32 {
        &self.0[(offer % Self::COUNT) as usize]
    }

    fn packed(offer: u32, (next, end): (u32, u32)) -> u32 {
        (offer / Self::COUNT) << (2 * Self::OFFSET_BITS) | end << Self::OFFSET_BITS | next
    }

    pub(super) fn offer(&self, offer: u32, count: u32) {
        self.word(offer)
            .store(Self::packed(offer, (0, count)), Ordering::Release);
    }

    /// The offsets of the next job, and behind the last one; none of an offer whose word is another's.
    pub(super) fn read(&self, offer: u32) -> (u32, u32) {
        Self::unpacked(offer, self.word(offer).load(Ordering::Acquire)).unwrap_or_default()
    }

    fn unpacked(offer: u32, word: u32) -> Option<(u32, u32)> {
        let offsets = (word & Self::OFFSETS, word >> Self::OFFSET_BITS & Self::OFFSETS);
        (Self::packed(offer, offsets) == word).then_some(offsets)
    }

    /// Gives the offsets before the change; `None` where nothing changes.
    pub(super) fn change(&self, offer: u32, change: impl Fn(u32, u32) -> Option<(u32, u32)>) -> Option<(u32, u32)> {
        let changed = self
            .word(offer)
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                let (next, end) = Self::unpacked(offer, word)?;
                Some(Self::packed(offer, change(next, end)?))
            });
        changed.ok().and_then(|word| Self::unpacked(offer, word))
    }
}
