// The outbox commands of the command line.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { newMessage } from '../../src/testing/conformance/outbox/fixture.ts';
import { runMillrace } from '../cli-store-terminal.ts';
import { createWorkspace, type EngineName } from '../store/rig.ts';
import { openLedger } from './open-ledger.ts';

export function outboxCliCases(engine: EngineName, newUrl: () => Promise<string>): void {
  test(`millrace outbox lists, shows, pauses, replays, purges and archives on ${engine}`, async () => {
    const url = await newUrl();
    const millrace = (...args: string[]) =>
      runMillrace(['outbox', ...args], { env: { MILLRACE_STORE: url, MILLRACE_USER: 'ada' } });
    const json = async <T>(...args: string[]): Promise<T> => {
      const { code, stdout, stderr } = await millrace(...args, '--json');
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout) as T;
    };
    const early = await millrace('list');
    assert.equal(early.code, 1);
    assert.match(early.stderr, /there is no (outbox|event store) at/);

    await using ledger = await openLedger({ engine, url });
    await ledger.enqueueMany([newMessage(), newMessage({ integrationType: 'kafka:payments' })]);
    const [first, second] = await ledger.claimDueBatch('w', 2);
    assert.ok(first !== undefined && second !== undefined);
    await ledger.markSent(first);
    await ledger.deadLetter(second, 'HTTP 400');
    const { id } = second;

    const listed = await json<{ id: string; status: string }>('list', '--status', 'dead');
    assert.deepEqual([listed.id, listed.status], [id, 'DEAD']);
    assert.match((await millrace('list')).stdout, /HTTP 400/);
    assert.equal((await json<{ lastError: string }>('show', id)).lastError, 'HTTP 400');
    const unknown = await millrace('show', '01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77');
    assert.equal(unknown.code, 1);

    assert.equal((await millrace('replay', '--all')).code, 2);
    assert.equal((await millrace('replay')).code, 2);
    assert.deepEqual(await json('replay', id), { replayed: 1 });
    assert.equal((await millrace('replay', id)).code, 1);
    assert.equal((await ledger.find(id))?.status, 'PENDING');

    const destination = second.integrationType;
    const paused = await json<{ changed: boolean }>('pause', destination);
    assert.equal(paused.changed, true);
    assert.equal((await ledger.paused())[0]?.pausedBy, 'ada');
    assert.deepEqual(await ledger.claimDueBatch('w', 10), []);
    await json('resume', destination);
    assert.equal((await ledger.claimDueBatch('w', 10)).length, 1);

    assert.equal((await millrace('purge', '--older-than', '0s')).code, 2);
    assert.deepEqual(await json('purge', '--older-than', '1d', '--yes'), { purged: 0 });
    assert.deepEqual(await json('purge', '--older-than', '0s', '--yes'), { purged: 1 });

    await using workspace = await createWorkspace();
    const to = join(workspace.folder, 'sent.ndjson');
    assert.equal((await millrace('archive', '--older-than', '0s')).code, 2);
    await ledger.enqueue(newMessage());
    const [third] = await ledger.claimDueBatch('w', 1);
    assert.ok(third !== undefined);
    await ledger.markSent(third);
    const archive = (age: string) => json('archive', '--older-than', age, '--to', to);
    assert.deepEqual(await archive('1d'), { archived: 0, to });
    assert.deepEqual(await archive('0s'), { archived: 1, to });
    const line = JSON.parse(await readFile(to, 'utf8')) as { id: string; status: string };
    assert.deepEqual([line.id, line.status], [third.id, 'SENT']);
    assert.equal(await ledger.find(third.id), undefined);
  });

  test(`millrace migrate --outbox creates the ledger named by MILLRACE_OUTBOX on ${engine}`, async () => {
    const env = { MILLRACE_STORE: 'sqlite:nowhere.db', MILLRACE_OUTBOX: await newUrl() };
    const millrace = (line: string) => runMillrace(line.split(' '), { env });
    const printed = await millrace('migrate --outbox --print');
    assert.match(printed.stdout, /create view .*integration_outbox/);
    assert.equal((await millrace('outbox list')).code, 1);
    const first = await millrace('migrate --outbox');
    assert.match(first.stdout, /^applied migration 1: /, first.stderr);
    assert.match((await millrace('migrate --outbox')).stdout, /nothing to do/);
    assert.equal((await millrace('migrate --outbox --print')).stdout, '-- nothing to do\n');
    assert.deepEqual(await millrace('outbox list --json'), { code: 0, stdout: '', stderr: '' });
  });
}
