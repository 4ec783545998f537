/** Every sample of a run: `benchmarks/<name>.json.gz`, beside the tables in `<name>.md`. Programs read it, people read those. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { UsageError } from './ending.js';

export const FOLDER = fileURLToPath(new URL('../benchmarks/', import.meta.url));
const SUFFIX = '.json.gz';

/** @returns the path written */
export function writeSamples(name: string, report: unknown): string {
  mkdirSync(FOLDER, { recursive: true });
  const path = `${FOLDER}${name}${SUFFIX}`;
  writeFileSync(path, packed(report));
  return path;
}

export function readSamples<T>(name: string): T {
  const path = `${FOLDER}${name}${SUFFIX}`;
  if (!existsSync(path)) throw new UsageError(`there is no benchmarks/${name}${SUFFIX}`);
  return unpacked<T>(readFileSync(path));
}

/** The names of the reports whose samples are there. */
export function namesOfSamples(): string[] {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith(SUFFIX));
  return files.map((file) => file.slice(0, -SUFFIX.length));
}

export function packed(report: unknown): Buffer {
  return gzipSync(`${JSON.stringify(report)}\n`, { level: 9 });
}

export function unpacked<T>(bytes: Buffer): T {
  return JSON.parse(gunzipSync(bytes).toString()) as T;
}
