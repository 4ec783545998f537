/** What a file of a code base does that concerns a queue: what it imports, calls, listens to, gives as options. */
import { tokensOf, type Token } from './tokens.js';

export interface Use {
  readonly kind: 'import' | 'call' | 'event' | 'option' | 'name' | 'member' | 'key' | 'holder' | 'state';
  /** The module, method, event, option, imported name, property, text with a key of Redis, variable that holds a queue, or state. */
  readonly name: string;
  readonly line: number;
  /** Of an option: what the object is given to: `new Worker`, `add`, or the key or variable that holds it. Of a call: what it is called on. */
  readonly of: string;
  /** Of an option the method or constructor whose argument it is in, at any depth. */
  readonly to?: string;
}

/** Whether a module is BullMQ, its paid edition, or ours. */
export const isQueueModule = (name: string): boolean => /^(bullmq|@taskforcesh\/bullmq-pro|chasquimq)(\/|$)/.test(name);

/** Keys of BullMQ's that a program spells out. */
const RAW_KEY = /(^|[^\w])bull:[\w*{$:-]/;

const LISTENERS = new Set(['on', 'once', 'addListener', 'prependListener', 'off', 'OnWorkerEvent', 'OnQueueEvent']);

/** Classes whose objects have a connection. */
const CLASSES = new Set(['Queue', 'Worker', 'FlowProducer', 'QueueEvents']);

/** What a class of the paid edition is here: `QueuePro` is `Queue`. */
const classOf = (name: string): string => (CLASSES.has(name.replace(/Pro$/, '')) ? name.replace(/Pro$/, '') : name);

/** Methods that are given states of jobs. */
const TAKE_STATES = new Set(['getJobCounts', 'getJobCountByTypes', 'getJobs', 'getRanges', 'clean']);

/** What the file uses, in its order. */
export function usesOf(source: string): Use[] {
  const tokens = tokensOf(source);
  return [...importsOf(tokens), ...actsOf(tokens), ...optionsOf(tokens), ...keysOf(tokens)].sort(
    (one, other) => one.line - other.line,
  );
}

function keysOf(tokens: readonly Token[]): Use[] {
  const texts = tokens.filter(({ kind, text }) => (kind === 'text' || kind === 'other') && RAW_KEY.test(text));
  return texts.map(({ text, line }) => ({ kind: 'key', name: text, line, of: '' }));
}

/** `import {a} from 'm'`, `import('m')`, `require('m')`, `export ... from 'm'`; of the queue's module the names as well. */
function importsOf(tokens: readonly Token[]): Use[] {
  const uses: Use[] = [];
  for (const [i, { kind, text, line }] of tokens.entries()) {
    if (kind !== 'text') continue;
    const [before, last] = [tokens[i - 2], tokens[i - 1]];
    const isCalled = is(last, '(') && (isWord(before, 'require') || isWord(before, 'import'));
    if (!isCalled && !isWord(last, 'from') && !isWord(last, 'import')) continue;
    uses.push({ kind: 'import', name: text, line, of: '' });
    if (isQueueModule(text)) uses.push(...namesBefore(tokens, isCalled ? i - 2 : i));
  }
  return uses;
}

/** The names between the braces in front of a module. */
function namesBefore(tokens: readonly Token[], at: number): Use[] {
  const close = findBack(tokens, at, (token) => is(token, '}') || isWord(token, 'import') || is(token, ';'), 8);
  if (close === undefined || !is(tokens[close], '}')) return [];
  const open = findBack(tokens, close, (token) => is(token, '{'), 400) ?? close;
  const inside = tokens.slice(open + 1, close);
  return inside
    .filter((token, i) => token.kind === 'word' && token.text !== 'type' && !isAlias(inside, i))
    .map(({ text, line }) => ({ kind: 'name' as const, name: text, line, of: '' }));
}

/** Behind `as` and, where it is required, behind a colon a name is the file's own. */
function isAlias(inside: readonly Token[], i: number): boolean {
  return isWord(inside[i - 1], 'as') || is(inside[i - 1], ':') || inside[i]?.text === 'as';
}

function findBack(
  tokens: readonly Token[],
  from: number,
  fits: (token: Token) => boolean,
  most: number,
): number | undefined {
  for (let i = from - 1; i >= Math.max(0, from - most); i--) {
    const token = tokens[i];
    if (token && fits(token)) return i;
  }
  return undefined;
}

/** Calls of methods, events, properties that are read, and what holds queues. */
function actsOf(tokens: readonly Token[]): Use[] {
  const uses: Use[] = [];
  for (const [i, { kind, text, line }] of tokens.entries()) {
    if (kind !== 'word') continue;
    const [last, next] = [tokens[i - 1], tokens[i + 1]];
    const isMember = is(last, '.') || is(last, '?.');
    const of = isMember ? (tokens[i - 2]?.text ?? '') : '';
    const isCalled = is(next, '(') || (is(next, '?.') && is(tokens[i + 2], '(')) || isGenericCall(tokens, i);
    if (CLASSES.has(classOf(text))) uses.push(...holderOf(tokens, i));
    if (isMember && isCalled) uses.push({ kind: 'call', name: text, line, of });
    else if (isMember) uses.push({ kind: 'member', name: text, line, of });
    const event = tokens[i + 2];
    const isListening = LISTENERS.has(text.replace('@', '')) && is(next, '(') && event?.kind === 'text';
    if (isListening) uses.push({ kind: 'event', name: event.text, line, of });
  }
  return uses;
}

/** The variable or field of `mail = new Queue(...)` and of `mail: Queue`. */
function holderOf(tokens: readonly Token[], at: number): Use[] {
  const isMade = isWord(tokens[at - 1], 'new') && (is(tokens[at - 2], '=') || is(tokens[at - 2], ':'));
  const holder = isMade ? tokens[at - 3] : is(tokens[at - 1], ':') ? tokens[at - 2] : undefined;
  return holder?.kind === 'word' ? [{ kind: 'holder', name: holder.text, line: holder.line, of: '' }] : [];
}

/** `name<Some, Types>(` */
function isGenericCall(tokens: readonly Token[], at: number): boolean {
  if (!is(tokens[at + 1], '<')) return false;
  for (let i = at + 2, depth = 1; i < Math.min(at + 60, tokens.length); i++) {
    if (is(tokens[i], '<')) depth++;
    if (is(tokens[i], '>') && --depth === 0) return is(tokens[i + 1], '(');
    if (is(tokens[i], ';')) return false;
  }
  return false;
}

/** Keys of objects, with what the object is given to; and states of jobs, with the method. */
function optionsOf(tokens: readonly Token[]): Use[] {
  const uses: Use[] = [];
  /** What each open parenthesis, bracket and brace is of, undefined: a brace that opens no object; and whose argument it is in. */
  const open: { of: string | undefined; to: string }[] = [];
  for (const [i, token] of tokens.entries()) {
    const { of: inner, to = '' } = open.at(-1) ?? {};
    if (is(token, '(')) open.push({ of: calleeOf(tokens, i), to: calleeOf(tokens, i) || to });
    else if (is(token, '[')) open.push({ of: is(tokens[i - 1], ':') ? tokens[i - 2]?.text : inner, to });
    else if (is(token, '{')) open.push({ of: ownerOf(tokens, i, inner), to });
    else if (is(token, ')') || is(token, ']') || is(token, '}')) open.pop();
    else if (inner !== undefined && isKey(tokens, i)) {
      uses.push({ kind: 'option', name: token.text, line: token.line, of: inner, to });
    } else if (token.kind === 'text' && TAKE_STATES.has(inner ?? '')) {
      uses.push({ kind: 'state', name: token.text, line: token.line, of: inner ?? '' });
    }
  }
  return uses;
}

/** What is called by the parenthesis at `at`: `new Worker`, `add`, or nothing. */
function calleeOf(tokens: readonly Token[], at: number): string {
  const name = tokens[at - 1];
  if (name?.kind !== 'word') return '';
  return isWord(tokens[at - 2], 'new') ? `new ${classOf(name.text)}` : name.text;
}

/** What the object that opens at `at` is given to; undefined where the brace opens no object. */
function ownerOf(tokens: readonly Token[], at: number, inner: string | undefined): string | undefined {
  const last = tokens[at - 1];
  if (is(last, '(') || is(last, '[') || is(last, ',')) return inner ?? '';
  if (is(last, ':')) return tokens[at - 2]?.text ?? '';
  if (is(last, '=')) return variableOf(tokens, at);
  if (isWord(last, 'return') || is(last, '?')) return inner ?? '';
  return undefined;
}

/** `const connection: RedisOptions = {`: `connection`; of a type nothing. */
function variableOf(tokens: readonly Token[], at: number): string | undefined {
  const start = findBack(tokens, at, (token) => ['const', 'let', 'var', 'type'].includes(token.text), 12);
  if (start === undefined) return tokens[at - 2]?.text ?? '';
  return isWord(tokens[start], 'type') ? undefined : (tokens[start + 1]?.text ?? '');
}

/** `key:`, `'key':`, and the short form `key,` or `key }` behind a brace or a comma. */
function isKey(tokens: readonly Token[], i: number): boolean {
  const [token, last, next] = [tokens[i], tokens[i - 1], tokens[i + 1]];
  if (token?.kind !== 'word' && token?.kind !== 'text') return false;
  if (!is(last, '{') && !is(last, ',')) return false;
  if (is(next, ':') || (token.kind === 'word' && is(next, '('))) return true;
  return token.kind === 'word' && (is(next, ',') || is(next, '}'));
}

function is(token: Token | undefined, sign: string): boolean {
  return token?.kind === 'sign' && token.text === sign;
}

function isWord(token: Token | undefined, word: string): boolean {
  return token?.kind === 'word' && token.text === word;
}
