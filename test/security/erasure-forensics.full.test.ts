// After `forget`, no file of a product contains the data or the key of the person, while it runs and after it stopped.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { collab } from '../../modules/collab/index.ts';
import { ensureUser, userProjection, userSubject } from '../../modules/collab/user.ts';
import { Terminal } from '../../src/foundation/handler-outcome.ts';
import { createPlatform, type Platform } from '../../src/platform/create-platform.ts';
import { defineModule } from '../../src/platform/modules/platform-module.ts';
import { projection, readModel } from '../../src/projections/index.ts';
import { subscription } from '../../src/subscriptions/subscription.ts';
import { eventually } from '../../src/testing/assertions.ts';
import { newEvent } from '../../src/testing/conformance/store/fixture.ts';
import { classified } from './erasure-classified.ts';

const marker = 'Zelda-7731';
const stream = 'crm.contact.v1-core-c1';
const type = 'contact.added.v1';

interface Contact {
  readonly name: string;
}

const contacts = projection({
  name: 'sub:crm:contacts:v1',
  readModel: readModel<Contact>({
    bc: 'crm',
    aggregate: 'contact',
    version: 1,
    indexes: { name: ({ name }) => name },
  }),
  on: { [type]: (_before, { payload }: { readonly payload: Contact }) => ({ name: payload.name }) },
});

/** Copies personal data to everything that a module can write. */
const crm = defineModule({
  name: 'crm',
  projections: [contacts],
  subscriptions: [
    subscription({
      name: 'sub:crm:broken:v1',
      filter: { types: [type] },
      handler: ({ payload }) => {
        throw new Terminal(`cannot handle ${JSON.stringify(payload)}`);
      },
    }),
  ],
  outbox: ['sent', 'late'].map((kind) => ({
    name: `sub:crm:${kind}:v1`,
    filter: { types: [type], category: 'crm.contact.v1' },
    mapper: {
      map: ({ payload }: { readonly payload: unknown }) => ({
        integrationType: `post:${kind}`,
        eventType: type,
        payload: payload as Record<string, unknown>,
        headers: { about: JSON.stringify(payload) },
        ...(kind === 'late' ? { dueAt: new Date(Date.now() + 3_600_000) } : {}),
      }),
    },
  })),
  destinations: { post: async () => undefined },
});

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function filesWith(folder: string, bytes: string | Uint8Array): string[] {
  return filesOf(folder)
    .filter((file) => readFileSync(file).includes(bytes))
    .map((file) => basename(file));
}

function keysIn(folder: string): Uint8Array[] {
  using database = new DatabaseSync(join(folder, 'events.subject-keys.db'), { readOnly: true });
  const rows = database.prepare('select key from subject_keys where key is not null').all();
  return rows.map(({ key }) => key as Uint8Array);
}

/** Writes data of one person to events, documents, outbox messages and dead letters. */
async function writePersonalData(platform: Platform): Promise<void> {
  const { engines, load } = platform;
  const { store, outbox, subscriptions } = engines;
  assert.ok(outbox !== undefined);
  const headers = { dataSubject: 'zelda' };
  const event = newEvent({ type, payload: { name: marker }, headers });
  const { position } = await store.append(stream, [event]);
  await platform.waitFor(contacts, position);
  const send = (...asked: Parameters<Platform['handle']>) => platform.handle(...asked);
  const profile = { email: `${marker}@example.org`, displayName: `${marker} Fitzgerald` };
  await ensureUser({ load, send }, { tenant: 'core', principal: 'user-1', ...profile });
  await platform.waitFor(userProjection, await store.head());
  await eventually(async () => (await outbox.counts()).SENT === 1);
  await eventually(async () => (await outbox.counts()).PENDING === 1);
  await eventually(async () => (await subscriptions.deadLetters.count({})) === 1);
}

test('after forget, no file contains the data or the key of the person', async () => {
  const root = mkdtempSync(join(tmpdir(), 'millrace-forensics-'));
  const folder = join(root, '.millrace');
  const engines = { store: `sqlite:${join(folder, 'events.db')}` };
  let keys: Uint8Array[] = [];
  try {
    {
      await using platform = await createPlatform({ engines, modules: [collab(), crm] });
      await platform.start();
      await writePersonalData(platform);
      keys = keysIn(folder);
      assert.equal(keys.length, 2);
      assert.notDeepEqual(filesWith(folder, marker), []);
      const { store, readModels, outbox } = platform.engines;
      assert.ok(outbox !== undefined);
      await store.forget('zelda');
      await store.forget(userSubject('core', 'user-1'));
      for (const key of keys) assert.deepEqual(filesWith(folder, key), []);
      const head = await store.head();
      await platform.waitFor(contacts, head);
      await platform.waitFor(userProjection, head);
      await eventually(async () => {
        const messages = await outbox.list({});
        return messages.length === 2 && !JSON.stringify(messages).includes(marker);
      });
      const [contact, user] = await Promise.all([
        readModels.load(contacts.readModel, [{ tenant: 'core', id: 'c1' }]),
        readModels.load(userProjection.readModel, [{ tenant: 'core', id: 'user-1' }]),
      ]);
      assert.deepEqual([contact[0]?.document, user[0]?.document], [null, null]);
      await eventually(async () => filesWith(folder, marker).length === 0);
      const known = classified('Files in .millrace');
      for (const file of filesOf(folder)) {
        assert.ok(known.includes(basename(file).replace(/-(wal|shm)$/, '')), file);
      }
    }
    for (const bytes of [marker, ...keys]) assert.deepEqual(filesWith(folder, bytes), []);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
