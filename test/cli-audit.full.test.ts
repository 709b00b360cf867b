// Admin actions of the command line are audited.

import assert from 'node:assert/strict';
import { userInfo } from 'node:os';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { commands } from '../src/cli/commands/index.ts';
import { openRole } from '../src/platform/engines/open-engines.ts';
import { createAuditLog } from '../src/platform/index.ts';
import { renamed, currencyStream, useWorkspace } from './cli-store-terminal.ts';

const modules = fileURLToPath(new URL('cli-projections.ts', import.meta.url));
const id = '01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77';
const sub = 'sub:cli:names:v1';

/** The arguments, the audited action, its target, and its outcome: done, or an error code. */
const actions: Readonly<Record<string, readonly [string, string, RegExp, string]>> = {
  'projections rebuild': [`${sub} --modules ${modules}`, 'projection.rebuild', /v1$/, 'done'],
  'projections switch': [sub, 'projection.switch', /v1$/, 'done'],
  'projections retire': [`${sub} --yes`, 'projection.retire', /v1$/, 'PROJECTION_INVALID'],
  'subscriptions pause': [sub, 'subscription.pause', /v1$/, 'done'],
  'subscriptions resume': [sub, 'subscription.resume', /v1$/, 'done'],
  'subscriptions reset': [`${sub} --to start --yes`, 'subscription.reset', /v1 to 0{16}$/, 'done'],
  'dlq replay': [id, 'dead-letter.replay', /d77$/, 'DEAD_LETTER_UNKNOWN'],
  'dlq discard': ['--all --yes --reason r', 'dead-letter.discard', /^all$/, 'done'],
  'dlq note': [`${id} n`, 'dead-letter.note', /d77$/, 'DEAD_LETTER_UNKNOWN'],
  'sagas resume': ['banking.review.v1-core-x', 'saga.resume', /core-x$/, 'SAGA_UNKNOWN'],
  'token create': ['shop', 'token.create', /^shop$/, 'done'],
  'console link': ['--as shop', 'console.link', /^shop$/, 'done'],
  'token revoke': ['nobody', 'token.revoke', /^nobody$/, 'TOKEN_UNKNOWN'],
  'outbox replay': ['--to webhook:x --yes', 'outbox.replay', /"webhook:x"/, 'done'],
  'outbox pause': ['webhook:x', 'outbox.pause', /^webhook:x$/, 'done'],
  'outbox resume': ['webhook:x', 'outbox.resume', /^webhook:x$/, 'done'],
  'outbox purge': ['--older-than 1d --yes', 'outbox.purge', /^sent before 20/, 'done'],
  'tasks cancel': ['--all --yes', 'task.cancel', /^all$/, 'done'],
  'tasks retry': ['--type greet --yes', 'task.retry', /"greet"/, 'done'],
  'tasks pause': ['greet', 'task.pause', /^greet$/, 'TASK_TYPE_UNKNOWN'],
  'tasks resume': ['greet', 'task.resume', /^greet$/, 'TASK_TYPE_UNKNOWN'],
  'tasks monitor': ['--forget', 'task.forget-monitors', /^monitors$/, 'done'],
  'tasks drain': ['greet', 'task.drain', /^greet$/, 'TASK_TYPE_UNKNOWN'],
  'outbox archive': ['--older-than 1d --to sent.ndjson', 'outbox.archive', /^sent before/, 'done'],
};

/** Commands that read, run something, or change events and messages, which HTTP does not audit either. */
const others = `start,dev,tour,new,lint,schemas,migrate,doctor,trace,completion,
  stream read,stream append,stream tail,stream info,stream metadata,stream delete,stream tombstone,
  scavenge,forget,export,import,subscriptions list,subscriptions lag,dlq list,dlq show,
  projections status,sagas list,sagas show,token list,outbox run,outbox list,outbox show,
  archive list,archive read,archive restore,tasks enqueue,tasks list,tasks show,tasks tail,tasks types,
  tasks groups,tasks workers`
  .split(',')
  .map((name) => name.trim());

describe('the audit log of the command line', () => {
  const home = useWorkspace();

  test('has every admin action with its actor, target and outcome', async () => {
    const known = commands.map(({ name }) => name);
    assert.deepEqual(known.toSorted(), [...Object.keys(actions), ...others].toSorted());
    await home.fillDefault((store) => store.append(currencyStream('USD'), [renamed('USD', 'a')]));
    await using store = await openRole(`sqlite:${home.at('.millrace/events.db')}`, 'store');
    const audit = createAuditLog(store);
    const env = { USER: 'root' };
    for (const [name, [rest, action, target, outcome]] of Object.entries(actions)) {
      const { code, stderr } = await home.millrace(`${name} ${rest}`, { env });
      assert.equal(code, outcome === 'done' ? 0 : 1, `${name}: ${stderr}`);
      const [entry] = (await audit.list({}, { limit: 1 })).items;
      assert.ok(entry !== undefined, name);
      assert.deepEqual([entry.action, entry.error ?? entry.outcome], [action, outcome], name);
      assert.deepEqual(entry.actor, { kind: 'cli', name: `cli:${userInfo().username}` });
      assert.match(entry.target, target);
    }
    assert.equal((await audit.list({})).items.length, Object.keys(actions).length);
  });

  test('names the operator of MILLRACE_USER', async () => {
    await home.fillDefault(async () => undefined);
    await home.millrace('token create shop', { env: { MILLRACE_USER: 'ann' } });
    await home.fillDefault(async (store) => {
      const [entry] = (await createAuditLog(store).list({})).items;
      assert.equal(entry?.actor.name, 'cli:ann');
    });
  });

  test('is missing without an event store, and the command warns', async () => {
    const env = { MILLRACE_STORE: 'sqlite:nowhere.db', MILLRACE_OUTBOX: 'sqlite:outbox.db' };
    await home.fill('outbox.db', async () => undefined);
    const { code, stderr } = await home.millrace('outbox pause webhook:x', { env });
    assert.deepEqual([code, stderr], [0, 'not audited: no event store at sqlite:nowhere.db\n']);
  });
});
