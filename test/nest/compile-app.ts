// Compiles the Nest application of the tests with tsc: Node cannot strip decorators.
// test/packed-package.full.test.ts checks its types.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { INestApplication } from '@nestjs/common';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Copy of the type in `test/nest/app/app-settings.ts`. */
export interface AppSettings {
  readonly store: string;
  readonly database?: string | undefined;
  readonly receiver: string;
}

export interface CompiledApp extends Disposable {
  /** Starts the application, which then listens. */
  readonly createApp: (settings: AppSettings) => Promise<INestApplication>;
  /** Starts the application as a process. */
  readonly main: URL;
  /** Starts the application of the outbox document, which its environment configures. */
  readonly outboxMain: URL;
}

export async function compileApp(): Promise<CompiledApp> {
  mkdirSync(join(root, '.millrace'), { recursive: true });
  // Inside the repository, so that `millrace/…` resolves as it does for a user.
  const folder = mkdtempSync(join(root, '.millrace', 'nest-app-'));
  // Compiling file by file, without imports, takes a twentieth of the time.
  const unchecked = ['--noCheck', '--noResolve', '--isolatedModules', '--checkers', '1'];
  const flags = ['-p', join(root, 'test/nest/app'), '--outDir', folder, ...unchecked];
  const run = spawnSync('tsc', flags, { cwd: root, encoding: 'utf8' });
  assert.equal(run.status, 0, run.stdout + run.stderr);
  const app = pathToFileURL(join(folder, 'test/nest/app/'));
  const { createApp } = (await import(new URL('create-app.js', app).href)) as CompiledApp;
  return {
    createApp,
    main: new URL('main.js', app),
    outboxMain: new URL('outbox-main.js', app),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
