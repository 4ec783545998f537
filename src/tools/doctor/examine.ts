/** What a code base meets when it moves from BullMQ. */
import type { Detect, Difference, Impact } from './difference.js';
import { differences } from './differences.js';
import { missingExportsIn } from './exports.js';
import type { CodeBase } from './files.js';
import { placesOf, type FileUses, type Finding } from './finding.js';
import { idiomsIn } from './idioms.js';
import { givesOption, optionsIn } from './options.js';
import { bullmqOf, toolsIn } from './tools.js';
import { usesOf, type Use } from './uses.js';

export interface Examination {
  /** Files with code. */
  readonly files: number;
  /** Those that import BullMQ or ChasquiMQ, or a file that does. */
  readonly concerned: number;
  /** Ranges of BullMQ that manifests ask for. */
  readonly bullmq: readonly string[];
  /** By impact, the worst first. */
  readonly findings: readonly Finding[];
  readonly unreadable: readonly string[];
}

const ORDER: readonly Impact[] = ['breaking', 'check', 'none'];

/** Modules whose users have queues. */
const HAS_QUEUES = /^(bullmq|@taskforcesh\/bullmq-pro|chasquimq|@nestjs\/bullmq)(\/|$)/;

export function examine({ files, manifests, unreadable }: CodeBase): Examination {
  const read = files.map(({ path, text }) => ({ path, uses: usesOf(text) }));
  const concerned = withImporters(read);
  // an option that is a difference is told once
  const told = new Set(
    differences.flatMap(({ detect = [] }) => detect.map((each) => ('option' in each ? `option-${each.option}` : ''))),
  );
  const findings = [
    ...differences.flatMap((difference) => asFinding(difference, concerned)),
    ...idiomsIn(concerned),
    ...missingExportsIn(concerned),
    ...optionsIn(concerned).filter(({ id }) => !told.has(id)),
    ...toolsIn(manifests, read),
  ];
  findings.sort((one, other) => ORDER.indexOf(one.impact) - ORDER.indexOf(other.impact));
  return { files: files.length, concerned: concerned.length, bullmq: bullmqOf(manifests), findings, unreadable };
}

/** Files that have queues by an import of their own, and those that import one of these by its path. */
function withImporters(files: readonly FileUses[]): FileUses[] {
  const imports = ({ uses }: FileUses): string[] =>
    uses.filter(({ kind }) => kind === 'import').map(({ name }) => name);
  const own = files.filter((file) => imports(file).some((name) => HAS_QUEUES.test(name)));
  const names = new Set(own.map(({ path }) => stem(path)));
  return files.filter(
    (file) => own.includes(file) || imports(file).some((name) => names.has(resolved(file.path, name))),
  );
}

/** A path without its ending, and without `index`. */
function stem(path: string): string {
  return path
    .replaceAll('\\', '/')
    .replace(/\.[cm]?[jt]sx?$/, '')
    .replace(/(^|\/)index$/, '');
}

/** What a relative import of a file means; of any other nothing that is a file. */
function resolved(from: string, name: string): string {
  if (!name.startsWith('.')) return '\0';
  const parts = from.replaceAll('\\', '/').split('/').slice(0, -1);
  for (const part of name.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '.' && part !== '') parts.push(part);
  }
  return stem(parts.join('/'));
}

function asFinding(difference: Difference, files: readonly FileUses[]): Finding[] {
  const { id, impact, title, bullmq, chasquimq, detect = [] } = difference;
  const places = placesOf(files, (use) => detect.some((pattern) => isFound(pattern, use)));
  if (detect.length > 0 && places.length === 0) return [];
  return [{ kind: 'difference', id, impact, title, text: `Here: ${chasquimq} BullMQ: ${bullmq}`, places }];
}

function isFound(pattern: Detect, use: Use): boolean {
  // what is no method is imported before it is called
  if ('call' in pattern) return (use.kind === 'call' || use.kind === 'name') && use.name === pattern.call;
  if ('option' in pattern) {
    return givesOption(use, pattern.option) && (pattern.to === undefined || pattern.to === use.to);
  }
  return use.kind === 'event' && use.name === pattern.event;
}
