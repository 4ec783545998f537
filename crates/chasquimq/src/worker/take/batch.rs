//! Jobs that a step took, as they are handed over: in columns, which cost less than a value for each job.

use std::{collections::HashMap, sync::Arc};

use crate::{
    error::{Error, Result},
    job::{
        frame::{id_in, Frame},
        options::JobOptions,
        parent_header::ParentHeader,
        Body, StateFields,
    },
};

/// Jobs that became active together, in columns: handles count up from `base`.
#[derive(Debug, Default)]
pub struct Batch {
    /// Handle of the first job.
    pub base: u32,
    /// When they became active, epoch ms.
    pub processed_on: u64,
    /// The taking that made them active: no other of this worker has this number.
    pub claim: u64,
    /// Names and data (JSON texts) of all jobs, back to back.
    pub text: String,
    /// The jobs.
    pub jobs: Vec<BatchJob>,
    /// Their options.
    pub options: Vec<Arc<JobOptions>>,
    /// What else is known of jobs with a record.
    pub extras: Vec<Extra>,
    /// Whose children those in frames are.
    pub siblings: Vec<Siblings>,
    /// Its number among what is handed over, by which its jobs are drawn ([`crate::worker::Words`]).
    pub offer: u32,
}

/// One job of a batch.
#[derive(Debug)]
pub struct BatchJob {
    /// Its number, which is its id; 0: its extra names the id.
    pub number: u64,
    /// Bytes of its name in the text; `None`: named as the job before.
    pub name_len: Option<u32>,
    /// Bytes of its data in the text.
    pub data_len: u32,
    /// Index of its options.
    pub options: u32,
    /// Creation time, epoch ms.
    pub timestamp: u64,
    /// Index of its extra.
    pub extra: Option<u32>,
    /// Index of its siblings, of a child in a frame.
    pub siblings: Option<u32>,
}

/// Children of one parent in a frame.
#[derive(Debug)]
pub struct Siblings {
    /// What their ids begin with; their numbers follow ([`crate::job::frame::child_id`]).
    pub ids: Arc<str>,
    /// What is known of each of them.
    pub fields: StateFields,
}

/// What is known of a job with a record.
#[derive(Debug)]
pub struct Extra {
    /// Its id.
    pub id: String,
    /// What happened to it so far; `attempts_started` counts this start, `priority` is the one it has.
    pub fields: StateFields,
    /// From when on this start could be, epoch ms, where latency is measured and it is known.
    pub ready_ms: Option<u64>,
}

impl Extra {
    /// Whether the job failed before, and its stack traces are not in the answer.
    pub(crate) fn lacks_traces(&self) -> bool {
        match &self.fields.stacktrace {
            Some(traces) => traces.is_empty(),
            None => self.fields.failed_reason.is_some(),
        }
    }

    /// Whether the answer does not hold all of the job.
    pub(crate) fn is_partial(&self) -> bool {
        self.lacks_traces() || self.fields.large_data.is_some()
    }
}

impl Batch {
    /// Puts in the data that jobs, by the index of their extras, had none of so far.
    pub(crate) fn put_data(&mut self, data: &HashMap<u32, String>) {
        let more: usize = data.values().map(String::len).sum();
        let mut text = String::with_capacity(self.text.len() + more);
        let mut rest = self.text.as_str();
        for job in &mut self.jobs {
            let (own, next) = rest.split_at((job.name_len.unwrap_or(0) + job.data_len) as usize);
            text.push_str(own);
            rest = next;
            if let Some(data) = job.extra.and_then(|extra| data.get(&extra)) {
                text.push_str(data);
                job.data_len += data.len() as u32;
            }
        }
        self.text = text;
    }

    pub(crate) fn push_frame(
        &mut self,
        first: u64,
        n: u32,
        mut frame: Frame<'_>,
        options: &Arc<JobOptions>,
    ) -> Result<()> {
        let options = self.options_index(options);
        let header = frame.header.take();
        let ids: Option<Arc<str>> = header.as_ref().map(|header| header.ids.into());
        let mut families = header.into_iter().flat_map(ParentHeader::into_parents);
        let mut left = 0;
        for number in first..first + u64::from(n) {
            let Some((name, data)) = frame.next_job()? else {
                return Err(Error::malformed("a frame", "too few jobs"));
            };
            if let Some(ids) = ids.as_ref().filter(|_| left == 0) {
                let Some((parent, children @ 1..)) = families.next() else {
                    return Err(Error::malformed("a frame", "a child without a parent"));
                };
                left = children;
                let fields = StateFields {
                    parent: Some(parent),
                    ..StateFields::first_start()
                };
                self.siblings.push(Siblings {
                    ids: ids.clone(),
                    fields,
                });
            }
            left = left.saturating_sub(1);
            if let Some(name) = name {
                self.text.push_str(name);
            }
            self.text.push_str(data);
            self.jobs.push(BatchJob {
                number,
                name_len: name.map(|name| name.len() as u32),
                data_len: data.len() as u32,
                options,
                timestamp: frame.timestamp,
                extra: None,
                siblings: ids.is_some().then(|| self.siblings.len() as u32 - 1),
            });
        }
        Ok(())
    }

    /// A job with a record. `extra` is for one that is more than a number, or was started before.
    pub(crate) fn push_record(&mut self, number: u64, body: &Body, options: &Arc<JobOptions>, extra: Option<Extra>) {
        self.text.push_str(&body.name);
        self.text.push_str(&body.data);
        let job = BatchJob {
            number,
            name_len: Some(body.name.len() as u32),
            data_len: body.data.len() as u32,
            options: self.options_index(options),
            timestamp: body.timestamp,
            extra: extra.is_some().then_some(self.extras.len() as u32),
            siblings: None,
        };
        self.jobs.push(job);
        self.extras.extend(extra);
    }

    /// A job of a frame that cannot be read: it is to fail.
    pub(crate) fn push_unreadable(&mut self, number: u64, ids: Option<&str>, error: &Error) {
        let Body { data, timestamp, .. } = Body::unreadable();
        self.text.push_str(&data);
        let options = self.options_index(&Arc::new(JobOptions::none("{}")));
        self.jobs.push(BatchJob {
            // the extra names a child
            number: if ids.is_some() { 0 } else { number },
            name_len: Some(0),
            data_len: data.len() as u32,
            options,
            timestamp,
            extra: Some(self.extras.len() as u32),
            siblings: None,
        });
        self.extras.push(Extra {
            id: id_in(ids, number),
            fields: StateFields {
                attempts_started: 1,
                ..StateFields::of_unreadable(error)
            },
            ready_ms: None,
        });
    }

    fn options_index(&mut self, options: &Arc<JobOptions>) -> u32 {
        // jobs of one kind follow each other
        if let Some(last) = self.options.last() {
            if Arc::ptr_eq(last, options) {
                return self.options.len() as u32 - 1;
            }
        }
        self.options.push(options.clone());
        self.options.len() as u32 - 1
    }
}
