import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openMemory } from '../../engines/memory/index.ts';
import { hasCode } from '../../foundation/error.ts';
import { isForgotten } from '../../store/erasure.ts';
import type { EventStore } from '../../store/event-store.ts';
import { importEvents } from './import-events.ts';
import {
  eur,
  exported,
  idsInOrder,
  imported,
  openTarget,
  renamed,
  several,
  streams,
  usd,
  visible,
} from '../../testing/support/platform/test-currencies.ts';

describe('the import', () => {
  test('restores every stream, envelope, revision and the order across streams', async () => {
    await using source = openMemory().store;
    await source.append(usd, several('a', 'ünïcödé ✓'));
    await source.append(eur, [
      renamed('b', { headers: { trace: 'x' }, causationId: 'c-1', user: { id: 'u-1' } }),
    ]);
    await source.append(usd, several('c'));
    await using target = openTarget();
    const result = await imported(target, await exported(source));
    assert.deepEqual(result, { appended: 4, duplicates: 0, complete: true, forgottenSubjects: [] });
    assert.deepEqual(await visible(target), await visible(source));
    assert.deepEqual(await idsInOrder(target), await idsInOrder(source));
  });

  test('continues with a later export, including metadata of earlier streams', async () => {
    await using source = openMemory().store;
    await using target = openTarget();
    await source.append(usd, several('a', 'b', 'c'));
    const first = await exported(source);
    await imported(target, first);
    await source.append(usd, several('d'));
    await source.setStreamMetadata(usd, { truncateBefore: 2 });
    const after = (JSON.parse(first.trimEnd().split('\n').at(-1) ?? '') as { checkpoint: never })
      .checkpoint;
    const second = await exported(source, { after });
    assert.equal((await imported(target, second)).appended, 2);
    assert.equal((await imported(target, first + second)).appended, 0);
    assert.deepEqual(await visible(target), await visible(source));
  });

  test('appends nothing twice when two imports run concurrently', async () => {
    await using source = openMemory().store;
    for (let round = 0; round < 300; round += 1) {
      await source.append(streams[round % 4] ?? usd, several('a', 'b'));
    }
    const text = await exported(source);
    await using target = openTarget();
    await Promise.all([imported(target, text), imported(target, text), imported(target, text)]);
    assert.deepEqual(await idsInOrder(target), await idsInOrder(source));
  });

  test('works stream by stream where an engine has no append across streams', async () => {
    await using source = openMemory().store;
    for (let round = 0; round < 40; round += 1) {
      await source.append(streams[round % 4] ?? usd, several(`${round}`));
      if (round === 20) await source.deleteStream(usd);
    }
    await using inner = openTarget();
    const failOnCall = (): never => assert.fail('several streams at once');
    const target: EventStore = {
      ...inner,
      capabilities: { ...inner.capabilities, multiStreamAppend: false },
      appendMany: failOnCall,
    };
    const text = await exported(source);
    assert.equal((await imported(target, text)).appended, 41);
    assert.equal((await imported(target, text)).appended, 0);
    assert.deepEqual(await visible(target), await visible(source));
  });

  for (const [title, spoil] of [
    ['has another event at the revision of one', (target) => target.append(usd, several('other'))],
    [
      'has another event behind the ones they share',
      async (target, source) => {
        const events = await source.readStream(usd, { limit: 1 }).toArray();
        await imported(target, `${JSON.stringify(events[0])}\n`);
        await target.append(usd, several('other'));
      },
    ],
    [
      'was ended by a tombstone',
      async (target) => {
        await target.append(usd, several('other'));
        await target.tombstoneStream(usd);
      },
    ],
    [
      'was deleted with other events in it',
      async (target) => {
        await target.append(usd, several('x', 'y'));
        await target.deleteStream(usd);
        await target.append(usd, several('z'));
      },
    ],
  ] as readonly [string, (target: EventStore, source: EventStore) => Promise<unknown>][]) {
    test(`rejects a target whose stream ${title}, and leaves it as it was`, async () => {
      await using source = openMemory().store;
      await source.append(usd, several('a', 'b', 'c'));
      await using target = openTarget();
      await spoil(target, source);
      const before = [await visible(target), await idsInOrder(target)];
      const text = await exported(source);
      await assert.rejects(
        () => imported(target, text),
        (error) =>
          hasCode(error, 'IMPORT_DIVERGED') &&
          !error.retryable &&
          error.message.includes(`the target has diverged: its stream '${usd}'`) &&
          /line \d/.test(error.message),
      );
      assert.deepEqual([await visible(target), await idsInOrder(target)], before);
    });
  }

  test('rejects a gap between the target and the file', async () => {
    await using source = openMemory().store;
    await source.append(usd, several('a', 'b', 'c'));
    const lines = (await exported(source)).split('\n');
    await using target = openTarget();
    await imported(target, `${lines[0]}\n`);
    await assert.rejects(
      () => imported(target, `${lines[2]}\n`),
      (error) => hasCode(error, 'IMPORT_DIVERGED') && /ends at revision 0/.test(error.message),
    );
  });

  test('does not restore events that the target has scavenged', async () => {
    await using source = openMemory().store;
    await source.append(usd, several('a', 'b', 'c', 'd'));
    await source.setStreamMetadata(usd, { maxCount: 1 });
    await source.append(eur, several('x'));
    await source.tombstoneStream(eur);
    const text = await exported(source);
    await using target = openTarget();
    await imported(target, text);
    await target.scavenge();
    assert.equal((await imported(target, text)).appended, 0);
  });

  test('reports the persons erased in the source, and erases none in the target', async () => {
    await using source = openMemory().store;
    await source.append(usd, [renamed('Ann', { headers: { dataSubject: 'ann' } })]);
    await source.append(eur, [renamed('Bob', { headers: { dataSubject: 'bob' } })]);
    await source.forget('ann');
    await using target = openTarget();
    const { forgottenSubjects } = await imported(target, await exported(source));
    assert.deepEqual(forgottenSubjects, ['ann']);
    const [ann] = await target.readStream(usd).toArray();
    const [bob] = await target.readStream(eur).toArray();
    assert.ok(isForgotten(ann?.payload));
    assert.deepEqual(bob?.payload, { name: 'Bob' });
    assert.deepEqual(await target.forget('bob'), { forgotten: true });
  });

  test('rejects new data about a person whom the target has forgotten, by line', async () => {
    await using source = openMemory().store;
    await source.append(usd, [renamed('Ann', { headers: { dataSubject: 'ann' } })]);
    await using target = openTarget();
    await target.forget('ann');
    const text = await exported(source);
    await assert.rejects(
      () => imported(target, text),
      (error) => hasCode(error, 'SUBJECT_FORGOTTEN') && error.details['firstLine'] === 1,
    );
  });

  test('reports an export without its checkpoint as incomplete', async () => {
    await using source = openMemory().store;
    await source.append(usd, several('a', 'b'));
    const lines = (await exported(source)).split('\n');
    await using target = openTarget();
    assert.equal((await imported(target, `${lines[0]}\n${lines[1]}\n`)).complete, false);
    assert.equal((await imported(target, lines.join('\r\n'))).complete, true);
    assert.equal((await imported(openTarget(), '')).complete, false);
  });

  test('imports up to an incomplete last line, and reports that the file ends too early', async () => {
    await using source = openMemory().store;
    await source.append(usd, several('a', 'b'));
    const text = await exported(source);
    const torn = text.slice(0, text.indexOf('\n') + 40);
    await using target = openTarget();
    await assert.rejects(
      () => imported(target, torn),
      (error) =>
        hasCode(error, 'IMPORT_INVALID') && error.message.startsWith('line 2 ends too early'),
    );
    assert.equal((await target.streamInfo(usd))?.revision, 0);
    assert.equal((await imported(target, text)).appended, 1);
  });

  for (const [title, line, pattern] of [
    ['is not JSON', '{"stream":', /^line 2 is not JSON$/],
    ['is not an object', '7', /^line 2 is not a recorded event/],
    ['lacks fields', '{"stream":"a"}', /\/type is missing.*\/payload is missing/],
    ['has a wrong revision', '{"revision":-1}', /\/revision must be a non-negative integer/],
    ['has a wrong checkpoint', '{"checkpoint":"x"}', /invalid position 'x'/],
  ] as const) {
    test(`a line that ${title} is named by its number, without its content`, async () => {
      await using source = openMemory().store;
      await source.append(usd, several('a'));
      const text = await exported(source);
      await using target = openTarget();
      await assert.rejects(
        () => imported(target, text.replace('\n', `\n${line}\n`)),
        (error) => error instanceof Error && pattern.test(error.message),
      );
    });
  }

  test('bytes that are not UTF-8 are rejected with their line', async () => {
    await assert.rejects(
      () =>
        importEvents(
          openTarget(),
          (async function* () {
            yield Buffer.from([0xff, 0xfe, 0x0a]);
          })(),
        ),
      (error) => hasCode(error, 'IMPORT_INVALID') && /line 1 .*not UTF-8/.test(error.message),
    );
  });

  test('stops when its signal fires, also while it waits for its source', async () => {
    const stop = new AbortController();
    const waiting = importEvents(
      openTarget(),
      (async function* (): AsyncGenerator<string, void, undefined> {
        setImmediate(() => stop.abort());
        await new Promise(() => undefined);
        yield '';
      })(),
      { signal: stop.signal },
    );
    await assert.rejects(waiting, (error) => hasCode(error, 'ABORTED'));
  });

  test('a strict store accepts events and rejects metadata', async () => {
    await using source = openMemory().store;
    await source.append(usd, several('a'));
    await using strict = openMemory().store;
    assert.equal((await imported(strict, await exported(source))).appended, 1);
    await source.setStreamMetadata(usd, { maxCount: 1 });
    const text = await exported(source);
    await assert.rejects(
      () => imported(strict, text),
      (error) => hasCode(error, 'NAME_INVALID'),
    );
  });
});
