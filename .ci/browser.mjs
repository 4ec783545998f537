// Brings the Chromium that tests of dashboards look at pages with, as redis.mjs brings the server.
import { existsSync } from 'node:fs';
import { installUntil } from './packages.mjs';
import { say, Stop } from './step.mjs';

const EXECUTABLES = [
  ...['chromium', 'chromium-browser', 'google-chrome'].map((name) => `/usr/bin/${name}`),
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];
const PACKAGES = {
  'apt-get': ['chromium', 'chromium-browser'],
  apk: ['chromium'],
  dnf: ['chromium'],
  pacman: ['chromium'],
};
/** The tests that need it. */
const FILES = ['__test__/clients/bull-board.pages.test.ts'];

const find = () => process.env.CHROMIUM ?? EXECUTABLES.find(existsSync);

/**
 * Resolves with the path of a Chromium; with undefined where none can be had, once it has said which tests are left out for that, and how to have
 * them. CI leaves none out.
 */
export async function needBrowser() {
  const found = find() ?? (await installUntil(async () => find(), PACKAGES));
  if (found) return found;
  const words = `there is no Chromium, and none could be installed. Left out: ${FILES.join(', ')}.
  To run it: install one (Debian, Ubuntu: sudo apt-get install chromium), or name its path in CHROMIUM`;
  if (process.env.CI) throw new Stop(words);
  say(`LEFT OUT: ${words}`);
  return undefined;
}

/** What vitest is told where there is none. */
export const withoutBrowser = FILES.map((file) => `--exclude=${file}`);
