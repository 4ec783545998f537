// Keeps how long each test file took, in target/test-times.json, and shows the slowest.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './step.mjs';

const FILE = join(root, 'target', 'test-times.json');
const SHOWN = 20;

export default class Times {
  onTestRunEnd(modules) {
    const times = modules.map(timeOf).sort((one, other) => other.seconds - one.seconds);
    mkdirSync(join(root, 'target'), { recursive: true });
    writeFileSync(FILE, `${JSON.stringify(times, null, 2)}\n`);
    if (times.length < SHOWN) return;
    const sum = times.reduce((seconds, each) => seconds + each.seconds, 0);
    const rows = times
      .slice(0, SHOWN)
      .map(({ seconds, suite, file }) => `  ${seconds.toFixed(1).padStart(6)} s  ${suite}  ${file}`);
    console.log(
      [`The slowest ${SHOWN} of ${times.length} files, which took ${sum.toFixed(0)} s in sum:`, ...rows, ''].join('\n'),
    );
  }
}

function timeOf(module) {
  const { collectDuration, duration, environmentSetupDuration, prepareDuration, setupDuration } = module.diagnostic();
  const ms = collectDuration + duration + environmentSetupDuration + prepareDuration + setupDuration;
  return { suite: module.project.name, file: relative(root, module.moduleId), seconds: Math.round(ms) / 1_000 };
}
