/** How doctor shows what it found to people. */
import type { Impact } from '../doctor/difference.js';
import type { Examination } from '../doctor/examine.js';
import type { Finding, Place } from '../doctor/finding.js';
import type { ServerFinding } from '../doctor/server.js';
import { plain, wrapped } from './text.js';

const WIDTH = 110;
const MOST_PLACES = 5;

const HEADINGS: Readonly<Record<Impact, string>> = {
  breaking: 'Breaks: change this before you move',
  check: 'Check: this may behave differently',
  none: 'No impact',
};

/** What was read and found. */
export function examined(path: string, found: Examination, isAll: boolean): string {
  const { files, concerned, bullmq, findings, unreadable } = found;
  const asks =
    bullmq.length > 0 ? `; package.json asks for bullmq ${bullmq.map((each) => plain(each)).join(' and ')}` : '';
  const lines = [
    `${plain(path)}: ${files} ${files === 1 ? 'file' : 'files'} with code, ${concerned} of them with queues${asks}`,
    '',
  ];
  const seen = findings.filter(({ kind, places }) => kind !== 'difference' || places.length > 0);
  for (const impact of ['breaking', 'check', 'none'] as const) {
    const some = seen.filter((finding) => finding.impact === impact);
    if (some.length === 0) continue;
    if (impact === 'none' && !isAll) lines.push(`${some.length} findings without an impact: --all shows them`, '');
    else lines.push(HEADINGS[impact], '', ...some.map(described), '');
  }
  lines.push(...unseen(findings, isAll));
  if (unreadable.length > 0) lines.push('Could not be read', '', ...unreadable.map((each) => `  ${plain(each)}`), '');
  return lines.join('\n');
}

function described({ id, title, text, places }: Finding): string {
  const shown = places.slice(0, MOST_PLACES).map(placeText);
  const rest = places.length - shown.length;
  const where = places.length === 0 ? [] : [`      ${shown.join('  ')}${rest > 0 ? `  and ${rest} more` : ''}`];
  return [`  ${plain(title)}  [${plain(id)}]`, wrapped(plain(text), WIDTH, '      '), ...where].join('\n');
}

function placeText({ file, line }: Place): string {
  return `${plain(file)}:${line}`;
}

/** Differences that show in no code: everyone should know those that matter. */
function unseen(findings: readonly Finding[], isAll: boolean): string[] {
  const some = findings.filter(
    ({ kind, places, impact }) => kind === 'difference' && places.length === 0 && (isAll || impact !== 'none'),
  );
  if (some.length === 0) return [];
  const lines = isAll ? some.map(described) : some.map(({ id, title }) => `  ${plain(title)}  [${plain(id)}]`);
  const more = isAll ? '' : ' (--all tells them in full)';
  return [`Differences that no reader of code can see${more}`, '', ...lines, ''];
}

const MARKS: Readonly<Record<ServerFinding['verdict'], string>> = {
  unfit: 'does not fit',
  risk: 'risk',
  hint: 'hint',
  fit: 'fits',
};

/** Whether the server fits. */
export function judged(
  server: { shown: string; findings: readonly ServerFinding[]; error?: string } | undefined,
): string {
  if (!server) return 'Server: none was asked; name one by --url or REDIS_URL\n';
  if (server.error !== undefined) return `Server ${server.shown}: not asked, see below\n`;
  const width = Math.max(...Object.values(MARKS).map((mark) => mark.length));
  const lines = server.findings.map(({ verdict, text }) => `  ${MARKS[verdict].padEnd(width)}  ${plain(text)}`);
  return [`Server ${server.shown}`, '', ...lines, ''].join('\n');
}

/** What to grant. */
export function granted(rule: readonly string[]): string {
  const text = wrapped(`ACL SETUSER jobs ${rule.join(' ')}`, WIDTH, '  ');
  return (
    "To grant, typed on one line; inspect and watch without a queue's name need +scan, too. Where users do not trust\n" +
    'each other, without +function|load +eval +evalsha: chasquimq library load brings the functions there\n' +
    `\n${text}\n`
  );
}

/** In a line what comes of it. */
export function verdict({ findings, concerned }: Examination): string {
  const number = (impact: Impact): number =>
    findings.filter((finding) => finding.impact === impact && finding.places.length > 0).length;
  if (concerned === 0) return 'No file imports bullmq: is the path right?\n';
  return `Result: ${number('breaking')} to change, ${number('check')} to check, ${number('none')} without an impact\n`;
}
