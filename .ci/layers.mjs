// Fails when files of src/ import each other in a circle, or one imports from a layer above its own. Type imports count.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root, say, Stop } from './step.mjs';

/** The folders of src/, from the lowest layer up: a file imports from its own layer and those below. */
const LAYERS = [
  ['errors'],
  ['native'],
  ['types', 'options'],
  ['telemetry'],
  ['add'],
  ['connection'],
  ['job'],
  ['flow'],
  ['queue', 'scheduler'],
  ['events', 'sandbox'],
  ['worker'],
  ['v5'],
  ['tools/migrate', 'tools/library'],
  ['tools/doctor'],
  ['tools/cli'],
];

const inside = (folders) => `^src/(${folders.join('|')})/`;
/** What the command line imports: itself, of the facade what users import, and, as help does without the addon, the states that a filter knows. */
const USED_BY_CLI = '^src/tools/|^src/index|^src/options/job-filter';
const forbid = (name, from, to) => ({ name, severity: 'error', from, to });

const RULES = [
  forbid('no circles', {}, { circular: true }),
  ...LAYERS.map((layer, i) =>
    forbid(
      `${layer.join(' and ')} know nothing above`,
      { path: inside(layer) },
      // the command line stands on what users import
      {
        path: '^src/',
        pathNot: layer[0] === 'tools/cli' ? USED_BY_CLI : [inside(LAYERS.slice(0, i + 1).flat()), '^src/index'],
      },
    ),
  ),
  forbid(
    'index.ts is imported by the command line and by v5 alone',
    { pathNot: [inside(['tools/cli']), '^src/v5/index'] },
    { path: '^src/index' },
  ),
  forbid(
    'what users import knows nothing of the tools',
    { path: '^src/(v5/)?index' },
    { path: inside(['tools']), reachable: true },
  ),
  forbid('types know only types', { path: inside(['types']) }, { dependencyTypesNot: ['type-only'] }),
  forbid(
    'of queue/ the folders beside it know QueueBase alone',
    { path: '^src/.+/', pathNot: inside(['queue', 'v5']) },
    { path: inside(['queue']), pathNot: '/queue-base' },
  ),
  forbid('native/ alone loads the addon', { pathNot: inside(['native']) }, { path: '^(\\.\\./)*index\\.c?js$' }),
  forbid(
    'a sandboxed child loads no addon',
    { path: '^src/sandbox/main' },
    { path: '^src/native/addon', reachable: true },
  ),
];

export async function checkLayers() {
  const { cruise } = await import('dependency-cruiser');
  const known = ['index.ts', ...LAYERS.flat().map((layer) => layer.split('/')[0])];
  const strangers = readdirSync(join(root, 'src')).filter((name) => !known.includes(name));
  if (strangers.length > 0) throw new Stop(`src/${strangers[0]} is in none of the layers of .ci/layers.mjs`);
  const { output } = await cruise(['src'], {
    baseDir: root,
    ruleSet: { forbidden: RULES },
    validate: true,
    tsPreCompilationDeps: true,
  });
  const { violations, totalCruised } = output.summary;
  const lines = violations.map(({ rule, from, to, cycle }) => {
    const path = cycle ? cycle.map(({ name }) => name) : [to];
    return `  ${rule.name}: ${[from, ...path].join(' -> ')}`;
  });
  if (lines.length > 0) throw new Stop(`layers of src/:\n${lines.join('\n')}`);
  say(`> layers: as they should be in ${totalCruised} files`);
}
