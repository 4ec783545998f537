import { readFileSync } from 'node:fs';

/** The package's version: from `src/tools/cli` and from `dist/cjs/tools/cli` its manifest is in another place. */
export function ownVersion(): string {
  for (const path of ['../../../package.json', '../../../../package.json']) {
    const found = versionAt(new URL(path, import.meta.url));
    if (found !== undefined) return found;
  }
  return 'unknown';
}

function versionAt(url: URL): string | undefined {
  try {
    const { name, version } = JSON.parse(readFileSync(url, 'utf8')) as { name?: string; version?: string };
    return name === undefined ? undefined : version;
  } catch {
    return undefined;
  }
}
