/** Says why there is no addon to load, which the loader's own message does not: it knows no platform, and one reason. */
import { isNativeError } from 'node:util/types';

/** What is built and published, by the name of its package behind `@chasquimq/addon-`. */
export const BUILDS = [
  'linux-x64-gnu',
  'linux-x64-musl',
  'linux-arm64-gnu',
  'linux-arm64-musl',
  'darwin-x64',
  'darwin-arm64',
  'win32-x64-msvc',
];

/** What to do, where an error of the loader is of this kind. */
const REMEDIES: [RegExp, string][] = [
  [/addons is disabled/i, 'Run Node without --no-addons, and with --allow-addons beside --permission.'],
  [
    /GLIBC(XX)?_[\d.]+/,
    'The C library of this system is too old for the addon: use a newer base image, or a musl one.',
  ],
  [/ffi/i, 'Run Deno with --allow-ffi.'],
];

/** The error for a load that failed, with the loader's error as its cause. */
export function noAddon(cause: unknown): Error {
  const { name, wanted } = platform();
  const reasons = messagesOf(cause).filter((message) => !/^Cannot find (module|package)/.test(message));
  const remedies = REMEDIES.filter(([kind]) => reasons.some((reason) => kind.test(reason))).map(([, text]) => text);
  const lines = [
    `ChasquiMQ cannot load its native addon on ${name}, ${runtime()}.`,
    ...(reasons.length > 0 ? reasons : [absence(wanted)]),
    ...remedies,
    `There are builds for ${BUILDS.join(', ')}.`,
  ];
  return Object.assign(new Error(lines.join('\n'), { cause }), { code: 'ERR_NO_ADDON' });
}

function absence(wanted: string): string {
  if (!BUILDS.includes(wanted)) return 'There is no build for this platform.';
  return (
    `The package @chasquimq/addon-${wanted} is not installed. It is an optional dependency: install for the platform that the ` +
    'program runs on, without leaving optional dependencies out (--omit=optional, --no-optional).'
  );
}

/** What each try to load something said, the first one first; the outermost error only sums up. */
function messagesOf(error: unknown): string[] {
  const messages: string[] = [];
  // under Jest they are errors of its realm
  let cause = isNativeError(error) ? error.cause : undefined;
  for (; isNativeError(cause); cause = cause.cause) messages.unshift(cause.message);
  if (messages.length === 0) messages.push(isNativeError(error) ? error.message : String(error));
  return messages;
}

/** What people call the platform, and the name of the build that it wants. */
function platform(): { name: string; wanted: string } {
  const name = `${process.platform}-${process.arch}`;
  if (process.platform === 'win32') return { name, wanted: `${name}-msvc` };
  if (process.platform !== 'linux') return { name, wanted: name };
  const glibc = glibcVersion();
  return glibc
    ? { name: `${name} (glibc ${glibc})`, wanted: `${name}-gnu` }
    : { name: `${name} (musl)`, wanted: `${name}-musl` };
}

/** As Node reports it; undefined with another C library. */
function glibcVersion(): string | undefined {
  const report = process.report as NodeJS.ProcessReport | undefined;
  if (!report) return 'unknown';
  Object.assign(report, { excludeNetwork: true }); // looking up names of peers may take seconds
  const { header } = report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime;
}

function runtime(): string {
  const { bun, deno } = process.versions;
  if (bun) return `Bun ${bun}`;
  return deno ? `Deno ${deno}` : `Node ${process.version}`;
}
