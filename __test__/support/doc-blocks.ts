import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './registry.js';

/** A block of code on a page. */
export interface Block {
  language: string;
  text: string;
  /** Of the page, from 1. */
  line: number;
  /** The name that its first line gives it: `// worker.mjs`. */
  file?: string;
}

/** The pages that people read: README.md and all of docs/, from the package's root. */
export function pages(): string[] {
  const docs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).map((path) => `docs/${path}`);
  return ['README.md', ...docs.filter((path) => path.endsWith('.md') && isWritten(path)).sort()];
}

/** `docs/api` is made from the sources, and `.vitepress` holds what is built. */
const isWritten = (page: string): boolean => !/^docs\/(api|\.vitepress)\//.test(page);

export const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

export function blocksOf(page: string): Block[] {
  const text = textOf(page);
  return [...text.matchAll(/^```([\w-]*)\n([^]*?)^```$/gm)].map(({ 1: language = '', 2: code = '', index }) => {
    const [, file] = /^\/\/ ([\w-]+\.[cm]?[jt]s)$/m.exec(code.split('\n', 1)[0] ?? '') ?? [];
    return { language, text: code, line: text.slice(0, index).split('\n').length, ...(file && { file }) };
  });
}
