// Reads of $all: positions, directions and filters.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Filter } from '@kurrent/kurrentdb-client';
import type { ClientCases } from './client-cases.ts';
import { collect, event, events, idsOf, unique } from './official-clients.ts';

/** A filter without the options of subscriptions. */
export function filterOn(
  filterOnWhat: 'eventType' | 'streamName',
  expression: { readonly prefixes: string[] } | { readonly regex: string },
): Filter {
  return { filterOn: filterOnWhat, checkpointInterval: 1, ...expression };
}

export const readAllCases: ClientCases = ({ api, append, served, kind }) => {
  /** The EventStoreDB client filters only subscriptions. */
  const filtered = { skip: kind.hasMultiStream ? false : 'this client filters no reads' };

  test('reads every event of every stream forwards, in the order of their appends', async () => {
    const sent = events(9);
    const streams = [unique(), unique(), unique()];
    for (const [index, each] of sent.entries()) await append(streams[index % 3] ?? '', each);
    const all = await collect(api.readAll());
    const mine = all.filter((read) => streams.includes(read.event?.streamId ?? ''));
    assert.deepEqual(idsOf(mine), idsOf(sent));
    const commits = all.map((read) => read.event?.position?.commit ?? 0n);
    assert.ok(commits.every((commit, index) => index === 0 || commit > (commits[index - 1] ?? 0n)));
  });

  test('reads every event of every stream backwards, in reverse order', async () => {
    await append(unique(), events(5));
    const forwards = await collect(api.readAll());
    const backwards = await collect(api.readAll({ direction: 'backwards', fromPosition: 'end' }));
    assert.deepEqual(idsOf(backwards), idsOf(forwards.toReversed()));
  });

  test('reads forwards from a position, inclusive', async () => {
    const sent = events(4);
    await append(unique(), sent);
    const all = await collect(api.readAll());
    const at = all.find((read) => read.event?.id === sent[1]?.id)?.event?.position;
    assert.ok(at !== undefined);
    const rest = await collect(api.readAll({ fromPosition: at, maxCount: 2 }));
    assert.deepEqual(idsOf(rest), idsOf(sent.slice(1, 3)));
  });

  test('reads backwards from a position, exclusive', async () => {
    const sent = events(4);
    await append(unique(), sent);
    const all = await collect(api.readAll());
    const at = all.find((read) => read.event?.id === sent[3]?.id)?.event?.position;
    assert.ok(at !== undefined);
    const options = { direction: 'backwards', fromPosition: at, maxCount: 3 } as const;
    const rest = await collect(api.readAll(options));
    assert.deepEqual(idsOf(rest), idsOf(sent.slice(0, 3).toReversed()));
  });

  test('reads the newest events backwards from the end', async () => {
    const sent = events(3);
    await append(unique(), sent);
    const newest = { direction: 'backwards', fromPosition: 'end', maxCount: 3 } as const;
    assert.deepEqual(idsOf(await collect(api.readAll(newest))), idsOf(sent.toReversed()));
  });

  test('the position of an append is that of its last event', async () => {
    const sent = events(3);
    const { position } = await append(unique(), sent);
    assert.ok(position !== undefined);
    const [read] = await collect(api.readAll({ fromPosition: position, maxCount: 1 }));
    assert.equal(read?.event?.id, sent[2]?.id);
  });

  test('stream metadata is in $all as system events', async () => {
    const stream = unique();
    await api.setStreamMetadata(stream, { maxCount: 5 });
    const [last] = await collect(
      api.readAll({ direction: 'backwards', fromPosition: 'end', maxCount: 1 }),
    );
    assert.deepEqual([last?.event?.streamId, last?.event?.type], [`$$${stream}`, '$metadata']);
  });

  test('filters by type prefixes', filtered, async () => {
    const word = unique('T');
    const sent = [`${word}A`, `${word}B`, `X${word}A`, `${word}C`].map((type) => event({ type }));
    await append(unique(), sent);
    const filter = filterOn('eventType', { prefixes: [`${word}A`, `${word}C`] });
    const read = await collect(api.readAll({ filter }));
    assert.deepEqual(idsOf(read), [sent[0]?.id, sent[3]?.id]);
  });

  test('filters by a type pattern', filtered, async () => {
    const word = unique('T');
    const sent = [`${word}1`, `${word}22`, `${word}x`].map((type) => event({ type }));
    await append(unique(), sent);
    const filter = filterOn('eventType', { regex: `^${word}[0-9]+$` });
    assert.deepEqual(idsOf(await collect(api.readAll({ filter }))), idsOf(sent.slice(0, 2)));
  });

  test('filters by stream prefixes', filtered, async () => {
    const word = unique('s');
    const sent = events(3);
    await append(`${word}-1`, sent[0] ?? event());
    await append(`${word}-2`, sent[1] ?? event());
    await append(`x${word}-1`, sent[2] ?? event());
    const filter = filterOn('streamName', { prefixes: [`${word}-`] });
    assert.deepEqual(idsOf(await collect(api.readAll({ filter }))), idsOf(sent.slice(0, 2)));
  });

  test('filters by a stream pattern, backwards', filtered, async () => {
    const word = unique('s');
    const sent = events(3);
    for (const [index, each] of sent.entries()) await append(`${word}-${index}`, each);
    const filter = filterOn('streamName', { regex: `${word}-[02]$` });
    const options = { filter, direction: 'backwards', fromPosition: 'end' } as const;
    assert.deepEqual(idsOf(await collect(api.readAll(options))), [sent[2]?.id, sent[0]?.id]);
  });

  test('the count limits matching events', filtered, async () => {
    const type = unique('T');
    const stream = unique();
    const sent = events(6, { type });
    for (const each of sent) await append(stream, [event(), each, event()]);
    const filter = filterOn('eventType', { prefixes: [type] });
    const read = await collect(api.readAll({ filter, maxCount: 4 }));
    assert.deepEqual(idsOf(read), idsOf(sent.slice(0, 4)));
  });

  test('excludes system events', filtered, async () => {
    const stream = unique();
    await append(stream, event());
    await api.setStreamMetadata(stream, { maxCount: 5 });
    const read = await collect(
      api.readAll({ filter: filterOn('eventType', { regex: '^[^$].*' }) }),
    );
    assert.ok(read.length > 0 && read.every((each) => !each.event?.type.startsWith('$')));
  });

  test('a pattern with catastrophic backtracking is fast', filtered, async () => {
    await append(unique(), event({ type: `${'a'.repeat(40)}!` }));
    const filter = filterOn('eventType', { regex: '^(a+)+$' });
    const startedAt = performance.now();
    await collect(api.readAll({ filter }));
    assert.ok(performance.now() - startedAt < 60_000);
  });

  test('an invalid pattern is an error, and the server continues', filtered, async () => {
    const filter = filterOn('eventType', { regex: '(unclosed' });
    await assert.rejects(() => collect(api.readAll({ filter })));
    assert.ok((await collect(api.readAll({ maxCount: 1 }))).length <= 1);
  });

  test('events that Millrace appended directly are read like all others', async () => {
    const eventId = unique('not-a-uuid-');
    const stream = `banking.account.v1-core-${unique('a')}`;
    await served.store.append(stream, [
      {
        type: 'account.opened.v1',
        eventId,
        occurredAt: '2025-09-30T10:00:00.000Z',
        correlationId: 'corr-1',
        tenant: 'core',
        aggregate: { bc: 'banking', type: 'account', id: 'a-1' },
        payload: { owner: 'jane' },
      },
    ]);
    const [read] = await collect(api.readStream(stream));
    assert.deepEqual(read?.event?.data, { owner: 'jane' });
    const metadata = read?.event?.metadata as Record<string, unknown>;
    assert.equal(metadata['$correlationId'], 'corr-1');
    assert.equal(metadata['tenant'], 'core');
    assert.match(read?.event?.id ?? '', /^[0-9a-f-]{36}$/);
  });
};
