// A process that runs one test file after another, each as one suite. The modules that the files
// share are loaded once per worker instead of once per file.

import { resolve } from 'node:path';
import { suite } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { WorkerMessage, WorkerRequest } from './messages.ts';

const exitWithinMs = 30_000;

let resourcesBefore: readonly string[] = [];
const leftOpen = new Map<string, readonly string[]>();

process.on('message', (request: WorkerRequest) => {
  if ('file' in request) void runFile(request.file);
  else end();
});

// A warning of Node's in a test process points at a leak or a misuse, so it fails its file.
process.on('warning', (warning) => {
  report({ kind: 'failed', error: warning.stack ?? String(warning) });
});

async function runFile(file: string): Promise<void> {
  resourcesBefore = process.getActiveResourcesInfo();
  await suite(file, async () => {
    await import(pathToFileURL(resolve(file)).href);
  });
  // The reporter reports the end of a file, but knows nothing of one without a matching test.
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
    report({ kind: 'failed', error: `open handles keep the process alive:${files}` });
    process.exit(1);
  }, exitWithinMs).unref();
}

function report(message: WorkerMessage): void {
  process.send?.(message);
}
