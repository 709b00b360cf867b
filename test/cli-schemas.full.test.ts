// `millrace schemas` on a small application, as its developer runs it before each commit.

import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { MillraceConfig } from '../src/platform/config/millrace-config.ts';
import { createPlatform } from '../src/platform/create-platform.ts';
import { useWorkspace } from './cli-store-terminal.ts';

const source = (path: string): string => new URL(`../src/${path}/index.ts`, import.meta.url).href;
const zod = import.meta.resolve('zod');
const typebox = import.meta.resolve('typebox');

interface Application {
  /** The fields of `account.opened.v1`. */
  readonly opened?: string;
  /** More parts of the module. */
  readonly more?: string;
  /** Fields of the aggregate that replace those of the first version. */
  readonly aggregate?: string;
}

function application({ opened = '', more = '', aggregate = '' }: Application): string {
  return `
import { defineAggregate, upcast } from '${source('aggregates')}';
import { compileSchema, defineCommand, defineEvent } from '${source('contracts')}';
import { defineConfig, defineModule } from '${source('platform')}';
import { task } from '${source('tasks')}';
import { Type } from '${typebox}';
import { z } from '${zod}';

const fields = { owner: z.string(), limit: z.number().int().optional(), ${opened} };
const opened = defineEvent('account.opened.v1', z.object(fields));
const opened2 = defineEvent('account.opened.v2', z.object({ holder: z.string() }));
const closed = defineEvent('account.closed.v1', compileSchema(Type.Object({ reason: Type.String() }, { additionalProperties: false })));
const open = defineCommand('account.open', z.object({ owner: z.string(), limit: z.number().default(100) }));
const parts = {
  bc: 'banking', name: 'account', version: 1, commands: [open], initial: 0,
  events: [opened, closed],
  evolve: { 'account.opened.v1': (state) => state + 1, 'account.closed.v1': (state) => state },
  decide: { 'account.open': ({ owner, limit }) => opened({ owner, limit }) },
  ${aggregate}
};
export default defineConfig({
  modules: [defineModule({
    name: 'banking', aggregates: [defineAggregate(parts)], ${more}
    commands: { 'account.open': 'append' },
    tasks: () => [task('statement', z.object({ month: z.string() }), async () => 'sent')],
  })],
});
`;
}

describe('millrace schemas', () => {
  const workspace = useWorkspace();

  const write = (parts: Application): Promise<void> =>
    writeFile(workspace.at('millrace.config.ts'), application(parts));
  const schemaOf = async (path: string): Promise<Record<string, unknown>> =>
    JSON.parse(await readFile(workspace.at(`schemas/${path}.json`), 'utf8')) as Record<
      string,
      unknown
    >;
  /** Exit code, and rule, file and field of each finding. */
  const run = async (options: string): Promise<readonly [number, ...string[]]> => {
    const { code, stdout, stderr } = await workspace.spawned(`schemas --json ${options}`.trim());
    assert.notEqual(stdout, '', stderr);
    const { findings } = JSON.parse(stdout) as {
      readonly findings: readonly { rule: string; file: string; field?: string }[];
    };
    return [
      code,
      ...findings.map(({ rule, file, field = '' }) =>
        `${rule} ${file.split('/').at(-1)} ${field}`.trim(),
      ),
    ];
  };

  test('a stored event, a command and a task payload match the exported schemas', async () => {
    await write({});
    const { code, stdout } = await workspace.spawned('schemas');
    assert.deepEqual([code, /4 files written to schemas/.test(stdout)], [0, true]);

    const { default: config } = (await import(workspace.at('millrace.config.ts'))) as {
      readonly default: MillraceConfig;
    };
    await using platform = await createPlatform({
      ...config,
      engines: { store: `sqlite:${workspace.at('app.db')}` },
    });
    await platform.handle({
      tenant: 'core',
      id: 'a-1',
      command: { type: 'account.open', payload: { owner: 'ada' } },
    });
    const [event] = await platform.engines.store.readAll().toArray();
    const ajv = new Ajv2020();
    const opened = ajv.compile(await schemaOf('events/banking.account.v1/account.opened.v1'));
    assert.deepEqual(
      [event?.payload, opened(event?.payload)],
      [{ owner: 'ada', limit: 100 }, true],
    );
    // Fields of later versions are accepted, wrong and missing ones are not.
    assert.deepEqual(
      [{ owner: 'ada', note: '' }, { owner: 1 }, {}].map((each) => opened(each)),
      [true, false, false],
    );
    const command = ajv.compile(await schemaOf('commands/banking.account.v1/account.open'));
    assert.deepEqual(
      [{ owner: 'ada' }, { limit: 1 }].map((each) => command(each)),
      [true, false],
    );
    const job = ajv.compile(await schemaOf('tasks/statement'));
    assert.deepEqual(
      [{ month: '2026-11' }, {}].map((each) => job(each)),
      [true, false],
    );
  });

  test('an optional field is a compatible change, and its schema must be committed', async () => {
    await write({});
    await run('');
    assert.deepEqual(await run('--check'), [0]);
    await write({ opened: 'note: z.string().optional()' });
    assert.deepEqual(await run('--check'), [1, 'schema-outdated account.opened.v1.json']);
    assert.deepEqual(await run(''), [0]);
    assert.deepEqual(await run('--check'), [0]);
  });

  test('removed, retyped and newly required fields are findings, and nothing is written', async () => {
    await write({ opened: 'note: z.string().optional()' });
    await run('');
    await write({ opened: 'owner: z.number(), limit: z.number().int(), currency: z.string()' });
    const findings = [
      'field-retyped account.opened.v1.json /owner',
      'field-removed account.opened.v1.json /note',
      'field-required account.opened.v1.json /limit',
      'field-required account.opened.v1.json /currency',
    ];
    for (const options of ['--check', '']) {
      assert.deepEqual(await run(options), [1, ...findings]);
    }
    const { code, stdout } = await workspace.spawned('schemas --check');
    assert.deepEqual([code, stdout.includes("'/owner' was string and is now number")], [1, true]);
    assert.deepEqual(await run('--force'), [0]);
    assert.deepEqual(await run('--check'), [0]);
  });

  test('an event that is removed without an upcaster is a finding', async () => {
    const file = 'events/banking.account.v1/account.opened.v1';
    await write({});
    await run('');
    const next = `events: [opened2, closed], decide: { 'account.open': ({ owner }) => opened2({ holder: owner }) },
      evolve: { 'account.opened.v2': (state) => state + 1, 'account.closed.v1': (state) => state },`;
    await write({ aggregate: `${next} unknownEvents: 'skip',` });
    assert.deepEqual(await run(''), [1, 'event-removed account.opened.v1.json']);
    await write({
      aggregate: `${next} upcasters: [upcast(opened, opened2, ({ owner }) => ({ holder: owner }))],`,
    });
    assert.deepEqual(await run(''), [0]);
    assert.deepEqual(await run('--check'), [0]);
    assert.equal((await schemaOf(file))['title'], 'account.opened.v1');
    await write({ aggregate: `${next} unknownEvents: 'skip',` });
    assert.deepEqual(await run('--force'), [0]);
    await assert.rejects(schemaOf(file));
  });

  test('a schema that has no JSON Schema is skipped at first, and a finding if it had one', async () => {
    await write({ opened: 'at: z.date()' });
    const { code, stdout } = await workspace.spawned('schemas');
    assert.deepEqual(
      [code, /account\.opened\.v1\.json {2}skipped {2}Date/.test(stdout)],
      [0, true],
    );
    await write({});
    assert.deepEqual(await run(''), [0]);
    await write({ opened: 'at: z.date().optional()' });
    assert.deepEqual(await run('--check'), [1, 'schema-missing account.opened.v1.json']);
  });

  test('a damaged file, both modes at once and an application without modules are errors', async () => {
    await write({});
    await run('');
    await writeFile(workspace.at('schemas/events/banking.account.v1/account.opened.v1.json'), '{');
    assert.match((await workspace.spawned('schemas --check')).stderr, /is not JSON: restore it/);
    assert.equal((await workspace.spawned('schemas --check --force')).code, 2);
    await rm(workspace.at('millrace.config.ts'));
    assert.match((await workspace.spawned('schemas')).stderr, /needs modules/);
  });
});
