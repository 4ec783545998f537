/** Counts completions. `done` resolves in the turn in which the last of `expected` is counted. */
export class Tally {
  readonly done: Promise<void>;
  private resolve: () => void = () => undefined;
  private counted = 0;

  constructor(private readonly expected: number) {
    this.done = new Promise<void>((resolve) => {
      this.resolve = resolve;
    });
  }

  get count(): number {
    return this.counted;
  }

  readonly add = (): void => {
    this.counted += 1;
    if (this.counted === this.expected) this.resolve();
  };
}
