// One document per account, changed by each of its events: our projection, live and as a rebuild, compared
// with Emmett's processor and a hand-written upsert. The peer need not sync its upserts to disk; ours
// commit as always.

import {
  documentsOf,
  projection,
  readModel,
  rebuildProjection,
  startProjection,
  type Projection,
  type ProjectionRoles,
} from '../../src/projections/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import { startRedis } from '../../src/testing/index.ts';
import { ours, type BenchmarkContext, type Case, type Subject } from '../benchmark.ts';
import { openEmmett } from '../store/emmett-store.ts';
import { openMillrace, type MillraceSubject } from '../store/millrace-store.ts';
import type { NewDatabase } from '../store/databases.ts';
import {
  balanceAfter,
  sampleEvent,
  streamOf,
  tenant,
  type Booking,
} from '../store/sample-events.ts';
import { engines, type Appending, type Engine } from '../store/subject-store.ts';
import { openUpserts, type Upserts } from './upserts.ts';

/** How often each account returns, and with how many events at a time, between those of other accounts. */
const rounds = 5;
const eventsAtOnce = 4;

interface Balance {
  readonly balance: number;
  readonly bookings: number;
}

type Target = Engine | 'redis';

export function readModelCases(
  newDatabase: NewDatabase,
  { quick, signal, defer }: BenchmarkContext,
  isEmmettThere: (engine: Engine) => boolean,
): Case[] {
  const total = quick ? 12_000 : 200_000;
  /** Opened and filled by the first subject that needs it, shared by the cases, and closed after the last case. */
  const filled = <Store extends Appending>(
    engine: Engine,
    open: (engine: Engine, address: string) => Promise<Store>,
  ): (() => Promise<Store>) => {
    let opened: Promise<Store> | undefined;
    const openFilled = async (): Promise<Store> => {
      const store = await open(engine, await newDatabase(engine));
      await fillAccounts(store, total);
      return store;
    };
    defer(async () => (await opened?.catch(() => undefined))?.close());
    return () => (opened ??= openFilled());
  };
  let redis: ReturnType<typeof startRedis> | undefined;
  defer(async () => (await redis)?.[Symbol.asyncDispose]());
  const redisUrl = async (): Promise<string> => (await (redis ??= startRedis({ signal }))).url;

  const stores = Object.fromEntries(
    engines.map((engine) => [
      engine,
      { millrace: filled(engine, openMillrace), emmett: filled(engine, openEmmett) },
    ]),
  ) as Record<
    Engine,
    { millrace: () => Promise<MillraceSubject>; emmett: () => ReturnType<typeof openEmmett> }
  >;

  const caseOf = (target: Target): Case => {
    // Redis holds only documents; the events are in the embedded store.
    const engine = target === 'redis' ? 'sqlite' : target;
    const { millrace, emmett } = stores[engine];
    const project = (kind: 'live' | 'rebuild'): Subject => ({
      name: kind === 'live' ? ours : 'millrace, rebuild',
      async setup() {
        const { store, subscriptions, readModels, readModelVersions } = (await millrace()).db;
        const elsewhere = target === 'redis' ? await openRedis(await redisUrl()) : undefined;
        const roles: ProjectionRoles = {
          store,
          subscriptions,
          readModels: elsewhere?.readModels ?? readModels,
          readModelVersions,
        };
        return {
          run: (n: number) => projectAll(roles, kind, n),
          teardown: async () => elsewhere?.[Symbol.asyncDispose](),
        };
      },
    });
    const byHand: Subject = {
      name: 'emmett',
      async setup() {
        const address = target === 'redis' ? await redisUrl() : await newDatabase(target);
        const upserts = await openUpserts(target, address);
        const store = await emmett();
        return {
          run: (n: number) => upsertAll(store, upserts, n),
          teardown: () => upserts.close(),
        };
      },
    };
    return {
      name: `subscription, a read model write per event / ${target}`,
      measure: 'throughput',
      batch: total,
      goals: [{ vs: 'emmett', ratioMin: 5 }],
      subjects: [project('live'), project('rebuild'), ...(isEmmettThere(engine) ? [byHand] : [])],
    };
  };
  return (['sqlite', 'postgres', 'redis'] as const).map(caseOf);
}

let runs = 0;

function newProjection(): Projection<Balance> {
  runs += 1;
  const book = (
    before: Balance | null,
    event: { readonly type: string; readonly payload: unknown },
  ) => ({
    balance: balanceAfter(before?.balance ?? 0, event.type, event.payload as Booking),
    bookings: (before?.bookings ?? 0) + 1,
  });
  return projection({
    name: `sub:bench:accounts:v${runs}`,
    readModel: readModel<Balance>({ bc: 'banking', aggregate: 'account', version: runs }),
    filter: { category: 'banking.account.v1' },
    on: { 'account.deposited.v1': book, 'account.withdrawn.v1': book },
  });
}

/** Projects into a new namespace until the checkpoint has passed the last event. */
async function projectAll(
  roles: ProjectionRoles,
  kind: 'live' | 'rebuild',
  total: number,
): Promise<number> {
  const accounts = newProjection();
  if (kind === 'rebuild') {
    await rebuildProjection(roles, accounts);
  } else {
    const runner = await startProjection(roles, accounts);
    await runner.whenCaughtUp();
    await runner.stop();
  }
  const last = await documentsOf(roles.readModels, accounts.readModel).get(tenant, accountOf(0));
  if (last?.document.bookings !== rounds * eventsAtOnce)
    throw new Error(`${last?.document.bookings} bookings`);
  return total;
}

async function upsertAll(
  store: Awaited<ReturnType<typeof openEmmett>>,
  upserts: Upserts,
  total: number,
): Promise<number> {
  await upserts.empty();
  await store.consume(total, ({ type, data, metadata }) =>
    upserts.book(metadata.streamName, balanceAfter(0, type, data)),
  );
  const bookings = await upserts.bookings(streamOf(accountOf(0)));
  if (bookings !== rounds * eventsAtOnce) throw new Error(`${bookings} bookings`);
  return total;
}

function accountOf(at: number): string {
  return `account-${at}`;
}

async function fillAccounts(store: Appending, total: number): Promise<void> {
  const accounts = total / rounds / eventsAtOnce;
  let number = 0;
  for (let round = 0; round < rounds; round += 1) {
    let next = 0;
    const there = round * eventsAtOnce;
    const work = async (): Promise<void> => {
      while (next < accounts) {
        const account = accountOf(next);
        next += 1;
        const batch = Array.from({ length: eventsAtOnce }, () => sampleEvent(number++, account));
        await store.append(streamOf(account), there, batch);
      }
    };
    await Promise.all(Array.from({ length: 16 }, work));
  }
}
