//! What a step may take.

/// Jobs that there is room for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Room {
    /// Jobs to start now; -1 = none at all is looked for.
    pub(crate) want: i64,
    /// No more than so many of them where few jobs wait, and another worker for them.
    pub(crate) reach: i64,
    /// Jobs to take in advance, where no worker waits for jobs.
    pub(crate) surplus: i64,
}

impl Room {
    /// Nothing is looked for.
    pub(crate) const NONE: Self = Self {
        want: -1,
        reach: 0,
        surplus: 0,
    };
    /// What comes next is looked for, and nothing is taken.
    pub(crate) const FULL: Self = Self { want: 0, ..Self::NONE };

    /// Whether fewer are taken where another worker waits for jobs.
    pub(crate) fn is_part(self) -> bool {
        self.reach < self.want
    }

    /// The same where nothing was to be taken.
    pub(crate) fn to_look(self) -> Self {
        Self {
            want: self.want.min(0),
            ..Self::FULL
        }
    }

    /// The same without places that are needed for something else.
    pub(crate) fn without(self, places: usize) -> Self {
        Self {
            want: (self.want - places as i64).max(self.want.min(0)),
            ..self
        }
    }
}
