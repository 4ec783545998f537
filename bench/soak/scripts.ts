/** Which transition a function or a script is. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const TARGET = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL('../../target', import.meta.url));

let names: Map<string, string> | undefined;

/** The file in a crate's `lua/` of which this is the function's name, or the script's hash. */
export function transitionOf(script: string): string | undefined {
  return /^chasquimq_[0-9a-f]+_(\w+)$/.exec(script)?.[1] ?? scriptNames().get(script);
}

/** Scripts by their hash, as `crates/chasquimq-build` has written them down: those of earlier builds do no harm. */
function scriptNames(): Map<string, string> {
  if (names) return names;
  names = new Map();
  for (const path of builtScripts()) {
    const built = readFileSync(path, 'utf8').matchAll(/Script \{ name: "(\w+)",.* sha: "(\w+)"/g);
    for (const [, name, sha] of built) names.set(sha, name);
  }
  return names;
}

function builtScripts(): string[] {
  const targets = [TARGET, ...readdirSync(TARGET).map((name) => `${TARGET}/${name}`)];
  const builds = targets.map((target) => `${target}/release/build`).filter((path) => existsSync(path));
  const crates = builds.flatMap((build) => readdirSync(build).map((name) => `${build}/${name}/out/scripts.rs`));
  return crates.filter((path) => existsSync(path));
}
