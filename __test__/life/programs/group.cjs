// A processor that is a file: gives the group of its job, twice.
module.exports = async (job) => `${job.gid} ${job.opts.group.id}`;
