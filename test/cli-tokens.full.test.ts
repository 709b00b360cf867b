// `millrace token`: creates, lists and revokes tokens.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openRole } from '../src/platform/engines/open-engines.ts';
import { openTokens } from '../src/platform/index.ts';
import { jsonOf, useWorkspace } from './cli-store-terminal.ts';

interface CreatedToken {
  readonly token: { readonly id: string; readonly name: string; readonly createdBy?: string };
  readonly secret: string;
}

describe('millrace token', () => {
  const home = useWorkspace();

  test('creates, lists and revokes a token; the list never shows the secret', async () => {
    const create = 'token create shop --tenant core --scope read --scope append --expires 90d';
    const created = await home.millrace(`${create} --json`, { env: { MILLRACE_USER: 'ann' } });
    assert.equal(created.code, 0);
    const { token, secret } = JSON.parse(created.stdout) as CreatedToken;
    assert.equal(token.createdBy, 'ann');
    const listed = await home.millrace('token list');
    assert.match(listed.stdout, /^shop +live +read\+append +core +/m);
    assert.doesNotMatch(listed.stdout, new RegExp(secret.slice(-43)));

    await using store = await openRole(`sqlite:${home.folder()}/.millrace/events.db`, 'store');
    await using tokens = await openTokens(store);
    assert.equal(tokens.verify(secret, 'shop')?.token.id, token.id);
    assert.equal((await home.millrace('token revoke shop')).code, 0);
    await tokens.list();
    assert.equal(tokens.verify(secret, 'shop'), undefined);
    const row = jsonOf(await home.millrace('token list --json')) as { readonly state: string };
    assert.equal(row.state, 'revoked');
  });

  test('creates a link to the console that works once, and records it', async () => {
    await home.millrace('token create ops --scope operate');
    const created = await home.millrace('console link --as ops --url https://ops.example/ --json');
    const { url } = JSON.parse(created.stdout) as { readonly url: string };
    const [, code = ''] = /^https:\/\/ops\.example\/console\/#link=(mr_\S+)$/.exec(url) ?? [];
    await using store = await openRole(`sqlite:${home.folder()}/.millrace/events.db`, 'store');
    await using tokens = await openTokens(store);
    assert.equal((await tokens.useLink(code)).name, 'ops');
    await assert.rejects(() => tokens.useLink(code));
    const records = await store.readAll({ filter: { system: true } }).toArray();
    assert.match(JSON.stringify(records), /"console\.link"/);
    const unknown = await home.millrace('console link --as missing');
    assert.deepEqual([unknown.code, unknown.stderr.includes('TOKEN_UNKNOWN')], [1, true]);
  });

  test('shows the secret and how to use it', async () => {
    const { code, stdout } = await home.millrace('token create ops --scope admin');
    assert.equal(code, 0);
    assert.match(stdout, /created ops: admin, all tenants/);
    assert.match(stdout, /secret {2}mr_[0-9a-f]{32}_\S{43}\n/);
  });

  test('reports errors with their code', async () => {
    await home.millrace('token create shop');
    for (const [line, code, problem] of [
      ['token create shop', 1, /^TOKEN_EXISTS/],
      ['token create Shop', 1, /^TOKEN_INVALID: token: name/],
      [
        'token create other --scope write',
        2,
        /--scope takes use, read, append, delete, work, operate, bus, or admin/,
      ],
      ['token create other --expires soon', 2, /--expires takes a duration/],
      ['token create other --expires 2020-01-01', 1, /^TOKEN_INVALID: token: expiresAt/],
      ['token create other --tenant A', 1, /^NAME_INVALID/],
      ['token create', 2, /needs one name/],
      ['token revoke other', 1, /^TOKEN_UNKNOWN/],
      ['token list --store sqlite:none.db', 1, /^CONFIG_INVALID: there is no event store/],
    ] as const) {
      const outcome = await home.millrace(line);
      assert.equal(outcome.code, code, line);
      assert.match(outcome.stderr, problem, line);
    }
  });
});
