/** The children of one worker: those that run a job, and those that wait for one. */
import type { SandboxedOptions } from '../options/worker.js';
import { Child, entryFile } from './child.js';
import type { Job } from '../job/job.js';

export class ChildPool {
  /** Children that run a job, by their number. */
  retained: { [pid: number]: Child } = {};
  /** Children that wait for a job, by the file of their processor. */
  free: { [file: string]: Child[] } = {};
  /** Set once the pool is closed. */
  private closed = false;

  /** @throws Error where no child could start: better now than with each job */
  constructor(private readonly opts: SandboxedOptions) {
    entryFile();
  }

  /**
   * A child that has loaded the processor and runs no job, for this one, or a batch that it is the first of.
   * @throws (rejects) as `Child.init`
   */
  async retain(file: string, job?: Job): Promise<Child> {
    let child = this.getFree(file).pop();
    while (child?.hasProcessExited() || child?.killed) child = this.getFree(file).pop();
    if (child) return this.keepFor(child, job);
    child = this.keepFor(new Child(file, this.opts), job);
    try {
      await child.init();
    } catch (error) {
      // who closes the pool ends what loads, as does a job whose time is over
      if (!this.closed && !child.killed) console.error(error);
      this.remove(child);
      void child.kill();
      throw error;
    }
    if (child.hasProcessExited()) {
      this.remove(child);
      throw new Error('Child exited before it could be retained');
    }
    return child;
  }

  private keepFor(child: Child, job: Job | undefined): Child {
    child.job = job;
    this.retained[child.pid] = child;
    return child;
  }

  /** The child's job has ended: it may have another, if it can. */
  release(child: Child): void {
    this.remove(child);
    child.job = undefined;
    if (!child.killed && !child.hasProcessExited() && !this.closed) this.getFree(child.processFile).push(child);
  }

  remove(child: Child): void {
    delete this.retained[child.pid];
    const free = this.getFree(child.processFile);
    const at = free.indexOf(child);
    if (at >= 0) free.splice(at, 1);
  }

  async kill(child: Child, signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): Promise<void> {
    this.remove(child);
    await child.kill(signal);
  }

  /** Kills the child that has this job. False when none has. */
  killRunning(job: Job): boolean {
    const child = Object.values(this.retained).find((each) => each.job === job);
    if (child) void this.kill(child);
    return child !== undefined;
  }

  /** Ends every child, after its job, or at once. */
  async clean(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    this.closed = true;
    const children = [...Object.values(this.retained), ...this.getAllFree()];
    this.retained = {};
    this.free = {};
    await Promise.all(children.map((child) => child.kill(signal)));
  }

  getFree(file: string): Child[] {
    return (this.free[file] ??= []);
  }

  getAllFree(): Child[] {
    return Object.values(this.free).flat();
  }
}
