// The record of the last run for the next one: which files failed, and how long each file took.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestResult } from './test-run.ts';
import { root } from './test-worker.ts';

export interface LastRun {
  readonly failed: readonly string[];
  readonly seconds: Readonly<Record<string, number>>;
}

const path = join(root, 'node_modules/.cache/millrace-test/last-run.json');

export function readLastRun(): LastRun {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as LastRun;
  } catch {
    // The first run in this clone.
    return { failed: [], seconds: {} };
  }
}

export function writeLastRun(before: LastRun, results: readonly TestResult[]): void {
  const failed = results.filter((result) => result.failed > 0).map(({ name }) => name);
  const ran = new Set(results.map(({ name }) => name));
  const seconds = Object.fromEntries(results.map(({ name, seconds: taken }) => [name, taken]));
  const run: LastRun = {
    failed: [...before.failed.filter((name) => !ran.has(name)), ...failed],
    seconds: { ...before.seconds, ...seconds },
  };
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(run));
}
