// Pins that each wanted difference from BullMQ is proven on both libraries, by one body that says what either of them does.
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import ts from 'typescript';
import { differences } from '../../src/tools/doctor/differences.js';
import { textOf } from '../support/doc-blocks.js';

const FOLDER = '__test__/parity';

/** A test as its file has it. */
interface Written {
  readonly file: string;
  /** What its title begins with, up to a colon. */
  readonly id: string;
  readonly isOfBoth: boolean;
}

const tests = readdirSync(FOLDER)
  .filter((file) => /^differences\..*\.test\.ts$/.test(file))
  .flatMap((file) => testsOf(`${FOLDER}/${file}`));

describe('differences from BullMQ', () => {
  it('have ids of their own, in kebab-case', () => {
    const ids = differences.map(({ id }) => id);
    expect(ids.filter((id, i) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(id) || ids.indexOf(id) !== i)).toEqual([]);
  });

  it.each(differences)('$id: has a test that tells the libraries apart', ({ id, test }) => {
    const own = tests.filter((written) => written.id === id);
    expect(own.filter(({ file }) => file === test)).not.toEqual([]);
    expect(own.filter(({ isOfBoth }) => !isOfBoth)).toEqual([]);
  });

  it('have no tests of what is none', () => {
    const ids = new Set(differences.map(({ id }) => id));
    expect(tests.filter(({ id }) => !ids.has(id))).toEqual([]);
  });
});

/** The tests of a file: `it(title, ...)` and `it.each(...)(title, ...)`. */
function testsOf(file: string): Written[] {
  const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true);
  const found: Written[] = [];
  const visit = (node: ts.Node, isOfEach: boolean): void => {
    if (ts.isCallExpression(node)) {
      const [title, body] = node.arguments;
      if (title && body && ts.isStringLiteral(title) && callee(node) === 'it') {
        const [id = ''] = title.text.split(':');
        found.push({ file, id, isOfBoth: isOfEach && asksForASide(body) });
      }
      isOfEach ||= callee(node) === 'describe' && node.expression.getText() === 'describe.each(libraries)';
    }
    ts.forEachChild(node, (child) => visit(child, isOfEach));
  };
  visit(source, false);
  return found;
}

/** What is called: `it` of `it(...)` and of `it.each(...)(...)`. */
function callee({ expression }: ts.CallExpression): string {
  if (ts.isIdentifier(expression)) return expression.text;
  if (!ts.isCallExpression(expression) || !ts.isPropertyAccessExpression(expression.expression)) return '';
  return expression.expression.expression.getText();
}

/** Whether it expects one thing of BullMQ and another one of us, by `of` of `sideOf`, which fails where they are the same. */
function asksForASide(body: ts.Node): boolean {
  if (ts.isCallExpression(body) && ts.isIdentifier(body.expression) && body.expression.text === 'of') return true;
  return ts.forEachChild(body, asksForASide) ?? false;
}
