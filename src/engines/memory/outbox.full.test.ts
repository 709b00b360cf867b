import { openMemory } from './index.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../../testing/fake-clock.ts';
import { newMessage } from '../../testing/conformance/outbox/fixture.ts';
import { outboxLedgerConformance } from '../../testing/conformance/outbox/outbox-ledger.ts';

for (const { name, skip, run } of outboxLedgerConformance<never>({
  capabilities: openMemory().outbox.capabilities,
  open: async () => ({ ledger: openMemory().outbox }),
})) {
  test(`outbox in memory: ${name}`, { skip: skip ?? false }, run);
}

test('leases and due times follow the clock of the test', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  await ledger.enqueue(newMessage({ dueAt: new Date(clock.now() + 1_000) }));
  assert.equal((await ledger.claimDueBatch('w', 1)).length, 0);
  await clock.advance(1_000);
  assert.equal((await ledger.claimDueBatch('w', 1, { leaseMs: 5_000 })).length, 1);
  await clock.advance(4_999);
  assert.equal((await ledger.claimDueBatch('w', 1)).length, 0);
  await clock.advance(1);
  assert.equal((await ledger.claimDueBatch('w', 1)).length, 1);
});

test('the suite has at least sixty cases', () => {
  const capabilities = {
    durable: true,
    crossProcess: true,
    callerTransaction: true,
  };
  const open = async () => ({ ledger: openMemory().outbox });
  assert.ok(outboxLedgerConformance({ capabilities, open }).length >= 60);
});
