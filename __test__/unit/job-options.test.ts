// Pins the checks of job options, their order, and their text.
import { describe, expect, it } from 'vitest';
import { copyOptions, normaliseOptions, OptionsChecker, optionsFromText } from '../../src/add/job-options.js';
import type { JobsOptions } from '../../src/options/job.js';

const check = (opts: object, data = '{}') => new OptionsChecker().check('job', data, opts);

describe('normaliseOptions', () => {
  it('fills in attempts and makes backoff an object', () => {
    expect(normaliseOptions(undefined)).toEqual({ attempts: 0 });
    expect(normaliseOptions({ backoff: 5, delay: 1 })).toEqual({
      attempts: 0,
      backoff: { type: 'fixed', delay: 5 },
      delay: 1,
    });
  });

  it('lets an explicit undefined override the default', () => {
    expect(normaliseOptions({ attempts: undefined }).attempts).toBeUndefined();
  });
});

describe('a rule of BullMQ that fails', () => {
  const rules: [JobsOptions | object, string][] = [
    [{ sizeLimit: 1 }, 'The size of job job exceeds the limit 1 bytes'],
    [
      { ignoreDependencyOnFailure: true, failParentOnFailure: true },
      'The following options cannot be used together: failParentOnFailure, ignoreDependencyOnFailure',
    ],
    [{ jobId: '12' }, 'Custom Id cannot be integers'],
    [{ jobId: 'a:b' }, 'Custom Id cannot contain :'],
    [{ priority: 1.5 }, 'Priority should not be float'],
    [{ priority: 2_097_152 }, 'Priority should be between 0 and 2097151'],
    [{ deduplication: {} }, 'Deduplication id must be provided'],
    [
      { deduplication: { id: 'a' }, parent: { id: '1', queue: 'bull:q' } },
      'Deduplication and parent options cannot be used together',
    ],
    [{ debounce: undefined }, 'Debounce option has been removed. Use deduplication option instead'],
    [{ backoff: { type: 'fixed', jitter: 2 } }, 'Jitter should be between 0 and 1'],
  ];

  it.each(rules)('gets its text: %j', (opts, message) => expect(() => check(opts)).toThrow(message));

  it('is the first one', () => {
    // Read backwards, each rule is added to those after it and must win.
    rules.reduceRight((broken, [opts, message]) => {
      if (message.includes('used together: ') || message.includes('and parent')) return broken;
      const more = { ...broken, ...opts };
      expect(() => check(more)).toThrow(message);
      return more;
    }, {});
  });

  it('wins over an option that is not there yet', () => {
    expect(() => check({ failParentOnFailure: true, jobId: '12' })).toThrow('Custom Id cannot be integers');
  });
});

describe('options that are read back', () => {
  it('keep a key that is the name of a prototype, as their own', () => {
    const text = '{"__proto__":{"attempts":5},"constructor":1,"toString":2,"fpof":true}';
    const opts = optionsFromText(text);
    expect(Object.keys(opts)).toEqual(['__proto__', 'constructor', 'toString', 'failParentOnFailure']);
    expect(Object.getPrototypeOf(opts)).toBe(Object.prototype);
    expect(opts.attempts).toBeUndefined();
    expect(normaliseOptions(opts).attempts).toBe(0);
    expect(JSON.stringify(copyOptions(opts))).toBe(text.replace('fpof', 'failParentOnFailure'));
  });
});

describe('an option', () => {
  it.each([{ priority: 0 }, { lifo: false }, { failParentOnFailure: false }])('switched off is none: %j', (opts) => {
    expect(() => check(opts)).not.toThrow();
  });

  it.each([
    [{ delay: NaN }, 'delay'],
    [{ attempts: Infinity }, 'attempts'],
    [{ backoff: { type: 'fixed', delay: NaN } }, 'backoff.delay'],
    [{ removeOnComplete: { age: NaN } }, 'removeOnComplete.age'],
  ])('that has no JSON form is refused: %j', (opts, key) => {
    expect(() => check(opts)).toThrow(new RangeError(`The job option ${key} must be a finite number`));
  });

  it.each([
    [{ id: true }, 'Deduplication id must be a string'],
    [{ id: 'a', ttl: 1.5 }, 'The job option deduplication.ttl must be a whole number of milliseconds'],
    [{ id: 'a', ttl: '5' }, 'The job option deduplication.ttl must be a whole number of milliseconds'],
  ])('deduplication of another type is refused: %j', (deduplication, message) => {
    expect(() => check({ deduplication })).toThrow(message);
  });

  it.each(['007', '1.5', '1e3', 'a:b:c', '::', ''])('jobId may be %j', (jobId) => {
    expect(() => check({ jobId })).not.toThrow();
  });
});

describe('the text of options', () => {
  it('leaves defaults out', () => {
    for (const opts of [{}, { attempts: 0 }, { attempts: undefined }, { jobId: '' }, { backoff: undefined }]) {
      expect(check(opts).text).toBe('{}');
    }
  });

  it('keeps everything else, unknown keys included, with numbers as numbers', () => {
    expect(JSON.parse(check({ attempts: 3, backoff: 5, delay: '100', mine: { a: [1] } }).text)).toEqual({
      attempts: 3,
      backoff: { type: 'fixed', delay: 5 },
      delay: 100,
      mine: { a: [1] },
    });
  });

  it('is read back, short names included', () => {
    expect(optionsFromText(undefined)).toEqual({});
    expect(optionsFromText('{"kl":3,"fpof":true,"de":{"id":"a"},"tm":"x","omc":true,"mine":1}')).toEqual({
      keepLogs: 3,
      failParentOnFailure: true,
      deduplication: { id: 'a' },
      telemetry: { metadata: 'x', omitContext: true },
      mine: 1,
    });
  });
});

describe('OptionsChecker', () => {
  it('gives equal options the same text and tells unequal ones apart', () => {
    const checker = new OptionsChecker();
    const text = (opts: JobsOptions) => checker.check('job', '{}', opts).text;
    expect(text({ attempts: 2 })).toBe('{"attempts":2}');
    expect(text({ attempts: 2 })).toBe('{"attempts":2}');
    expect(text({ attempts: 3 })).toBe('{"attempts":3}');
    expect(text({ attempts: undefined })).toBe('{}');
  });

  it('tells many options apart that come in turn', () => {
    const checker = new OptionsChecker();
    const texts = Array.from({ length: 300 }, (_, i) => checker.check('job', '{}', { priority: 1 + (i % 100) }).text);
    expect(texts).toEqual(Array.from({ length: 300 }, (_, i) => `{"priority":${1 + (i % 100)}}`));
  });

  it('knows options as they were given, whatever becomes of these, and what is no plain object as it is', () => {
    const checker = new OptionsChecker();
    const given = () => ({ due: new Date(5), tags: [{ of: ['a'] }] });
    const first = given();
    checker.check('job', '{}', first as object);
    first.tags[0].of.push('b');
    expect(checker.check('job', '{}', given() as object).opts).toEqual({ attempts: 0, ...given() });
  });

  it('checks the size of each job', () => {
    const checker = new OptionsChecker();
    checker.check('small', '{}', { sizeLimit: 5 });
    expect(() => checker.check('large', '"123456"', { sizeLimit: 5 })).toThrow('The size of job large');
  });

  it('does not take null for NaN', () => {
    const checker = new OptionsChecker();
    checker.check('job', '{}', { delay: null } as unknown as JobsOptions);
    expect(() => checker.check('job', '{}', { delay: NaN })).toThrow(RangeError);
  });
});
