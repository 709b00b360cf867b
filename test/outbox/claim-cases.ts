// Several processes claim from one ledger: no message is claimed twice.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newMessage } from '../../src/testing/conformance/outbox/fixture.ts';
import { startChild } from '../../src/testing/child-process.ts';
import { messageOfKind, soakMinutes } from '../store/rig.ts';
import type { ClaimerMessage } from './claimer-main.ts';
import { openLedger, type LedgerEngine } from './open-ledger.ts';

const { messages, processes } =
  soakMinutes > 0 ? { messages: 10_000, processes: 8 } : { messages: 2_000, processes: 3 };

export function claimCases(engine: LedgerEngine, newUrl: () => Promise<string>): void {
  test(`${processes} processes on ${engine} claim each of ${messages} messages exactly once`, async () => {
    const url = await newUrl();
    await using ledger = await openLedger({ engine, url });
    const enqueued = new Set<string>();
    for (let at = 0; at < messages; at += 1_000) {
      const items = Array.from({ length: 1_000 }, (_, each) =>
        newMessage({ tenantId: `t${each % 11}`, integrationType: `webhook:p${each % 5}` }),
      );
      for (const { id } of await ledger.enqueueMany(items)) enqueued.add(id);
    }
    assert.equal(enqueued.size, messages);
    const children = Array.from({ length: processes }, () =>
      startChild(new URL('./claimer-main.ts', import.meta.url), { input: { engine, url } }),
    );
    try {
      const says = messageOfKind<ClaimerMessage>();
      await Promise.all(children.map((child) => child.message(says('ready'))));
      for (const child of children) child.send('first');
      // Each process claims one batch first, so that none stays without a message.
      await Promise.all(children.map((child) => child.message(says('first'))));
      for (const child of children) child.send('rest');
      const done = await Promise.all(children.map((child) => child.message(says('done'))));
      const claimed = done.flatMap(({ ids = [] }) => ids);
      assert.equal(new Set(claimed).size, claimed.length, 'a message was claimed twice');
      for (const id of claimed) enqueued.delete(id);
      assert.equal(enqueued.size, 0, 'a message was never claimed');
      for (const { ids = [] } of done) assert.ok(ids.length > 0, 'a process claimed nothing');
      assert.equal((await ledger.counts()).CLAIMED, messages);
    } finally {
      await Promise.all(children.map((child) => child.kill()));
    }
  });
}
