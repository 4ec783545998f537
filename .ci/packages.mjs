// Brings programs of the system through its package manager, where that needs no answer from anyone.
import { ask, run, say } from './step.mjs';

const MANAGERS = {
  'apt-get': { refresh: ['update'], install: ['install', '-y', '--no-install-recommends'] },
  apk: { install: ['add', '--no-cache'] },
  dnf: { install: ['install', '-y'] },
  pacman: { install: ['-Sy', '--noconfirm'] },
  brew: { install: ['install'] },
};

/**
 * Installs one package after the other until `find` finds what is wanted, and resolves with that; null where it can't be had. `names` are its
 * packages by manager; a manager that has none is passed over.
 */
export async function installUntil(find, names) {
  for (const [manager, { refresh, install }] of Object.entries(MANAGERS)) {
    if (!names[manager] || !(await ask(manager, ['--version']))) continue;
    const asRoot = await becomeRoot(manager);
    if (!asRoot) return null;
    const attempt = (args) => {
      const [command, ...rest] = [...asRoot, manager, ...args];
      const env = { DEBIAN_FRONTEND: 'noninteractive' };
      return run([manager, ...args].join(' '), command, rest, { quiet: true, env });
    };
    // A mirror that does not answer is no reason to stop: the install says whether it mattered.
    if (refresh) await attempt(refresh).catch((error) => say(error.message));
    for (const name of names[manager]) {
      await attempt([...install, name]).catch((error) => say(error.message));
      const found = await find();
      if (found) return found;
    }
  }
  return null;
}

// The words that go before a command that has to run as root, or null where that would ask for a password.
async function becomeRoot(manager) {
  if (manager === 'brew' || process.getuid?.() === 0) return [];
  return (await ask('sudo', ['-n', 'true'])) === null ? null : ['sudo', '-n', 'DEBIAN_FRONTEND=noninteractive'];
}
