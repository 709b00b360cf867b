// The memory of a process does not grow with the data that it writes and reads.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startChild } from '../../src/testing/child-process.ts';
import type { MemoryInput, MemoryMessage } from './mongodb-memory-main.ts';
import { onEachMongodb } from '../../src/testing/support/mongodb/mongodb-targets.ts';

onEachMongodb('memory', (target) => {
  test('a process writes and reads far more data than its memory can hold', async () => {
    const size = { appends: 40, eventsPerAppend: 50, payloadChars: 50_000 };
    const database = target.newDatabase();
    const input: MemoryInput = { url: target.url(), database, ...size };
    await using child = startChild(new URL('./mongodb-memory-main.ts', import.meta.url), {
      input,
      nodeFlags: ['--max-old-space-size=64'],
    });
    const { read } = await child.message(
      (message): message is MemoryMessage => (message as MemoryMessage).read > 0,
    );
    assert.equal(read, size.appends * size.eventsPerAppend);
    assert.equal(await child.ended, 0, child.errors());
  });
});
