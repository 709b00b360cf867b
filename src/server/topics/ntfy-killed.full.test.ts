// The process is killed while it publishes: every answered message, and every message that a reader has seen, is
// stored.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { startChild } from '../../testing/child-process.ts';
import { createTempFolder, removeTempFolder } from '../../testing/servers/temp-folder.ts';
import { lines, newTopic, poll, send } from '../../testing/support/topics/ntfy-case.ts';
import { startOurNtfy } from '../../testing/support/topics/our-ntfy.ts';

const script = new URL('../../testing/support/topics/ntfy-process-main.ts', import.meta.url);
const isUrl = (message: unknown): message is { readonly url: string } =>
  typeof (message as { readonly url?: unknown }).url === 'string';

test('a killed server loses no message that was answered or seen', async () => {
  const folder = await createTempFolder('notify');
  await using opened = new AsyncDisposableStack();
  opened.defer(() => removeTempFolder(folder));
  const bus = `sqlite:${join(folder, 'bus.db')}`;
  const child = opened.use(startChild(script, { input: { bus, folder } }));
  const first = await child.message(isUrl);
  const topic = newTopic();
  const reading = await fetch(`${first.url}/${topic}/json`);
  const answered: string[] = [];
  let isOver = false;
  const publishing = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      try {
        const answer = await send(first, topic, { body: 'x' });
        answered.push(((await answer.json()) as { readonly id: string }).id);
      } catch {
        // The server was killed before it answered.
        isOver = true;
      }
    }
  });
  let text = '';
  try {
    for await (const chunk of reading.body ?? []) {
      text += Buffer.from(chunk as Uint8Array).toString('utf8');
      if (text.split('\n').length > 100 && !isOver) {
        isOver = true;
        void child.kill('SIGKILL');
      }
    }
  } catch (error) {
    assert.ok(isOver, String(error));
  }
  await child.ended;
  await Promise.all(publishing);
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  const seen = lines(whole).flatMap(({ event, id }) => (event === 'message' ? [id] : []));
  assert.ok(seen.length > 50);
  await using next = await startOurNtfy({ bus, folder });
  const kept = (await poll(next, topic)).map(({ id }) => id);
  assert.deepEqual(kept.slice(0, seen.length), seen);
  for (const id of answered) assert.ok(kept.includes(id), id);
});
