/** How figures and texts are shown to people. */

const UNITS: readonly (readonly [string, number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
];

/** A time in its two largest units: `3h 5m`, `12s`, `40ms`. */
export function duration(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  const at = UNITS.findIndex(([, size]) => whole >= size);
  const largest = UNITS[at];
  if (!largest) return `${whole}ms`;
  const [unit, size] = largest;
  const next = UNITS[at + 1];
  const rest = next ? Math.floor((whole % size) / next[1]) : 0;
  return `${Math.floor(whole / size)}${unit}${next && rest > 0 ? ` ${rest}${next[0]}` : ''}`;
}

/** `1,234,567` */
export function count(number: number): string {
  return number.toLocaleString('en-US');
}

/** A rate, with a decimal where that says something. */
export function rate(perSecond: number): string {
  return perSecond >= 100 || perSecond === 0 ? count(Math.round(perSecond)) : perSecond.toFixed(perSecond < 1 ? 2 : 1);
}

const BARS = '▁▂▃▄▅▆▇█';

/** A bar for each number: the lowest is none, the highest the most of them. */
export function bars(numbers: readonly number[]): string {
  const most = Math.max(...numbers, 1);
  return numbers.map((number) => BARS[Math.ceil((number / most) * (BARS.length - 1))]).join('');
}

/**
 * Text of users' jobs, fit for a terminal: what would move its cursor or change its colours is shown as an escape.
 * @param most characters; a longer text ends with an ellipsis
 */
export function plain(text: string, most = Infinity): string {
  // eslint-disable-next-line no-control-regex -- they are what is looked for
  const visible = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (letter) =>
    letter === '\n' ? '\\n' : `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return visible.length > most ? `${visible.slice(0, Math.max(0, most - 1))}…` : visible;
}

/** Rows of cells in columns. A heading that begins with `>` names a column that is set to the right. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const names = headings.map((heading) => heading.replace(/^>/, ''));
  const widths = names.map((name, i) => rows.reduce((most, row) => Math.max(most, row[i]?.length ?? 0), name.length));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => (headings[i]?.startsWith('>') ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd();
  return [line(names), ...rows.map(line)];
}

/** Text in lines that are no longer than `width`, if words allow. */
export function wrapped(text: string, width: number, indent = ''): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line && indent.length + line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line ? `${line} ${word}` : word;
  }
  return [...lines, line].map((each) => indent + each).join('\n');
}
