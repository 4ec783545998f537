/** The packages of a release, made and published by the steps of the workflow. */
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Registry, RELEASE, REPOSITORY, ROOT, type Packed } from '../support/registry.js';

const run = promisify(execFile);
/** So many are there when the first run stops. */
const STOPS_AFTER = 4;

/** Packs what was built here; for platforms without a build here a file stands in, which is no addon. */
export async function packHere(folder: string): Promise<{ packed: Packed[]; standIns: string[] }> {
  const artifacts = join(folder, 'artifacts');
  mkdirSync(artifacts);
  const standIns: string[] = [];
  const places = [ROOT, process.env.MUSL_ADDONS ?? ROOT];
  for (const platform of readdirSync(join(ROOT, 'npm'))) {
    const addon = `chasquimq.${platform}.node`;
    const built = places.map((place) => join(place, addon)).find((file) => existsSync(file));
    if (built) copyFileSync(built, join(artifacts, addon));
    else {
      writeFileSync(join(artifacts, addon), 'a stand-in');
      standIns.push(`@chasquimq/addon-${platform}`);
    }
  }
  await run(process.execPath, [RELEASE, 'pack', artifacts, packagesIn(folder)], {
    env: { ...process.env, ...REPOSITORY },
  });
  const packed = JSON.parse(readFileSync(join(packagesIn(folder), 'packages.json'), 'utf8')) as Packed[];
  return { packed, standIns };
}

export const packagesIn = (folder: string): string => join(folder, 'packages');

/** Publishes, with a stop in the middle; what was seen. */
export async function publishTwice(registry: Registry, folder: string, packed: Packed[]): Promise<string[]> {
  const all = packed.map(({ name, version }) => `${name}@${version}`);
  registry.fault = (taken) => (taken === STOPS_AFTER ? 'refuse' : undefined);
  const first = await publish(registry, folder);
  demand(
    !first.ok && registry.published.length === STOPS_AFTER,
    'the first run did not stop in the middle',
    first.said,
  );

  registry.fault = () => undefined;
  const second = await publish(registry, folder);
  const passed = second.said.match(/already there, going on/g)?.length;
  demand(second.ok && passed === STOPS_AFTER, 'the second run did not go on', second.said);
  demand(registry.published.join() === all.join(), 'not all are there, or in another order', registry.published.join());

  const third = await publish(registry, folder);
  demand(third.ok && registry.published.length === all.length, 'a third run found something to do', third.said);
  return [
    `first run:  ${STOPS_AFTER} of ${all.length} published, then refused: it ended with an error`,
    `second run: ${STOPS_AFTER} already there, ${all.length - STOPS_AFTER} published`,
    `third run:  ${all.length} already there`,
  ];
}

async function publish(registry: Registry, folder: string): Promise<{ ok: boolean; said: string }> {
  const { PATH } = process.env;
  const settings = {
    npm_config_registry: registry.url,
    npm_config_fetch_retries: '0',
    npm_config_cache: join(folder, 'cache'),
  };
  const env = { PATH, HOME: folder, NPM_TOKEN: Registry.token, ...settings };
  return run(process.execPath, [RELEASE, 'publish', packagesIn(folder)], { env }).then(
    ({ stderr }) => ({ ok: true, said: stderr }),
    ({ stderr }: { stderr: string }) => ({ ok: false, said: stderr }),
  );
}

function demand(holds: boolean, what: string, said: string): asserts holds {
  if (!holds) throw new Error(`${what}:\n${said}`);
}
