// `millrace projections`: builds a new version, switches to it, and retires the old one.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { activeDocuments, startProjection } from '../src/projections/index.ts';
import { openSqlite } from '../src/engines/sqlite/index.ts';
import { broken, one, two } from './cli-projections.ts';
import { currencyStream, jsonOf, renamed, useWorkspace } from './cli-store-terminal.ts';

const modules = fileURLToPath(new URL('./cli-projections.ts', import.meta.url));

describe('millrace projections', () => {
  const home = useWorkspace();

  async function fill(): Promise<void> {
    await home.fillDefault(async (store, db) => {
      for (const id of ['USD', 'EUR', 'ZAR']) {
        await store.append(currencyStream(id), [renamed(id, 'first'), renamed(id, `last ${id}`)]);
      }
      await using runner = await startProjection(db, one);
      await runner.whenCaughtUp();
    });
  }

  const nameOf = async (id: string): Promise<unknown> => {
    await using db = await openSqlite(`sqlite:${home.at('.millrace/events.db')}`);
    const queries = activeDocuments(db, [one.readModel, two.readModel]);
    return (await queries.get('core', id))?.document.name;
  };

  test('status, rebuild, switch and retire', async () => {
    await fill();
    const status = await home.millrace('projections status');
    assert.equal(status.code, 0, status.stderr);
    assert.match(
      status.stdout,
      /^banking\.currency v1 {2}ready, active {2}sub:cli:names:v1 {2}0 events/,
    );

    const built = await home.millrace(`projections rebuild ${two.name} --modules ${modules}`);
    assert.equal(built.code, 0, built.stderr);
    assert.match(built.stdout, /^built sub:cli:names:v2 from 6 events\nnext: millrace projections/);
    assert.equal(await nameOf('USD'), 'last USD');

    assert.deepEqual(jsonOf(await home.millrace(`projections switch ${two.name} --json`)), {
      family: 'banking.currency',
      active: 2,
    });
    assert.equal(await nameOf('USD'), 'LAST USD');

    assert.deepEqual(jsonOf(await home.millrace(`projections retire ${one.name} --yes --json`)), {
      removed: 3,
    });
    const all = jsonOf(await home.millrace('projections status --json'));
    assert.deepEqual(
      (all as { version: number; status: string; active: boolean }[]).map(
        ({ version, status: state, active }) => [version, state, active],
      ),
      [
        [1, 'retired', false],
        [2, 'ready', true],
      ],
    );
  });

  test('a rejected command reports the reason and changes nothing', async () => {
    await fill();
    for (const [line, said] of [
      [`projections switch ${two.name}`, /^PROJECTION_UNKNOWN: unknown projection /],
      [`projections retire ${one.name} --yes`, /^PROJECTION_INVALID: .*is active/],
      [`projections rebuild ${one.name} --modules ${modules}`, /^PROJECTION_INVALID/],
    ] as const) {
      const { code, stderr } = await home.millrace(line);
      assert.equal(code, 1, line);
      assert.match(stderr, said);
    }
    const mistyped = await home.millrace(
      `projections rebuild sub:cli:name:v2 --modules ${modules}`,
    );
    assert.deepEqual([mistyped.code, mistyped.stdout], [2, '']);
    assert.match(mistyped.stderr, /did you mean sub:cli:names:v/);
    assert.equal(await nameOf('EUR'), 'last EUR');
  });

  test('reports dead letters of a rebuild', async () => {
    await fill();
    const { code, stdout } = await home.millrace(
      `projections rebuild ${broken.name} --modules ${modules}`,
    );
    assert.equal(code, 0);
    assert.match(stdout, /3 dead letters/);
  });

  test('an interrupted rebuild exits with 130 and can be resumed', async () => {
    await fill();
    const line = `projections rebuild ${two.name} --modules ${modules}`;
    const { code } = await home.millrace(line, { signal: AbortSignal.abort() });
    assert.equal(code, 130);
    assert.equal((await home.millrace(line)).code, 0);
  });
});
