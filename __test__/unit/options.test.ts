// Pins that no option is taken in silence: a test gives it and sees what it does, or it has no effect and a row says so.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { CLUSTER_OPTIONS, SENTINEL_OPTIONS } from '../../src/connection/discovery.js';
import { NO_EFFECT, REFUSED } from '../../src/connection/known-options.js';
import { differences } from '../../src/tools/doctor/differences.js';
import { textOf } from '../support/doc-blocks.js';
import { connectionProofs, notGiven, proofs, withoutEffect } from '../support/option-proofs.js';
import { ROOT } from '../support/registry.js';

const OPTIONS = readdirSync(join(ROOT, 'src/options')).map((file) => `src/options/${file}`);
/** Files whose methods take options that have no type of their own. */
const CLASSES = [
  'src/queue/queue.ts',
  'src/queue/queue-administration.ts',
  'src/queue/queue-cancelling.ts',
  'src/queue/queue-jobs.ts',
  'src/job/job.ts',
  'src/worker/worker.ts',
];
/** Where ioredis has its options. */
const DRIVER = [
  'redis/RedisOptions',
  'cluster/ClusterOptions',
  'connectors/StandaloneConnector',
  'connectors/SentinelConnector/index',
];
const BULLMQ = ['interfaces', 'types'].flatMap((folder) => {
  const path = `node_modules/bullmq/dist/esm/${folder}`;
  return readdirSync(join(ROOT, path)).flatMap((file) => (file.endsWith('.d.ts') ? `${path}/${file}` : []));
});

const ours = [...OPTIONS, 'src/flow/flow-tree.ts'].flatMap(optionsOf).filter(isGiven);
const ofMethods = CLASSES.flatMap(methodOptionsOf);
const tests = Object.entries(proofs).flatMap(([file, options]) => options.map((option) => [option, file] as const));

describe('options', () => {
  it.each([...new Set([...ours, ...ofMethods])])('%s is given by a test, or has no effect and says so', (option) => {
    const places = [...tests.filter(([name]) => name === option), ...(option in withoutEffect ? [option] : [])];
    expect(places).toHaveLength(1);
  });

  it('of which a test or a row is told are there', () => {
    const known = new Set([...ours, ...ofMethods]);
    expect(
      [...tests.map(([option]) => option), ...Object.keys(withoutEffect)].filter((name) => !known.has(name)),
    ).toEqual([]);
  });

  it.each(tests)('%s is named by %s', (option, file) => {
    expect(names(file, nameOf(option))).toBe(true);
  });

  it.each(Object.entries(withoutEffect))('%s has no effect, as %s says', (option, row) => {
    const name = nameOf(option);
    if (row.endsWith('.md'))
      return expect(textOf(row)).toMatch(new RegExp(`^\\|.*\`(\\w+\\.)?${name}\`.*\\|.*\\|$`, 'm'));
    const difference = differences.find(({ id }) => id === row);
    return expect(`${difference?.title} ${difference?.chasquimq}`).toContain(`\`${name}\``);
  });

  it('that BullMQ has are all there', () => {
    const types = new Set(ours.map(typeOf));
    const theirs = BULLMQ.flatMap(optionsOf).filter((option) => types.has(typeOf(option)) && isGiven(option));
    expect(theirs.length).toBeGreaterThan(80);
    // ours may have it of another type, which theirs repeats
    const names = new Set(ours.map(nameOf));
    expect(theirs.filter((option) => !names.has(nameOf(option)))).toEqual([]);
  });
});

describe('connection options', () => {
  const withEffect = Object.entries(connectionProofs).flatMap(([file, options]) =>
    options.map((name) => [name, file] as const),
  );

  it.each(withEffect)('%s is named by %s', (option, file) => expect(names(file, option)).toBe(true));

  it('have an effect, or are told to have none', () => {
    const told = new Set(withEffect.map(([option]) => option));
    const rows = textOf('docs/connections.md');
    const silent = [...mapped(), ...NO_EFFECT, ...SENTINEL_OPTIONS, ...CLUSTER_OPTIONS, ...Object.keys(REFUSED)]
      .filter((option) => !told.has(option))
      .filter((option) => !new RegExp(`\`${option}\``).test(rows));
    expect(silent).toEqual([]);
  });

  it.each(['ioredis', 'ioredis6'])('that %s has are all known', (driver) => {
    const known = new Set([
      ...mapped(),
      'natMap',
      ...NO_EFFECT,
      ...SENTINEL_OPTIONS,
      ...CLUSTER_OPTIONS,
      ...Object.keys(REFUSED),
    ]);
    const theirs = DRIVER.flatMap((file) => optionsOf(`node_modules/${driver}/built/${file}.d.ts`))
      .filter((option) => /^(Common|Cluster|SentinelConnection|StandaloneConnection)\w*Options\.\w+$/.test(option))
      .map((option) => nameOf(option));
    expect(theirs.length).toBeGreaterThan(50);
    // these two are what a client passes to itself
    expect([...new Set(theirs)].filter((name) => !known.has(name))).toEqual(['offlineQueue', 'commandQueue']);
  });

  /** Those that reach the engine, and are no export. */
  function mapped(): string[] {
    const [, list = ''] = /MAPPED = \[([^]*?)\];/.exec(textOf('src/connection/known-options.ts')) ?? [];
    return [...list.matchAll(/'(\w+)'/g)].map(([, name = '']) => name);
  }
});

/** Whether a test has an object, or a table of names, with this one. */
function names(test: string, name: string): boolean {
  const file = `__test__/${test}.test.ts`;
  return existsSync(join(ROOT, file)) && new RegExp(`\\b${name}\\b['"]?\\s*[:,})]|'${name}'`).test(textOf(file));
}

function nameOf(option: string): string {
  return option.slice(option.lastIndexOf('.') + 1);
}

function typeOf(option: string): string {
  return option.slice(0, option.indexOf('.'));
}

function isGiven(option: string): boolean {
  return !notGiven.includes(option) && !notGiven.includes(typeOf(option));
}

/** `<type>.<option>` for each option of the types of a file, those below an option with its name before theirs. */
function optionsOf(file: string): string[] {
  const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true);
  return source.statements.flatMap((statement) => {
    if (!isExported(statement)) return [];
    if (ts.isInterfaceDeclaration(statement)) return membersOf(statement.members, statement.name.text);
    if (ts.isTypeAliasDeclaration(statement)) return literalsIn(statement.type, statement.name.text);
    return [];
  });
}

function isExported(statement: ts.Statement): boolean {
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined;
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

/** Of the parts of a union or an intersection those that are written out. */
function literalsIn(type: ts.TypeNode, path: string): string[] {
  if (ts.isTypeLiteralNode(type)) return membersOf(type.members, path);
  if (ts.isUnionTypeNode(type) || ts.isIntersectionTypeNode(type))
    return type.types.flatMap((part) => literalsIn(part, path));
  return [];
}

function membersOf(members: ts.NodeArray<ts.TypeElement>, path: string): string[] {
  return members.flatMap((member) => {
    if (!ts.isPropertySignature(member) || member.type?.kind === ts.SyntaxKind.NeverKeyword) return [];
    const name = `${path}.${member.name.getText()}`;
    return [name, ...(member.type ? literalsIn(member.type, name) : [])];
  });
}

/** `<class>.<method>.<option>` of parameters whose type is written out. */
function methodOptionsOf(file: string): string[] {
  const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true);
  return source.statements.filter(ts.isClassDeclaration).flatMap((of) =>
    of.members.filter(ts.isMethodDeclaration).flatMap((method) => {
      if (
        method.modifiers?.some(
          ({ kind }) => kind === ts.SyntaxKind.PrivateKeyword || kind === ts.SyntaxKind.StaticKeyword,
        )
      )
        return [];
      const path = `${of.name?.text.replace(/^Queue(Administration|Cancelling|Jobs)$/, 'Queue')}.${method.name.getText()}`;
      return method.parameters.flatMap(({ type }) => (type ? literalsIn(type, path) : []));
    }),
  );
}
