//! Jobs packed for one call: plain ones in frames, the others as records.

use super::records::{Kind, Records};
use crate::{
    clock::due_ms,
    job::{
        deduplication::Deduplication,
        frame::{single_frame, stub_of, FrameBuilder, APART_BYTES, MAX_APART_BYTES, MAX_BYTES, STUB_OPTIONS},
        msgpack::Packer,
        options::JobOptions,
        record::body_of,
    },
};

/// A job to add.
#[derive(Debug, Clone, Copy)]
pub struct NewJob<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its data, JSON text.
    pub data: &'a str,
    /// Its options.
    pub options: &'a JobOptions,
}

impl NewJob<'_> {
    /// Whether it has a record, and its data lie apart (`lua/jobs/large.lua`). What yields to another job, or takes its place, is moved as a whole.
    #[inline]
    fn is_large(&self, are_frames: bool) -> bool {
        let most = if are_frames { MAX_APART_BYTES } else { MAX_BYTES };
        self.data.len() > most && self.options.deduplication.is_none()
    }

    /// Whether it waits for nothing but a worker, and yields to no other job.
    fn starts_at_once(&self) -> bool {
        self.options.delay_ms == 0 && self.options.deduplication.is_none()
    }

    /// Whether it may lie in a frame, and that apart.
    #[inline]
    fn may_be_in_frame(&self) -> bool {
        self.options.is_plain() && self.options.text.len() <= STUB_OPTIONS && self.data.len() <= MAX_APART_BYTES
    }
}

/// A batch as the add script takes it, ready to be sent.
#[derive(Debug)]
pub struct AddBatch {
    pub(super) now_ms: u64,
    pub(super) plan: Plan,
    pub(super) blobs: Vec<Vec<u8>>,
    /// Frames that lie apart, by their place among the blobs, where stubs stand for them.
    pub(super) apart: Vec<(usize, Vec<u8>)>,
    /// Whether it is one job, which a worker may start at once, unless its id is another's.
    pub(super) starts_at_once: bool,
}

/// What a batch holds.
#[derive(Debug)]
pub(super) enum Plan {
    /// Frames, most batches: the number and the packed names of each one's jobs.
    Frames(Vec<(usize, Vec<u8>)>),
    /// Anything else, packed.
    Items(Vec<u8>),
}

impl AddBatch {
    /// Packs one job, as [`AddBatch::pack`] does.
    pub fn one(now_ms: u64, job: NewJob<'_>) -> Self {
        if !job.options.is_plain() || job.is_large(job.may_be_in_frame()) {
            return Self::pack(now_ms, std::iter::once(job));
        }
        let mut names = Packer::with_capacity(job.name.len() + 5);
        names.str(job.name);
        let mut batch = Self {
            now_ms,
            plan: Plan::Frames(vec![(1, names.0)]),
            blobs: vec![single_frame(
                job.options.timestamp.unwrap_or(now_ms),
                &job.options.text,
                job.name,
                job.data,
            )],
            apart: Vec::new(),
            starts_at_once: true,
        };
        if batch.blobs[0].len() >= APART_BYTES {
            batch.take_long_frames_apart();
        }
        batch
    }

    /// Puts stubs in the places of frames that are long enough to lie apart.
    #[inline(never)]
    fn take_long_frames_apart(&mut self) {
        for (place, blob) in self.blobs.iter_mut().enumerate() {
            if let Some(stub) = stub_of(blob) {
                self.apart.push((place, std::mem::replace(blob, stub)));
            }
        }
    }

    /// Packs jobs: plain ones with the same options in frames, those with only a priority in runs, the others one by one. `now_ms` is the caller's clock.
    pub fn pack<'a>(now_ms: u64, jobs: impl Iterator<Item = NewJob<'a>>) -> Self {
        let jobs: Vec<NewJob<'a>> = jobs.collect();
        // frames lie apart where there is nothing else
        let are_frames = jobs.iter().any(|job| job.data.len() > MAX_BYTES) && jobs.iter().all(NewJob::may_be_in_frame);
        let starts_at_once = matches!(jobs.as_slice(), [job] if job.starts_at_once() && !job.is_large(are_frames));
        let mut builder = BatchBuilder {
            are_frames,
            ..BatchBuilder::default()
        };
        for job in jobs {
            builder.push(now_ms, job);
        }
        builder.close_frame();
        builder.close_records();
        let are_frames = builder.frames.len() == builder.count;
        let plan = if are_frames {
            Plan::Frames(builder.frames)
        } else {
            let mut plan = Packer::with_capacity(builder.items.0.len() + 5);
            plan.array(builder.count);
            plan.0.extend_from_slice(&builder.items.0);
            Plan::Items(plan.0)
        };
        let mut batch = Self {
            now_ms,
            plan,
            blobs: builder.blobs,
            apart: Vec::new(),
            starts_at_once,
        };
        if are_frames {
            batch.take_long_frames_apart();
        }
        batch
    }
}

#[derive(Default)]
struct BatchBuilder<'a> {
    // data of more than `MAX_BYTES` lie in frames, as those of all of these do
    are_frames: bool,
    items: Packer,
    count: usize,
    blobs: Vec<Vec<u8>>,
    frame: Option<(FrameBuilder, &'a JobOptions)>,
    records: Option<Records<'a>>,
    // number of jobs and packed names of each frame
    frames: Vec<(usize, Vec<u8>)>,
}

impl<'a> BatchBuilder<'a> {
    fn push(&mut self, now_ms: u64, job: NewJob<'a>) {
        let (timestamp, options) = (job.options.timestamp.unwrap_or(now_ms), job.options);
        let is_large = job.is_large(self.are_frames);
        if options.is_plain() && !is_large {
            self.plain(timestamp, job);
            return;
        }
        self.close_frame();
        let data = if is_large { "" } else { job.data };
        self.blobs.push(body_of(timestamp, options, job.name, data));
        if is_large {
            self.blobs.push(job.data.into());
        }
        let due_ms = due_ms(timestamp, options.delay_ms);
        if let Some(dedup) = &options.deduplication {
            self.close_records();
            self.deduplicated(&job, dedup, if options.delay_ms > 0 { due_ms } else { 0 });
            return;
        }
        let kind = Kind::of(options, is_large);
        if self.records.as_ref().is_some_and(|records| records.kind != kind) {
            self.close_records();
        }
        let records = self.records.get_or_insert_with(|| Records::new(kind));
        records.push(job.name, options, due_ms);
    }

    fn plain(&mut self, timestamp: u64, job: NewJob<'a>) {
        self.close_records();
        let fits = self.frame.as_ref().is_some_and(|(frame, options)| {
            (std::ptr::eq(*options, job.options) || *options == job.options) && !frame.is_full_for(job.name, job.data)
        });
        if !fits {
            self.close_frame();
        }
        let (frame, _) = self
            .frame
            .get_or_insert_with(|| (FrameBuilder::new(timestamp, &job.options.text), job.options));
        frame.push(job.name, job.data);
    }

    fn deduplicated(&mut self, job: &NewJob<'_>, dedup: &Deduplication, due_ms: u64) {
        self.items.array(7 + job.options.more()).int(-1);
        self.items
            .str(job.options.job_id.as_deref().unwrap_or(""))
            .str(job.name);
        self.items.int(due_ms as i64).int(i64::from(job.options.lifo));
        dedup.pack(&mut self.items);
        self.items.int(job.options.rank());
        job.options.pack_more(&mut self.items);
        self.count += 1;
    }

    fn close_frame(&mut self) {
        let Some((frame, _)) = self.frame.take() else { return };
        let jobs = frame.jobs();
        let (blob, names) = frame.finish();
        let mut packed = Packer::default();
        packed.column(names.iter().map(String::as_str), names.len() == 1);
        self.items.array(2).int(jobs as i64);
        self.items.0.extend_from_slice(&packed.0);
        self.frames.push((jobs, packed.0));
        self.blobs.push(blob);
        self.count += 1;
    }

    fn close_records(&mut self) {
        if let Some(records) = self.records.take() {
            records.pack(&mut self.items);
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_job_is_packed_as_a_batch_of_one() {
        for text in [
            "{}",
            r#"{"attempts":3,"timestamp":5}"#,
            r#"{"delay":5}"#,
            r#"{"jobId":"x"}"#,
        ] {
            let options = JobOptions::parse(text).expect("options");
            let data = "\"ñ\"".repeat(100);
            let job = NewJob {
                name: "a",
                data: &data,
                options: &options,
            };
            let [one, batch] = [AddBatch::one(7, job), AddBatch::pack(7, std::iter::once(job))];
            assert_eq!(format!("{one:?}"), format!("{batch:?}"));
        }
    }

    #[test]
    fn plain_jobs_share_frames_and_others_do_not() {
        let plain = JobOptions::parse("{}").expect("options");
        let delayed = JobOptions::parse(r#"{"delay":5}"#).expect("options");
        let job = |options| NewJob {
            name: "a",
            data: "1",
            options,
        };
        let jobs = (0..130).map(|i| job(if i == 100 { &delayed } else { &plain }));
        // 64, 36, the delayed one, 29
        assert_eq!(AddBatch::pack(7, jobs).blobs.len(), 4);
    }

    #[test]
    fn records_of_one_kind_are_one_item_of_the_plan() {
        let options: Vec<JobOptions> = [
            r#"{"priority":3}"#,
            r#"{"priority":1,"attempts":2}"#,
            "{}",
            r#"{"priority":1}"#,
            r#"{"priority":1,"jobId":"x"}"#,
        ]
        .iter()
        .map(|text| JobOptions::parse(text).expect("options"))
        .collect();
        let jobs = options.iter().map(|options| NewJob {
            name: "a",
            data: "1",
            options,
        });
        let batch = AddBatch::pack(7, jobs);
        let Plan::Items(plan) = batch.plan else {
            panic!("records are no frame")
        };
        // a run of two, a frame, a run of one, a record of its own
        assert_eq!(plan[..12], [0x94, 0x97, 0, 2, 0xa0, 0xa1, b'a', 0, 0, 0x92, 3, 1]);
        assert_eq!(batch.blobs.len(), 5);
    }

    #[test]
    fn long_plain_jobs_lie_in_frames_where_nothing_else_is_added() {
        let plain = JobOptions::parse("{}").expect("options");
        let delayed = JobOptions::parse(r#"{"delay":5}"#).expect("options");
        let job = |options, data| NewJob {
            name: "a",
            data,
            options,
        };
        let (long, longer) = ("d".repeat(MAX_BYTES + 1), "d".repeat(MAX_APART_BYTES + 1));
        let frames_apart = |jobs: &[NewJob<'_>]| {
            let batch = AddBatch::pack(7, jobs.iter().copied());
            (
                matches!(batch.plan, Plan::Frames(_)),
                batch.apart.len(),
                batch.blobs.len(),
            )
        };
        assert_eq!(
            frames_apart(&[job(&plain, "1"), job(&plain, &long), job(&plain, "1")]),
            (true, 1, 3)
        );
        // a record, and its data behind it
        assert_eq!(frames_apart(&[job(&plain, &longer)]), (false, 0, 2));
        assert_eq!(frames_apart(&[job(&plain, &long), job(&delayed, "1")]), (false, 0, 3));
        for data in [&long, &longer] {
            let [one, batch] = [job(&plain, data); 2];
            let [one, batch] = [AddBatch::one(7, one), AddBatch::pack(7, std::iter::once(batch))];
            assert_eq!(format!("{one:?}"), format!("{batch:?}"));
        }
    }
}
