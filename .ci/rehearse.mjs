// Rehearses a release on this machine: `npm run release -- --dry-run`. What is built here is published by the workflow's own steps into
// a registry of this machine, and installed from it: __test__/rehearsal/main.ts.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { build } from './build.mjs';
import { withRedis } from './redis.mjs';
import { setup, setupClients } from './setup.mjs';
import { ask, root, run, say } from './step.mjs';

const FOLDER = join(root, 'target/rehearsal');

export async function rehearse() {
  await setup();
  await setupClients();
  await build();
  const lack = await buildForMusl().then(
    (reason) => reason,
    (error) => error.message,
  );
  if (lack) say(`  no addon for musl: ${lack}`);
  await withRedis((url) =>
    run('rehearsal', process.execPath, ['--import', 'tsx', '__test__/rehearsal/main.ts'], {
      env: { REDIS_URL: url, MUSL_ADDONS: join(FOLDER, 'musl'), MUSL_LACK: lack ?? '' },
    }),
  );
}

/** Builds the addon for this machine's processor and musl, as the workflow does; what keeps it from that, if anything. */
async function buildForMusl() {
  if (process.platform !== 'linux') return `this is ${process.platform}`;
  const target = `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-unknown-linux-musl`;
  if (!(await ask('rustup', ['--version']))) return 'no rustup, which brings the target';
  const venv = join(root, 'target/zig');
  if (!existsSync(join(venv, 'bin/cargo-zigbuild'))) {
    await run('install zig', 'python3', ['-m', 'venv', venv], { quiet: true });
    await run('install zig', join(venv, 'bin/pip'), ['install', 'ziglang', 'cargo-zigbuild'], { quiet: true });
  }
  const zig = await ask(join(venv, 'bin/python'), ['-c', 'import ziglang; print(ziglang.__path__[0])']);
  await run('install the target', 'rustup', ['target', 'add', target], { quiet: true });
  const crate = ['--manifest-path', 'crates/chasquimq-node/Cargo.toml', '--platform', '--release', '--no-const-enum'];
  const files = ['--output-dir', join(FOLDER, 'musl'), '--js', 'index.cjs', '--dts', 'index.d.ts'];
  await run('build the addon for musl', 'napi', ['build', ...crate, ...files, '--target', target, '--cross-compile'], {
    env: { PATH: [join(venv, 'bin'), zig, process.env.PATH].join(':') },
    quiet: true,
  });
  return undefined;
}
