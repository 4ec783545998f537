/** Programs that failed once, shrunk, which are run for good. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Program } from './program.js';

const FOLDER = new URL('./kept/', import.meta.url);

export function keptPrograms(): Program[] {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.json'));
  return files.sort().map((file) => JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as Program);
}

/** @returns its path within this folder */
export function keep(program: Program): string {
  const file = `${program.name.replace(/\W+/g, '-')}.json`;
  writeFileSync(new URL(file, FOLDER), `${JSON.stringify(program, undefined, 2)}\n`);
  return `kept/${file}`;
}
