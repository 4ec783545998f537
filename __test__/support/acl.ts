import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const page = readFileSync(join(ROOT, 'docs/production.md'), 'utf8');

/** The rule of the docs for a user with no more rights than a queue needs: what stands behind `ACL SETUSER <name>`. */
export function documentedRule(): string[] {
  const [, rule] = /ACL SETUSER jobs ([^`]*)```/.exec(page) ?? [];
  if (!rule) throw new Error('docs/production.md has no ACL rule any more');
  return rule.trim().split(/\s+/);
}

/** What the docs leave out of it for one of several tenants, whose library an administrator loads. */
export function documentedTenantOmissions(): string[] {
  const [, omissions] = /without `(\+function\|load [^`]*)`/.exec(page) ?? [];
  if (!omissions) throw new Error('docs/production.md no longer says what tenants must not have');
  return omissions.split(' ');
}

/** The rule of a tenant for the keys of one prefix. */
export function documentedTenantRule(prefix: string): string[] {
  const omitted = documentedTenantOmissions();
  return documentedRuleFor(prefix).filter((part) => !omitted.includes(part));
}

/** The rule of a user who has the server alone, for the keys of one prefix. */
export function documentedRuleFor(prefix: string): string[] {
  return documentedRule().map((part) => (/^[~&]/.test(part) ? part.replace('bull', prefix) : part));
}

/** What the docs grant to a user of sentinels, and in a cluster. */
export function documentedSentinelRights(): string[] {
  return page.match(/\+sentinel\|[\w-]+/g) ?? [];
}

export function documentedClusterRights(): string[] {
  return page.match(/\+cluster\|[\w-]+/g) ?? [];
}

/** What the docs grant beside the rule to who moves queues of BullMQ. */
export function documentedMigrationRights(): string[] {
  const [, rights] = /`(~bull:\* [^`]*)`/.exec(page) ?? [];
  if (!rights) throw new Error('docs/production.md no longer says what moving takes');
  return rights.split(' ');
}

/** What a crate and its scripts say in capitals, of which commands are a part. */
export function words(crate: 'chasquimq' | 'chasquimq-migrate'): Set<string> {
  const root = join(ROOT, 'crates', crate);
  const found = new Set<string>();
  const collect = (folder: string, suffix: string, pattern: RegExp) => {
    for (const file of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith(suffix)) continue;
      const [text = ''] = readFileSync(join(root, folder, file), 'utf8').split('#[cfg(test)]');
      for (const [, word = ''] of text.matchAll(pattern)) found.add(word.toLowerCase());
    }
  };
  collect('lua', '.lua', /'([A-Z]{3,})'/g);
  collect('src', '.rs', /cmd\("([A-Z]+)"\)/g);
  // the one command that has a function of its own
  collect('src', '.rs', /\b(scan)\(/g);
  return found;
}
