// What a writer of the rig does: operations drawn from a seed, carried out on a store, each with its
// invocation and its outcome noted outside of the store.

import type { PoolClient } from 'pg';
import { systemClock } from '../../src/foundation/clock.ts';
import { hasCode } from '../../src/foundation/error.ts';
import type {
  AppendResult,
  EventStore,
  ExpectedRevision,
  StreamAppend,
} from '../../src/store/index.ts';
import type { HistoryFile } from '../../src/testing/history-file.ts';
import type { SeededRandom } from '../../src/testing/seeded-random.ts';
import { eventTypes, newEvent, streamName } from './rig.ts';

interface Operation {
  readonly name: string;
  readonly kind: 'one' | 'batch' | 'exact' | 'contested' | 'many' | 'transaction';
  readonly appends: readonly (StreamAppend & { readonly expected: ExpectedRevision })[];
  /** Of a transaction: how long it stays open, and how it ends. */
  readonly openMs: number;
  readonly rollback: boolean;
}

interface WriterSettings {
  /** Unique among all writers of the run, restarted ones included. */
  readonly writer: string;
  /** How many streams all writers share. */
  readonly streams: number;
  /** Of 100 operations, so many are transactions of the caller's. */
  readonly transactionsPercent: number;
}

export interface WriterContext {
  readonly store: EventStore;
  readonly history: HistoryFile;
  readonly random: SeededRandom;
  readonly settings: WriterSettings;
  /** A connection for a transaction of the caller's. */
  readonly connect?: () => Promise<PoolClient>;
  readonly onOk: () => void;
}

/** Carries out operations, one after the other, until told to end. */
export async function runWriter(context: WriterContext, more: () => boolean): Promise<void> {
  const { settings } = context;
  for (let count = 0; more(); count += 1) {
    const operation = await draw(context, `${settings.writer}.${count}`);
    await carryOut(context, operation);
  }
}

async function draw(context: WriterContext, name: string): Promise<Operation> {
  const { random, settings, store } = context;
  const kind = drawKind(random, settings);
  const streams = new Set<string>();
  const count =
    kind === 'many' ? 2 + random.below(2) : kind === 'transaction' ? 1 + random.below(3) : 1;
  while (streams.size < count) streams.add(streamName(random.below(settings.streams)));
  const appends: Operation['appends'][number][] = [];
  for (const stream of streams) {
    const own = kind === 'exact' ? streamName(`own-${settings.writer}`) : stream;
    const isExact = kind === 'exact' || kind === 'contested' || random.below(4) === 0;
    const events =
      kind === 'batch' || kind === 'exact' ? 1 + random.below(20) : 1 + random.below(3);
    appends.push({
      stream: own,
      expected: isExact ? await revisionOf(store, own) : 'any',
      events: Array.from({ length: kind === 'one' ? 1 : events }, (_, index) =>
        newEvent(`${name}:${appends.length}:${index}`, { type: random.pick(eventTypes) }),
      ),
    });
  }
  return { name, kind, appends, openMs: random.below(20), rollback: random.below(4) === 0 };
}

function drawKind(random: SeededRandom, settings: WriterSettings): Operation['kind'] {
  if (random.below(100) < settings.transactionsPercent) return 'transaction';
  return random.pick(['one', 'one', 'one', 'batch', 'exact', 'contested', 'many']);
}

async function revisionOf(store: EventStore, stream: string): Promise<ExpectedRevision> {
  const info = await persistently(() => store.streamInfo(stream));
  return info === undefined || info.revision < 0 ? 'none' : info.revision;
}

async function carryOut(context: WriterContext, operation: Operation): Promise<void> {
  const { history, onOk } = context;
  const { name } = operation;
  history.note({
    kind: 'invoke',
    operation: name,
    writes: operation.appends.map(({ stream, expected, events }) => ({
      stream,
      expected,
      eventIds: events.map(({ eventId }) => eventId),
    })),
  });
  try {
    const results = await persistently(
      () =>
        operation.kind === 'transaction'
          ? inTransaction(context, operation)
          : perform(context.store, operation),
      (reason) => history.note({ kind: 'unknown', operation: name, reason }),
    );
    if (results === 'rolled back') {
      history.note({ kind: 'fail', operation: name, reason: results });
      return;
    }
    const places = results.map(({ revision, position }) => ({ revision, position }));
    history.note({ kind: 'ok', operation: name, results: places });
    onOk();
  } catch (error) {
    if (!hasCode(error, 'VERSION_CONFLICT')) throw error;
    history.note({ kind: 'fail', operation: name, reason: error.code });
  }
}

async function perform(
  store: EventStore,
  { kind, appends }: Operation,
): Promise<readonly AppendResult[]> {
  if (kind === 'many') return store.appendMany(appends);
  const results: AppendResult[] = [];
  for (const { stream, events, expected } of appends) {
    results.push(await store.append(stream, events, { expected }));
  }
  return results;
}

async function inTransaction(
  { store, connect }: WriterContext,
  { appends, openMs, rollback }: Operation,
): Promise<readonly AppendResult[] | 'rolled back'> {
  if (connect === undefined) throw new Error('this writer has no transactions of its own');
  const client = await connect();
  const results: AppendResult[] = [];
  try {
    await client.query('begin');
    for (const { stream, events, expected } of appends) {
      results.push(await store.append(stream, events, { expected, transaction: client }));
    }
    await systemClock.sleep(openMs);
    await client.query(rollback ? 'rollback' : 'commit');
    client.release();
    return rollback ? 'rolled back' : results;
  } catch (error) {
    // Ends the connection and with it the transaction, whatever state it is in.
    client.release(true);
    throw error;
  }
}

/** Again and again while the store cannot be reached: the ids of the events make that harmless. */
async function persistently<T>(
  work: () => Promise<T>,
  onUnknown: (reason: string) => void = () => undefined,
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isOutage(error)) throw error;
      onUnknown(String(error));
      await systemClock.sleep(50);
    }
  }
}

/** Also the driver's own errors, which a transaction of the caller's meets directly. */
function isOutage(error: unknown): boolean {
  if (hasCode(error, 'STORE_UNAVAILABLE')) return error.retryable;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = error instanceof Error ? error.message : '';
  return /^(57P|08|40|ECONN|EPIPE)/.test(code) || /terminated|not queryable|timeout/.test(message);
}
