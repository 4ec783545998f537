/**
 * A method, option or class of BullMQ that ChasquiMQ does not have yet. Nothing of the call was carried out.
 */
export class NotSupportedError extends Error {
  /** What is missing, as the user spelled it: `Queue.drain`, `the job option "priority"`, ... */
  readonly feature: string;

  /** @param instead what to do */
  constructor(feature: string, instead?: string) {
    super(`${feature} is not supported by ChasquiMQ yet${instead === undefined ? '' : `: ${instead}`}`);
    this.name = 'NotSupportedError';
    this.feature = feature;
  }
}
