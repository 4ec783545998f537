let hasWarned = false;

/**
 * Says, once a process, what BullMQ 6.7 passes over: `add` with `repeat` adds one job. `--disable-warning=CHASQUIMQ_REPEAT_IGNORED`
 * silences it.
 */
export function warnOfRepeat(): void {
  if (hasWarned) return;
  hasWarned = true;
  process.emitWarning(
    'queue.add() with the option "repeat" adds one job, which does not repeat, as in BullMQ 6: call ' +
      'queue.upsertJobScheduler(), or import from "chasquimq/v5", where it repeats as in BullMQ 5',
    { type: 'ChasquiMQWarning', code: 'CHASQUIMQ_REPEAT_IGNORED' },
  );
}
