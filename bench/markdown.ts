/** A table, its headings first. All columns but the first hold figures. */
export function markdownTable(table: readonly (readonly string[])[]): string {
  const lines = table.map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
  const columns = table[0]?.length ?? 0;
  const rule = `| --- |${' ---: |'.repeat(columns - 1)}`;
  return [lines[0], rule, ...lines.slice(1)].join('\n');
}
