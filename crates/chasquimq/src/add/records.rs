//! Records in the plan of an add (`lua/transitions/add.lua`).

use crate::job::{msgpack::Packer, options::JobOptions};

/// Records of one kind follow each other in the plan as columns.
#[derive(Debug, PartialEq)]
pub(super) struct Kind {
    named: bool,
    delayed: bool,
    front: bool,
    prioritized: bool,
    grouped: bool,
    large: bool,
    with_terms: bool,
}

impl Kind {
    pub(super) fn of(options: &JobOptions, large: bool) -> Self {
        Self {
            named: options.job_id.is_some(),
            delayed: options.delay_ms > 0,
            front: options.delay_ms == 0 && options.lifo,
            prioritized: options.rank() != 0,
            grouped: options.group.is_some(),
            large,
            with_terms: options.has_terms(),
        }
    }
}

pub(super) struct Records<'a> {
    pub(super) kind: Kind,
    names: Vec<&'a str>,
    ids: Vec<&'a str>,
    dues: Packer,
    priorities: Packer,
    groups: Packer,
    terms: Packer,
}

impl<'a> Records<'a> {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            names: Vec::new(),
            ids: Vec::new(),
            dues: Packer::default(),
            priorities: Packer::default(),
            groups: Packer::default(),
            terms: Packer::default(),
        }
    }

    pub(super) fn push(&mut self, name: &'a str, options: &'a JobOptions, due_ms: u64) {
        self.names.push(name);
        if self.kind.named {
            self.ids.push(options.job_id.as_deref().unwrap_or(""));
        }
        self.dues.int(due_ms as i64);
        self.priorities.int(options.rank());
        if let Some(group) = &options.group {
            group.pack(&mut self.groups);
        }
        options.pack_terms(&mut self.terms);
    }

    pub(super) fn pack(self, items: &mut Packer) {
        let jobs = self.names.len();
        let values = match &self.kind {
            Kind { with_terms: true, .. } => 10,
            Kind { grouped: true, .. } => 9,
            Kind { large: true, .. } => 8,
            Kind { .. } => 7,
        };
        items.array(values).int(0).int(jobs as i64);
        items.column(self.ids.iter().copied(), self.ids.is_empty());
        let same_name = self.names.iter().all(|name| *name == self.names[0]);
        items.column(self.names.iter().copied(), same_name);
        numbers(items, self.kind.delayed.then_some(&self.dues), jobs);
        items.int(i64::from(self.kind.front));
        numbers(items, self.kind.prioritized.then_some(&self.priorities), jobs);
        if self.kind.large {
            items.int(1);
        } else if values > 8 {
            items.nil();
        }
        if self.kind.grouped {
            items.array(jobs).0.extend_from_slice(&self.groups.0);
        } else if values > 9 {
            items.nil();
        }
        if self.kind.with_terms {
            items.array(jobs).0.extend_from_slice(&self.terms.0);
        }
    }
}

/// A column of packed numbers, or 0.
fn numbers(items: &mut Packer, column: Option<&Packer>, jobs: usize) {
    match column {
        Some(column) => items.array(jobs).0.extend_from_slice(&column.0),
        None => {
            items.int(0);
        }
    }
}
