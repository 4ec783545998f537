import type { Impact } from './difference.js';
import type { Use } from './uses.js';

export interface Place {
  readonly file: string;
  readonly line: number;
}

// what stands in for the paid edition is `chasquimq/v5`
const V5 = /^(chasquimq\/v5|@taskforcesh\/bullmq-pro)$/;
const PLAIN = /^(bullmq|chasquimq|@nestjs\/bullmq)$/;

/** Something that somebody who moves should know. Field names are part of doctor's `--json` output. */
export interface Finding {
  readonly kind: 'difference' | 'option' | 'idiom' | 'export' | 'tool' | 'keys';
  /** Stable. */
  readonly id: string;
  readonly impact: Impact;
  readonly title: string;
  /** What happens, and what to do. */
  readonly text: string;
  /** Where; none for a difference that no reader of code can see. */
  readonly places: readonly Place[];
}

/** What a file does that concerns a queue. */
export interface FileUses {
  readonly path: string;
  readonly uses: readonly Use[];
}

/** Where uses are that fit. */
export function placesOf(files: readonly FileUses[], fits: (use: Use, file: FileUses) => boolean): Place[] {
  return files.flatMap((file) => {
    const lines = new Set(file.uses.filter((use) => fits(use, file)).map(({ line }) => line));
    return [...lines].map((line) => ({ file: file.path, line }));
  });
}

/**
 * Files that have the classes of BullMQ 5 by their import. One without an import of its own has them where no file has others.
 */
export function filesOfV5(files: readonly FileUses[]): ReadonlySet<FileUses> {
  const imports = ({ uses }: FileUses, wanted: RegExp): boolean =>
    uses.some(({ kind, name }) => kind === 'import' && wanted.test(name));
  const isMixed = files.some((file) => imports(file, PLAIN));
  return new Set(files.filter((file) => imports(file, V5) || (!isMixed && !imports(file, PLAIN))));
}
