import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEnvelope } from '../contracts/envelope.ts';
import { createTenantDirectory } from '../contracts/tenant.ts';
import { openMemory } from '../engines/memory/index.ts';
import { createStreamOwner } from './stream-owners.ts';

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
