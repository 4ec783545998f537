exports.default = async (job) => ['default', job.data];
