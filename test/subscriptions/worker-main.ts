// A worker process that runs the subscription until it is killed. Each event has an effect in the database
// of the store, and handlers fail at random.

import { existsSync } from 'node:fs';
import type { ClientBase } from 'pg';
import type { SqliteTransaction } from '../../src/engines/sqlite/index.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { hasCode } from '../../src/foundation/error.ts';
import { openRole } from '../../src/platform/engines/open-engines.ts';
import type { RecordedEvent } from '../../src/store/index.ts';
import {
  startSubscription,
  subscription,
  Terminal,
  type HandlerContext,
  type SubscriptionDefinition,
} from '../../src/subscriptions/index.ts';
import { effectKeys, effectScript } from './effects.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import type { EngineName } from '../store/rig.ts';

export interface WorkerInput {
  readonly engine: EngineName;
  readonly url: string;
  readonly name: string;
  readonly subscription: string;
  readonly seed: number;
  readonly shards: number;
  readonly leaseMs: number;
  /** The URL of a separate lease store; by default the store keeps the leases. */
  readonly leases: string | undefined;
  /** The URL of a Redis with the subscriptions and the effects. */
  readonly subscriptions?: string | undefined;
  /** How many of a thousand attempts fail. */
  readonly failuresPerMille: number;
  /** Poisonous events succeed as soon as this file exists. */
  readonly cure?: string | undefined;
}

export interface WorkerMessage {
  /** `worked` reports the first handled event. */
  readonly kind: 'started' | 'owns' | 'worked' | 'stopped';
  readonly shards?: number | undefined;
}

const input = childInput() as WorkerInput;
const random = seededRandom(input.seed);

function mayFail(event: RecordedEvent): void {
  const isPoison = (event.payload as { poison?: boolean | undefined }).poison === true;
  if (isPoison && !(input.cure !== undefined && existsSync(input.cure))) {
    throw new Terminal('poison');
  }
  if (random.below(1_000) < input.failuresPerMille) throw new Error('random failure');
}

let hasWorked = false;
function reportWork(): void {
  if (!hasWorked) tellParent({ kind: 'worked' } satisfies WorkerMessage);
  hasWorked = true;
}

const insert = (values: string): string =>
  `insert into effects (event_id, stream, revision, worker, token) values (${values})`;

function define<Transaction>(
  handler: (event: RecordedEvent, context: HandlerContext<Transaction>) => Promise<void>,
): SubscriptionDefinition<Transaction> {
  return {
    name: input.subscription,
    shards: input.shards,
    lanes: 4,
    onDeadLetter: 'park',
    retry: { initialMs: 10, factor: 2, capMs: 100, jitterMs: 5, attemptsMax: 10 },
    timeoutMs: 60_000,
    handler,
  };
}

const leases = input.leases === undefined ? undefined : await openRole(input.leases, 'leases');

const tuning = {
  worker: input.name,
  leaseMs: input.leaseMs,
  checkpointEvery: 50,
  checkpointMs: 100,
  pollMs: 200,
  pageSize: 100,
};

async function runOnRedis(url: string) {
  const { Redis } = await import('ioredis');
  const { openRedis } = await import('../../src/engines/redis/open-redis.ts');
  const opened = new AsyncDisposableStack();
  const store = opened.use(await openRole(input.url, 'store'));
  const { subscriptions } = opened.use(await whileUnavailable(() => openRedis(url)));
  const client = new Redis(url);
  client.on('error', () => undefined);
  opened.defer(() => client.disconnect());
  const definition = define<never>(async (event, { token }) => {
    mayFail(event);
    const { eventId, stream, revision } = event;
    const effect = JSON.stringify({ eventId, stream, revision, worker: input.name, token });
    const { list, events, tokens } = effectKeys;
    const values = [eventId, stream, token, effect];
    if ((await client.eval(effectScript, 3, list, events, tokens, ...values)) === 0) {
      throw new Error('the receiver refused an outdated owner');
    }
    reportWork();
  });
  const roles = { store, subscriptions };
  return {
    db: { [Symbol.asyncDispose]: () => opened.disposeAsync() },
    runner: await whileUnavailable(() =>
      startSubscription(roles, subscription(definition), tuning),
    ),
  };
}

/** Starts again as a supervisor would, because the server may be killed at any time. */
async function whileUnavailable<T>(start: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (!hasCode(error, 'STORE_UNAVAILABLE')) throw error;
      await systemClock.sleep(50);
    }
  }
}

async function run() {
  if (input.subscriptions !== undefined) return runOnRedis(input.subscriptions);
  if (input.engine === 'sqlite') {
    const { openSqlite } = await import('../../src/engines/sqlite/open-sqlite.ts');
    const db = await openSqlite(input.url);
    const definition = define<SqliteTransaction>(async (event, context) => {
      const transaction = await context.transaction();
      const { eventId, stream, revision } = event;
      const values = [eventId, stream, revision, input.name, context.token] as const;
      transaction.run(insert('?, ?, ?, ?, ?'), ...values);
      mayFail(event);
      reportWork();
    });
    const roles = { store: db.store, subscriptions: db.subscriptions, leases };
    return { db, runner: await startSubscription(roles, subscription(definition), tuning) };
  }
  const { openPostgres } = await import('../../src/engines/postgres/open-postgres.ts');
  const db = await openPostgres(input.url, { connectionsMax: 8 });
  const definition = define<ClientBase>(async (event, context) => {
    const transaction = await context.transaction();
    const { eventId, stream, revision } = event;
    const values = [eventId, stream, revision, input.name, context.token];
    await transaction.query(insert('$1, $2, $3, $4, $5'), values);
    mayFail(event);
    reportWork();
  });
  const roles = { store: db.store, subscriptions: db.subscriptions, leases };
  return { db, runner: await startSubscription(roles, subscription(definition), tuning) };
}

const { db, runner } = await run();
process.on('message', (message) => {
  if (message === 'stop') void stop();
});
tellParent({ kind: 'started' } satisfies WorkerMessage);
let owned = 0;
const reporting = setInterval(() => {
  const { length } = runner.status.shards;
  if (length !== owned) tellParent({ kind: 'owns', shards: length } satisfies WorkerMessage);
  owned = length;
}, 20);

async function stop(): Promise<void> {
  clearInterval(reporting);
  await runner.stop();
  await db[Symbol.asyncDispose]();
  await leases?.[Symbol.asyncDispose]();
  tellParent({ kind: 'stopped' } satisfies WorkerMessage);
  process.channel?.unref();
}
