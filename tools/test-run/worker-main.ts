// A process that runs one test file after another, each as one suite. The modules that the files
// share are loaded once per worker instead of once per file.

import { flushCompileCache } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { WorkerMessage, WorkerRequest } from './messages.ts';

// node:test follows every promise by an async hook, to find the suite in which a test is declared.
// That costs up to half of the time of a test that awaits much, so the hook is off while tests run.
const asyncHooks = process.getBuiltinModule('node:async_hooks');
const { createHook } = asyncHooks;
let hook: ReturnType<typeof createHook> | undefined;
asyncHooks.createHook = (callbacks) => (hook = createHook(callbacks));
const { suite } = await import('node:test');
asyncHooks.createHook = createHook;

const exitWithinMs = 30_000;

let resourcesBefore: readonly string[] = [];
const leftOpen = new Map<string, readonly string[]>();

process.on('message', (request: WorkerRequest) => {
  if ('file' in request) void runFile(request.file);
  else end();
});

// A warning of Node in a test process indicates a leak or a misuse, so it fails its file.
process.on('warning', (warning) => {
  report({ kind: 'failed', error: warning.stack ?? String(warning) });
});

// Without its hook, node:test does not know to which test such an error belongs.
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => {
    const stack = error instanceof Error ? error.stack : undefined;
    const message: WorkerMessage = { kind: 'failed', error: `${event}: ${stack ?? String(error)}` };
    process.send?.(message, () => process.exit(1));
  });
}

async function runFile(file: string): Promise<void> {
  resourcesBefore = process.getActiveResourcesInfo();
  hook?.enable();
  await suite(file, async () => {
    await import(pathToFileURL(resolve(file)).href);
    // Now, not at the end of this process: the processes that the tests start load the same modules.
    flushCompileCache();
    hook?.disable();
  });
  // The reporter reports the end of a file, but not of a file without a matching test.
  if (process.execArgv.some((flag) => flag.startsWith('--test-name-pattern'))) {
    setTimeout(report, 200, { kind: 'done' });
  }
  const more = process.getActiveResourcesInfo().length - resourcesBefore.length;
  if (more > 0) leftOpen.set(file, process.getActiveResourcesInfo());
}

function end(): void {
  process.channel?.unref();
  setTimeout(() => {
    const files = [...leftOpen].map(([file, open]) => `\n  ${file}: ${open.join(', ')}`).join('');
    const now = process.getActiveResourcesInfo().join(', ');
    report({
      kind: 'failed',
      error: `open handles keep the process alive: ${now}. Left by a file, at its end:${files}`,
    });
    process.exit(1);
  }, exitWithinMs).unref();
}

function report(message: WorkerMessage): void {
  process.send?.(message);
}
