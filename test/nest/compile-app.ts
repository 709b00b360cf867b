// The application of the tests has decorators, which Node does not strip: tsc checks and compiles it first.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { INestApplication } from '@nestjs/common';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** As `test/nest/app/app-settings.ts` has it. */
export interface AppSettings {
  readonly store: string;
  readonly database?: string;
  readonly receiver: string;
}

export interface CompiledApp extends Disposable {
  /** Started, and listening. */
  readonly createApp: (settings: AppSettings) => Promise<INestApplication>;
  /** The same as a process. */
  readonly main: URL;
}

/** Checked once is enough: the other file with tests of it compiles only, in half the time. */
export async function compileApp(check: 'checked' | 'unchecked'): Promise<CompiledApp> {
  mkdirSync(join(root, '.millrace'), { recursive: true });
  // Inside the repository, so that `millrace/…` resolves as it does for a user.
  const folder = mkdtempSync(join(root, '.millrace', 'nest-app-'));
  const flags = ['-p', join(root, 'test/nest/app'), '--outDir', folder, '--checkers', '1'];
  const unchecked = check === 'unchecked' ? ['--noCheck'] : [];
  const run = spawnSync('tsc', [...flags, ...unchecked], { cwd: root, encoding: 'utf8' });
  assert.equal(run.status, 0, run.stdout + run.stderr);
  const app = pathToFileURL(join(folder, 'test/nest/app/'));
  const { createApp } = (await import(new URL('create-app.js', app).href)) as CompiledApp;
  return {
    createApp,
    main: new URL('main.js', app),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
