import eslint from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

export default defineConfig(
  globalIgnores([
    'dist/',
    'examples/*/dist/',
    'target/',
    'npm/',
    'index.cjs',
    '.ci/consumer/',
    'docs/.vitepress/{cache,dist}/',
    'docs/public/api/',
  ]),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  eslint.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // BullMQ's API is promises throughout; a method may owe one without having anything to wait for.
      '@typescript-eslint/require-await': 'off',
      // `unknown | Known` tells a reader what to expect, though the compiler sees only `unknown`.
      '@typescript-eslint/no-redundant-type-constituents': 'off',
    },
  },
  {
    // What ships is read in parts. A file that has to be longer says why at its head.
    files: ['src/**/*.ts'],
    rules: {
      'max-lines': ['error', 400],
      'max-lines-per-function': ['error', 60],
    },
  },
  {
    files: ['__test__/**/*.ts', 'bench/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: 'ExpressionStatement > CallExpression[callee.name="expect"]',
          message: 'expect() without a matcher checks nothing.',
        },
      ],
      // Both libraries are driven through one body here, and tests throw and reject with what users might.
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      '@typescript-eslint/unbound-method': 'off',
    },
  },
  {
    // What they stand on is installed where they run, and a test compiles them there. Decorators need imports that are only types otherwise.
    files: ['examples/**/*.ts'],
    extends: [tseslint.configs.disableTypeChecked],
    rules: { '@typescript-eslint/consistent-type-imports': 'off' },
  },
  {
    files: ['**/*.{js,mjs,cjs}'],
    languageOptions: {
      globals: Object.fromEntries(
        ['Buffer', 'URL', 'clearInterval', 'console', 'performance', 'process', 'setInterval', 'setTimeout'].map(
          (name) => [name, 'readonly'],
        ),
      ),
    },
  },
  {
    files: ['examples/**/*.js'],
    languageOptions: { globals: { Request: 'readonly', Response: 'readonly', globalThis: 'readonly' } },
  },
);
