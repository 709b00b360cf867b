import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { startChild } from '../../src/testing/child-process.ts';
import type { CatchUpInput, CatchUpMessage } from './catch-up-main.ts';
import { createWorkspace, newEvent, soakMinutes, streamName } from './rig.ts';

const events = soakMinutes > 0 ? 1_000_000 : 100_000;
const mebibyte = 1_048_576;

test(`the second half of catching up with ${events / 1_000}k events needs no more memory than the first`, async () => {
  await using workspace = await createWorkspace();
  const url = `sqlite:${join(workspace.folder, 'events.db')}`;
  {
    await using db = await openSqlite(url);
    const { store } = db;
    const perAppend = 1_000;
    for (let at = 0; at < events; at += 10 * perAppend) {
      const appends = Array.from({ length: 10 }, (_, index) => {
        const batch = Array.from({ length: perAppend }, (_unused, each) =>
          newEvent(`${at}-${index}-${each}`, { payload: { text: 'x'.repeat(200) } }),
        );
        return store.append(streamName((at / perAppend + index) % 100), batch);
      });
      await Promise.all(appends);
    }
  }
  await using child = startChild(new URL('./catch-up-main.ts', import.meta.url), {
    input: { url, events } satisfies CatchUpInput,
    // All events together would need several times as much.
    nodeFlags: ['--max-old-space-size=64'],
  });
  const { count, rssAtHalf, rssMax } = await child.message(
    (message): message is CatchUpMessage => (message as CatchUpMessage).count > 0,
  );
  assert.equal(count, events);
  const growth = (rssMax - rssAtHalf) / mebibyte;
  assert.ok(growth < 40, `grew by ${growth.toFixed(1)} MiB`);
  assert.equal(await child.ended, 0, child.errors());
});
