// The operations of a writer: drawn from a seed and executed on a store. Each call and its outcome is
// recorded outside the store.

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
  /** How long a transaction stays open, and whether it is rolled back. */
  readonly openMs: number;
  readonly rollback: boolean;
}

interface WriterSettings {
  /** Unique among all writers of the run, including restarted ones. */
  readonly writer: string;
  /** How many streams all writers share. */
  readonly streams: number;
  /** The percentage of operations that are transactions of the caller. */
  readonly transactionsPercent: number;
}

export interface WriterContext {
  readonly store: EventStore;
  readonly history: HistoryFile;
  readonly random: SeededRandom;
  readonly settings: WriterSettings;
  /** Opens a connection for a transaction of the caller. */
  readonly connect?: (() => Promise<PoolClient>) | undefined;
  readonly onOk: () => void;
}

/** Executes operations one after the other while `more` returns true. */
export async function runWriter(context: WriterContext, more: () => boolean): Promise<void> {
  const { settings } = context;
  for (let count = 0; more(); count += 1) {
    const operation = await draw(context, `${settings.writer}.${count}`);
    await execute(context, operation);
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

async function execute(context: WriterContext, operation: Operation): Promise<void> {
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
    const locations = results.map(({ revision, position }) => ({ revision, position }));
    history.note({ kind: 'ok', operation: name, results: locations });
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
  if (connect === undefined) throw new Error('this writer has no connection for transactions');
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
    // Closes the connection, which ends the transaction in any state.
    client.release(true);
    throw error;
  }
}

/** Retries while the store is unreachable; the event ids make repeated appends idempotent. */
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

/** Includes driver errors, which a transaction of the caller receives directly. */
function isOutage(error: unknown): boolean {
  if (hasCode(error, 'STORE_UNAVAILABLE')) return error.retryable;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = error instanceof Error ? error.message : '';
  return /^(57P|08|40|ECONN|EPIPE)/.test(code) || /terminated|not queryable|timeout/.test(message);
}
