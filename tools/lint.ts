// Lints with the rules that need types, which load the whole program. `--changed`, for
// `npm run check`, applies them only to files that changed since they last passed; a change
// that breaks a rule in an unchanged file is found by `npm test`, which lints all files.

import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const recordPath = 'node_modules/.cache/millrace-test/linted.json';
const settings = ['.oxlintrc.json', 'tsconfig.json', 'console/tsconfig.json', 'package-lock.json'];

const now = Object.fromEntries(
  [
    ...settings,
    ...globSync('{src,test,modules,bench,tools,examples,console/src}/**/*.{ts,tsx}'),
    'millrace.config.ts',
  ]
    .filter((file) => !file.includes('node_modules'))
    .map((file) => {
      const { mtimeMs, size } = statSync(file);
      return [file, `${mtimeMs} ${size}`] as const;
    }),
);
const before = process.argv.includes('--changed') ? readRecord() : {};
const changed = Object.keys(now).filter((file) => now[file] !== before[file]);
const lintsAll = changed.some((file) => settings.includes(file));

const isClean =
  lint(lintsAll ? ['--type-aware'] : []) &&
  (lintsAll || changed.length === 0 || lint(['--type-aware', ...changed]));
if (isClean) {
  mkdirSync(dirname(recordPath), { recursive: true });
  writeFileSync(recordPath, JSON.stringify(now));
} else {
  process.exitCode = 1;
}

function lint(args: readonly string[]): boolean {
  const { status } = spawnSync('oxlint', ['--deny-warnings', ...args], { stdio: 'inherit' });
  return status === 0;
}

function readRecord(): Readonly<Record<string, string>> {
  try {
    return JSON.parse(readFileSync(recordPath, 'utf8')) as Record<string, string>;
  } catch {
    // The first run in this clone.
    return {};
  }
}
