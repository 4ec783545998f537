/** Options that have no effect here, or are refused. */
import { NO_EFFECT, REFUSED } from '../../connection/known-options.js';
import { placesOf, type FileUses, type Finding } from './finding.js';
import type { Use } from './uses.js';

/** To what connection options are given. */
const CONNECTION = /connection|redis|cluster|sentinel/i;

const OF_CONNECTIONS = new Set([...NO_EFFECT, ...Object.keys(REFUSED)]);

/** Whether the use gives that option: one of connections only counts where it is given to one, for its name may be anything's. */
export function givesOption(use: Use, name: string): boolean {
  if (use.kind !== 'option' || use.name !== name) return false;
  return !OF_CONNECTIONS.has(name) || CONNECTION.test(use.of);
}

/** Options of a connection that are on the list for another reason than that nothing comes of them. */
const HAVE_A_MEANING = new Set(['url', 'skipVersionCheck', 'enableOfflineQueue', 'retryStrategy']);

/** Options of other things that nothing comes of. */
const OF_OTHERS: readonly { readonly name: string; readonly of: string; readonly why: string }[] = [
  { name: 'runRetryDelay', of: 'Worker', why: 'the engine connects again by itself, and fetches as soon as it can' },
  { name: 'blockingConnection', of: 'Queue and Worker', why: 'the engine knows which of its connections wait' },
  { name: 'repeatKeyHashAlgorithm', of: 'settings', why: 'job schedulers have the ids that they are given' },
];

/** What is found of them in a code base. */
export function optionsIn(files: readonly FileUses[]): Finding[] {
  const placesWith = (name: string) => placesOf(files, (use) => givesOption(use, name));
  const found = [
    ...Object.keys(REFUSED).map((name) => ({
      id: `option-${name}`,
      impact: 'breaking' as const,
      title: `the connection option \`${name}\` is refused`,
      text: 'The engine cannot do it, and says so rather than leave it out: remove it. (A value that asks for nothing is taken.)',
      places: placesWith(name),
    })),
    {
      id: 'option-retryStrategy',
      impact: 'check' as const,
      title: 'the connection option `retryStrategy` only says when to give up',
      text: 'The engine connects again after 50 ms, then after twice as long, up to 500 ms, whatever number it gives; anything else ends it.',
      places: placesWith('retryStrategy'),
    },
    ...NO_EFFECT.filter((name) => !HAVE_A_MEANING.has(name)).map((name) => ({
      id: `option-${name}`,
      impact: 'none' as const,
      title: `the connection option \`${name}\` has no effect`,
      text: 'The engine owns its connections. It may be left out.',
      places: placesWith(name),
    })),
    ...OF_OTHERS.map(({ name, of, why }) => ({
      id: `option-${name}`,
      impact: 'none' as const,
      title: `the option \`${name}\` of ${of} has no effect`,
      text: `It may be left out: ${why}.`,
      places: placesWith(name),
    })),
  ];
  return found.filter(({ places }) => places.length > 0).map((finding) => ({ kind: 'option', ...finding }));
}
