// The sender of a command is the owner of the credentials, whatever the payload says.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { defineAggregate } from '../../src/aggregates/index.ts';
import { defineCommand, defineEvent } from '../../src/contracts/index.ts';
import { createPlatform, defineModule } from '../../src/platform/index.ts';
import { startApi } from '../../src/server/api/start-api.ts';

const sender = z.object({ by: z.string() });
const written = defineEvent('note.written.v1', sender);
const write = defineCommand('note.write', sender);
const note = defineAggregate({
  bc: 'notes',
  name: 'note',
  version: 1,
  events: [written],
  commands: [write],
  initial: 0,
  evolve: { 'note.written.v1': (count) => count + 1 },
  decide: {
    'note.write': (_payload, _count, { user }) => written({ by: user?.id ?? 'unknown' }),
  },
});

test('a command over HTTP and WebSocket is sent by the owner of the token', async () => {
  const notes = defineModule({
    name: 'notes',
    aggregates: [note],
    commands: { 'note.write': 'append' },
  });
  await using platform = await createPlatform({ engines: { store: 'memory:' }, modules: [notes] });
  await using api = await startApi(platform, { port: 0 });
  const { secret } = await platform.tokens.create({
    name: 'mallory',
    tenant: 'core',
    scopes: ['append'],
  });
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  const payload = { by: 'ada' };
  const user = { id: 'ada' };
  const send = (body: object) =>
    fetch(`${api.url}/api/v1/commands/note.write`, {
      method: 'POST',
      headers: { ...headers, 'x-user-id': 'ada' },
      body: JSON.stringify(body),
    });
  assert.equal((await send({ id: 'n1', payload })).status, 200);
  assert.equal((await send({ id: 'n1', payload, user })).status, 400);
  const socket = new WebSocket(`${api.url.replace('http', 'ws')}/ws`, { headers });
  await once(socket, 'message');
  socket.send(
    JSON.stringify({
      type: 'command',
      id: 'm',
      command: 'note.write',
      aggregateId: 'n2',
      payload,
    }),
  );
  await once(socket, 'message');
  socket.terminate();
  const events = await platform.engines.store.readAll().toArray();
  assert.deepEqual(
    events.map(({ stream, payload: stored }) => [stream, stored]),
    ['n1', 'n2'].map((id) => [`notes.note.v1-core-${id}`, { by: 'mallory' }]),
  );
});
