import { NotSupportedError } from './errors/not-supported-error.js';

/** Not there yet. Source: BullMQ 6.7.0 `FlowProducer`. */
export class FlowProducer {
  /** @throws NotSupportedError always */
  constructor(..._args: unknown[]) {
    throw new NotSupportedError('FlowProducer');
  }
}
