// After `forget`, nothing can read the files that a user of topics uploaded, nor the messages that refer to them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { join } from 'node:path';
import { createPlatform } from '../../src/platform/create-platform.ts';
import { openNtfy } from '../../src/server/topics/open-ntfy.ts';
import { startNtfyServer } from '../../src/server/topics/start-ntfy-server.ts';
import { createTempFolder, removeTempFolder } from '../../src/testing/servers/temp-folder.ts';
import { poll, publish, send } from '../../src/testing/support/topics/ntfy-case.ts';
import { filesWith } from './forensic-files.ts';

const marker = 'Zelda-7731';

test('forget erases the files of a user, and files without a user expire', async () => {
  const cwd = await createTempFolder('attachments');
  await using opened = new AsyncDisposableStack();
  opened.defer(() => removeTempFolder(cwd));
  const folder = join(cwd, '.millrace');
  const engines = { store: `sqlite:${join(folder, 'events.db')}` };
  const platform = opened.use(await createPlatform({ engines }));
  await platform.start();
  let url: string | undefined;
  const ntfy = opened.use(await openNtfy(platform, { cwd, url: () => url }));
  const server = opened.use(await startNtfyServer(ntfy));
  ({ url } = server);
  const { secret } = await platform.tokens.create({ name: 'zelda', scopes: ['append'] });
  const headers = { Authorization: `Bearer ${secret}`, Filename: `${marker}.txt` };
  const content = `${marker} `.repeat(20_000);
  const upload = async (more: Readonly<Record<string, string>> = {}): Promise<string> =>
    (await publish(server, 'papers', { headers: { ...headers, ...more }, body: content }))
      .attachment?.url ?? '';
  const files = [await upload(), await upload({ Delay: '30m' })];
  const anonymous = await publish(server, 'papers', {
    headers: { Filename: 'x.txt' },
    body: 'plain',
  });
  for (const file of files) assert.equal(await (await fetch(file)).text(), content);
  assert.equal((await poll(server, 'papers', 'scheduled=1')).length, 3);
  assert.deepEqual(filesWith(folder, marker), []);

  await platform.engines.store.forget('notify:user:zelda');

  for (const file of files) assert.equal((await fetch(file)).status, 404);
  const left = await poll(server, 'papers', 'scheduled=1');
  assert.deepEqual(
    left.map(({ id }) => id),
    [anonymous.id],
  );
  assert.equal(await (await fetch(anonymous.attachment?.url ?? '')).text(), 'plain');
  const again = await send(server, 'papers', { headers, body: content });
  const { code } = (await again.json()) as { readonly code: number };
  assert.equal(code, 40301);
});
