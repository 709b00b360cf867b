import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { createEnvelope } from '../contracts/envelope.ts';
import { createTenantDirectory } from '../contracts/tenant.ts';
import { openMemory } from '../engines/memory/index.ts';
import { hasCode } from '../foundation/error.ts';
import type { RecordedEvent } from './recorded-event.ts';
import { createStreamOwner, createTenantResolver, resolveTenants } from './stream-owners.ts';

const stream = 'shop.order.v1-demo-za-1';
const placed = (tenant: string) =>
  createEnvelope(
    { type: 'order.placed.v1', payload: {} },
    { tenant, aggregate: { bc: 'shop', type: 'order', id: '1' } },
  );

test('the tenant of the first event owns the stream, also after a longer tenant was created', async () => {
  await using db = openMemory();
  const tenants = createTenantDirectory();
  const ownerOf = createStreamOwner(db.store, tenants);
  assert.equal(await ownerOf(stream), 'demo');
  await db.store.append(stream, [placed('demo')]);
  tenants.add('demo-za');
  assert.equal(await ownerOf(stream), 'demo');
  assert.equal(await createStreamOwner(db.store, tenants)(stream), 'demo');
});

test('the directory names the owner of a stream without readable events or without a tenant', async () => {
  await using db = openMemory({ names: 'open' });
  const tenants = createTenantDirectory(['demo-za']);
  const ownerOf = createStreamOwner(db.store, tenants);
  assert.equal(await ownerOf(stream), 'demo-za');
  await db.store.append(stream, [{ ...placed('demo'), tenant: '' }]);
  assert.equal(await ownerOf(stream), 'demo-za');
  await db.store.tombstoneStream(stream);
  assert.equal(await ownerOf(stream), 'demo-za');
  assert.deepEqual(await Promise.all(['plain', '$all', `$$${stream}`].map(ownerOf)), ['', '', '']);
});

test('concurrent callers share one read, and a stored owner is not read again', async () => {
  await using db = openMemory();
  let reads = 0;
  const ownerOf = createStreamOwner(
    {
      readStream(...query) {
        reads += 1;
        return db.store.readStream(...query);
      },
    },
    undefined,
  );
  await Promise.all([ownerOf(stream), ownerOf(stream)]);
  assert.equal(reads, 1);
  await db.store.append(stream, [placed('demo')]);
  await ownerOf(stream);
  await ownerOf(stream);
  assert.equal(reads, 2);
});

describe('the tenant of an event', () => {
  const recorded = (name: string, more: Partial<RecordedEvent> = {}): RecordedEvent =>
    ({
      type: 'account.opened.v1',
      eventId: 'e1',
      stream: name,
      revision: 0,
      tenant: '',
      aggregate: { bc: '', type: '', id: name },
      payload: {},
      ...more,
    }) as RecordedEvent;
  const resolving = (owner: string, ...known: string[]) =>
    createTenantResolver(async () => owner, new Set(known));
  const mismatch = (owner: string) => (error: unknown) =>
    hasCode(error, 'TENANT_MISMATCH') && error.details['owner'] === owner;
  const account = 'banking.account.v1-acme-uk-GBP';

  test('without a tenant it is that of the stream, by the directory', () => {
    const event = recorded(account);
    const known = resolving('', 'acme-uk')(event) as RecordedEvent;
    assert.deepEqual(
      [known.tenant, known.aggregate],
      ['acme-uk', { bc: 'banking', type: 'account', id: 'GBP' }],
    );
    const unknown = resolving('')(event) as RecordedEvent;
    assert.deepEqual([unknown.tenant, unknown.aggregate.id], ['acme', 'uk-GBP']);
    const foreign = recorded('orders-1');
    assert.equal(resolving('')(foreign), foreign);
  });

  test('a tenant that fits the name is accepted if the stream belongs to it', async () => {
    const event = recorded(account, { tenant: 'acme-uk' });
    assert.equal(resolving('', 'acme-uk')(event), event);
    assert.equal(await resolving('acme-uk')(event), event);
    await assert.rejects(async () => resolving('acme')(event), mismatch('acme'));
    const shorter = recorded(account, { tenant: 'acme' });
    await assert.rejects(async () => resolving('acme-uk', 'acme-uk')(shorter), mismatch('acme-uk'));
  });

  test('a tenant that does not fit the name is a mismatch', () => {
    assert.throws(() => resolving('')(recorded(account, { tenant: 'core' })), mismatch('acme'));
  });

  test('metadata of a KurrentDB client count, in any form of JSON', async () => {
    await using db = openMemory({ names: 'open' });
    const by = async (headers: object, more: Partial<RecordedEvent> = {}) => {
      const written = recorded(account, { tenant: 'acme', eventId: randomUUID(), ...more });
      const { stream: _stream, revision: _revision, ...event } = written;
      const sent = { ...event, occurredAt: 'now', correlationId: 'c', headers: { ...headers } };
      await db.store.append(account, [sent]);
      const [read] = await db.store
        .readStream(account, { direction: 'backwards', limit: 1 })
        .toArray();
      return read as RecordedEvent;
    };
    for (const headers of [
      { tenant: 'acme-uk', $kurrent: { json: true } },
      { tenantId: 'acme-uk', source: 'crm', $kurrent: { json: true } },
      { $kurrent: { json: true, metadata: { text: '{ "tenant": "acme-uk" }' } } },
    ]) {
      const event = await by(headers);
      assert.equal(event.tenant, 'acme');
      await assert.rejects(async () => resolving('acme')(event), mismatch('acme'));
    }
    const silent = await by({ $kurrent: { json: true, metadata: 'none' } });
    assert.equal(resolving('acme')(silent), silent);
    // A header of Millrace's own event is not the tenant.
    const own = await by({ tenant: 'acme-uk' });
    assert.equal(resolving('acme')(own), own);
  });

  test('an envelope that contradicts its stream is refused, with and without a directory', async () => {
    await using db = openMemory({ names: 'open' });
    const read = async (named: object): Promise<RecordedEvent> => {
      const type = 'account.opened.v1';
      const times = { occurredAt: '2026-03-01T10:00:00Z', correlationId: 'c' };
      const aggregate = { bc: 'banking', type: 'account', id: 'GBP' };
      const payload = { type, eventId: 'x', ...times, tenant: 'acme-uk', aggregate, payload: 1 };
      const eventId = randomUUID();
      const event = { type, eventId, ...times, tenant: 'acme-uk', aggregate };
      await db.store.append(account, [
        { ...event, payload: { ...payload, ...named }, headers: { $kurrent: { json: true } } },
      ]);
      return (await db.store.findEvent(account, eventId)) as RecordedEvent;
    };
    const right = await read({});
    assert.deepEqual([right.payload, right.tenant, right.headers], [1, 'acme-uk', undefined]);
    assert.deepEqual(await resolveTenants([right], undefined), [right]);
    assert.equal(await resolving('acme-uk', 'acme-uk')(right), right);
    for (const [named, code] of [
      [{ tenant: 'core' }, 'TENANT_MISMATCH'],
      [{ aggregate: { bc: 'banking', type: 'account', id: 'USD' } }, 'ENVELOPE_INVALID'],
      [{ aggregate: { bc: 'crm', type: 'account', id: 'GBP' } }, 'ENVELOPE_INVALID'],
    ] as const) {
      const wrong = await read(named);
      assert.equal(wrong.payload, 1);
      const hasThisCode = (error: unknown): boolean => hasCode(error, code);
      assert.throws(() => resolveTenants([wrong], undefined), hasThisCode);
      assert.throws(() => resolving('acme-uk', 'acme-uk')(wrong), hasThisCode);
    }
  });
});
