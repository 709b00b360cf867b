// The reaper process: waits for the process of the tests to end, then removes the servers and folders that remain.

import { rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { endTree } from './process-tree.ts';
import type { ReaperNote } from './reaper.ts';

const graceMs = 2_000;
const processes = new Map<number, NodeJS.Signals>();
const folders = new Set<string>();

for await (const line of createInterface({ input: process.stdin })) take(JSON.parse(line));

// A failed removal must not prevent the others.
await Promise.allSettled([...processes].map(([pid, signal]) => endTree(pid, { signal, graceMs })));
// A dying server may still write a file while its folder is being removed.
const removal = { recursive: true, force: true, maxRetries: 20, retryDelay: 50 };
await Promise.allSettled([...folders].map((folder) => rm(folder, removal)));

function take(note: ReaperNote): void {
  switch (note.kind) {
    case 'process':
      processes.set(note.pid, note.signal);
      break;
    case 'process-ended':
      // The pid may soon belong to another process.
      processes.delete(note.pid);
      break;
    case 'folder':
      folders.add(note.path);
      break;
    case 'folder-removed':
      folders.delete(note.path);
      break;
  }
}
