//! Failed attempts that end alike: they become one operation of a step.

use std::sync::Arc;

use super::place::{pack_body, Place};
use crate::job::{frame::bodies_in_frame, msgpack::Packer};

/// How failed attempts of one operation end: those of one frame (first > 0), or of records, that share all of this.
#[derive(Debug, PartialEq)]
pub(crate) struct AttemptEnd {
    pub(crate) first: u64,
    // of a frame's jobs
    pub(crate) frame_claim: u64,
    pub(crate) to: &'static str,
    pub(crate) keep: i64,
    pub(crate) due_ms: u64,
    pub(crate) attempts_made: u32,
    pub(crate) exhausted: bool,
    // none: what was thrown has no message
    pub(crate) reason: Option<Arc<str>>,
}

#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) end: AttemptEnd,
    places: Vec<Place>,
    traces: Vec<Arc<str>>,
}

impl Failed {
    #[inline]
    pub(crate) fn new(end: AttemptEnd) -> Self {
        Self {
            end,
            places: Vec::new(),
            traces: Vec::new(),
        }
    }

    /// One more job, with its stack traces.
    #[inline]
    pub(crate) fn push(&mut self, place: Place, trace: Option<Arc<str>>) {
        self.places.push(place);
        self.traces.push(trace.unwrap_or_else(|| Arc::from("")));
    }

    /// For the step script; `large`: what stands behind its other arguments. `is_measured`: it is noted from when on they can start again.
    #[inline]
    pub(crate) fn pack(&self, items: &mut Packer, large: &mut Vec<Box<str>>, is_measured: bool) {
        let Self { end, places, traces } = self;
        items
            .array(match (is_measured, &end.reason) {
                (true, _) => 16,
                (false, None) => 15,
                (false, Some(_)) => 14,
            })
            .str("f")
            .int(end.first as i64);
        items.int(i64::from(places[0].n));
        if end.first > 0 {
            items.ints(places.iter().map(|place| i64::from(place.offset)));
        } else {
            items.int(0);
        }
        pack_claims(items, places.iter().map(|place| place.claim));
        items.column(places.iter().map(|place| place.id.as_str()), false);
        match &places[0].blob {
            Some(blob) => {
                let offsets: Vec<usize> = places.iter().map(|place| place.offset as usize).collect();
                items.array(offsets.len());
                for body in bodies_in_frame(blob, &offsets) {
                    pack_body(items, &body, large);
                }
            }
            None => {
                items.str("");
            }
        }
        items.str(end.to).int(end.keep).int(end.due_ms as i64);
        items
            .int(i64::from(end.attempts_made))
            .int(i64::from(end.exhausted))
            .str(end.reason.as_deref().unwrap_or_default());
        let is_same = traces.iter().all(|trace| *trace == traces[0]);
        items.column(traces.iter().map(|trace| &**trace), is_same);
        if end.reason.is_none() {
            items.int(1);
        } else if is_measured {
            items.nil();
        }
        if is_measured {
            items.int(1);
        }
    }
}

/// The claims of jobs that end together: one number, where they share it.
#[inline]
pub(crate) fn pack_claims(items: &mut Packer, claims: impl ExactSizeIterator<Item = u64> + Clone) {
    let mut others = claims.clone();
    let first = others.next().unwrap_or_default();
    if others.all(|claim| claim == first) {
        items.int(first as i64);
        return;
    }
    items.ints(claims.map(|claim| claim as i64));
}
