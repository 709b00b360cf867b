// Archivers are killed at random: every message is in the ledger or in the archive.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { newMessage } from '../../src/testing/conformance/outbox/fixture.ts';
import type { OutboxLedger } from '../../src/outbox/outbox-ledger.ts';
import { startChild } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { createWorkspace, isText, newSeed, soakMinutes, type EngineName } from '../store/rig.ts';
import type { ArchiverInput } from './archiver-main.ts';
import { openLedger } from './open-ledger.ts';

const { messages, kills } =
  soakMinutes > 0 ? { messages: 1_500, kills: 6 } : { messages: 500, kills: 2 };
/** The most batches before a kill, so that messages are left for the last archiver. */
const batchesMax = 20;

export function archiveCases(engine: EngineName, newUrl: () => Promise<string>): void {
  test(`an archiver on ${engine} that is killed at random loses no message`, async () => {
    const seed = newSeed();
    const random = seededRandom(seed);
    const url = await newUrl();
    await using workspace = await createWorkspace();
    const path = join(workspace.folder, 'sent.ndjson.gz');
    await using ledger = await openLedger({ engine, url });
    const all = new Set<string>();
    for (let at = 0; at < messages; at += 500) {
      const items = Array.from({ length: 500 }, () => newMessage());
      for (const { id } of await ledger.enqueueMany(items)) all.add(id);
      const claimed = await ledger.claimDueBatch('w', 500);
      await ledger.settle(claimed.map((claim) => ({ kind: 'sent', claim })));
    }
    assert.equal((await ledger.counts()).SENT, messages);

    const start = () =>
      startChild(new URL('./archiver-main.ts', import.meta.url), {
        input: { engine, url, path } satisfies ArchiverInput,
      });
    for (let kill = 0; kill < kills; kill += 1) {
      const child = start();
      const batches = 1 + random.below(batchesMax);
      await child.message((message): message is number => message === batches);
      await child.kill('SIGKILL');
      const { ids, left } = await everything(ledger, path);
      const missing = all.difference(ids.union(left));
      assert.equal(missing.size, 0, `seed ${seed}: ${missing.size} are missing`);
    }
    const last = start();
    await last.message(isText('done'));
    await last.kill();
    const { ids, left, lines } = await everything(ledger, path);
    assert.equal(left.size, 0, `seed ${seed}`);
    assert.deepEqual(ids, all, `seed ${seed}`);
    assert.ok(
      lines - messages <= kills * 10,
      `seed ${seed}: ${lines - messages} were archived twice`,
    );
  });
}

async function everything(ledger: OutboxLedger, path: string) {
  const left = new Set<string>();
  let after: string | undefined;
  for (let isMore = true; isMore;) {
    const page = await ledger.list({ status: 'SENT' }, { limit: 1_000, after });
    for (const { id } of page) left.add(id);
    after = page.at(-1)?.id;
    isMore = page.length === 1_000;
  }
  const archived = await idsIn(path);
  return { left, ids: new Set(archived), lines: archived.length };
}

/** An incomplete last member is not archived: the next archiver truncates it. */
async function idsIn(path: string): Promise<readonly string[]> {
  const bytes = await readFile(path).catch(() => Buffer.alloc(0));
  const ids: string[] = [];
  for (let at = 0; at + 20 <= bytes.length;) {
    const length = bytes.readUInt32LE(at + 16);
    if (length === 0 || at + length > bytes.length) break;
    const text = gunzipSync(bytes.subarray(at, at + length)).toString();
    for (const line of text.trimEnd().split('\n')) {
      ids.push((JSON.parse(line) as { readonly id: string }).id);
    }
    at += length;
  }
  return ids;
}
