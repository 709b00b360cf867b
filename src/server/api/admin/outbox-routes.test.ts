import assert from 'node:assert/strict';
import { test } from 'node:test';
import { body, openApi } from '../../../testing/support/server/api-rig.ts';

interface Outcomes {
  readonly items: readonly {
    readonly id: string;
    readonly outcome: string;
    readonly status: string;
  }[];
}

const later = new Date('2100-01-01T00:00:00.000Z');

test('a waiting message is retried now or discarded once, within the tenant of the caller', async () => {
  await using api = await openApi();
  const outbox = api.platform.engines.outbox ?? assert.fail('no outbox');
  const fields = { integrationType: 'partner:x', eventType: 'a.v1', payload: {}, dueAt: later };
  const waiting = ['core', 'other'].map((tenantId, at) => ({
    ...fields,
    sourceStreamId: 'shop.order.v1-core-1',
    sourceEventId: `e${at}`,
    tenantId,
  }));
  const ids = (await outbox.enqueueMany(waiting)).map(({ id }) => id);
  const [own = '', foreign = ''] = ids;
  const looker = await api.token('read');
  const operator = await api.token('operate', 'core');
  const discard = { ids, reason: 'sent by hand' };
  for (const verb of ['retry', 'discard']) {
    const sent = verb === 'retry' ? { ids } : discard;
    assert.equal((await api.post(`/admin/outbox/${verb}`, sent, looker)).status, 403);
  }
  assert.equal((await api.post('/admin/outbox/retry', {}, operator)).status, 400);
  assert.equal((await api.post('/admin/outbox/discard', { ids }, operator)).status, 400);

  const discarded = await body<Outcomes>(
    await api.post('/admin/outbox/discard', discard, operator),
  );
  assert.deepEqual(discarded.items, [{ id: own, outcome: 'changed', status: 'DISCARDED' }]);
  const again = await body<Outcomes>(await api.post('/admin/outbox/discard', discard, operator));
  assert.deepEqual(again.items, [{ id: own, outcome: 'unchanged', status: 'DISCARDED' }]);
  const shown = await body<{ discarded: object }>(await api.ask(`/admin/outbox/${own}`, operator));
  assert.match(JSON.stringify(shown.discarded), /^\{"by":"t\d+","reason":"sent by hand"\}$/);
  assert.equal((await outbox.find(foreign))?.status, 'PENDING');

  const everyone = await api.token('operate');
  const retried = await body<Outcomes>(await api.post('/admin/outbox/retry', { ids }, everyone));
  assert.deepEqual(
    retried.items.map(({ id, outcome }) => [id, outcome]),
    [
      [own, 'unchanged'],
      [foreign, 'changed'],
    ],
  );
  const { items } = await body<{ items: readonly { action: string; target: string }[] }>(
    await api.ask('/admin/audit', await api.token('admin')),
  );
  assert.deepEqual(
    items.filter(({ action }) => action.startsWith('outbox')).map(({ action }) => action),
    ['outbox.retry', 'outbox.discard', 'outbox.discard'],
  );
});
