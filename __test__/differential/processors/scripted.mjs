// The processor of sandboxed workers: does what the script in the job's data says for this start (program.ts has the forms).
const moves = {
  moveToWait: ['moveToWait', 'WaitingError', 'bullmq:movedToWait'],
  moveToDelayed: ['moveToDelayed', 'DelayedError', 'bullmq:movedToDelayed'],
};

const named = (name, message) => Object.assign(new Error(message), { name });
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function decode(value) {
  if (value === null || typeof value !== 'object' || !('$' in value)) return value;
  const [kind, argument] = value.$.split(':');
  return kind === 'long' ? 'x'.repeat(Number(argument)) : kind === 'number' ? Number(argument) : undefined;
}

function thrown({ what, text = what }) {
  if (what === 'unrecoverable' || what === 'named') return named('UnrecoverableError', text);
  if (what === 'text') return text;
  if (what === 'object') return { message: text, code: 7 };
  if (what === 'frozen') return Object.freeze(new Error(text));
  return new Error(text);
}

export default async function scripted(job, token) {
  const script = job.data.script?.[job.attemptsStarted - 1] ?? [];
  for (const action of script) {
    if (action.do === 'wait') await sleep(action.ms);
    else if (action.do === 'return') return decode(action.value);
    else if (action.do === 'throw') throw thrown(action);
    else if (action.do === 'call') await job[action.method](...action.args.map(decode));
    else if (action.do in moves) {
      const [method, name, message] = moves[action.do];
      await (method === 'moveToDelayed'
        ? job.moveToDelayed(Date.now() + decode(action.ms), token)
        : job.moveToWait(token));
      throw named(name, message);
    }
  }
  return `done ${job.name}`;
}
