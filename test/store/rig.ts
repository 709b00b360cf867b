// Helpers of the failure tests: engines by name, events, waiting, and reading back.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DomainEventEnvelope } from '../../src/contracts/envelope.ts';
import type { PostgresEngine } from '../../src/engines/postgres/index.ts';
import type { SqliteEngine } from '../../src/engines/sqlite/index.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { hasCode } from '../../src/foundation/error.ts';
import type { EventStore } from '../../src/store/index.ts';
import { parseHistory, type EventLocation, type HistoryEntry } from '../../src/testing/history.ts';
import { ownedRole } from '../../src/testing/owned-role.ts';
import { soakMinutes } from '../../src/testing/property-runs.ts';

export type EngineName = 'sqlite' | 'postgres';

export interface RigOptions {
  /** The default is minutes, so that only a notification can have woken a reader. */
  readonly pollIntervalMs?: number | undefined;
  readonly connectionsMax?: number | undefined;
}

/** Loads only this engine, because many short processes call this function. */
export async function openEngine(
  engine: EngineName,
  url: string,
  options: RigOptions = {},
): Promise<SqliteEngine | PostgresEngine> {
  if (engine === 'sqlite') {
    const { openSqlite } = await import('../../src/engines/sqlite/open-sqlite.ts');
    return openSqlite(url, options);
  }
  const { openPostgres } = await import('../../src/engines/postgres/open-postgres.ts');
  return openPostgres(url, options);
}

/** Disposing the store closes its engine. */
export async function openStore(
  engine: EngineName,
  url: string,
  options: RigOptions = {},
): Promise<EventStore> {
  return ownedRole(await openEngine(engine, url, options), 'store');
}

export const eventTypes = ['item.created.v1', 'item.changed.v1', 'item.closed.v1'] as const;

export function streamName(id: string | number): string {
  return `rig.item.v1-core-${id}`;
}

export function newEvent(
  eventId: string,
  fields: Partial<DomainEventEnvelope> = {},
): DomainEventEnvelope {
  return {
    type: eventTypes[0],
    eventId,
    occurredAt: '2025-09-30T10:00:00.000Z',
    correlationId: eventId,
    tenant: 'core',
    aggregate: { bc: 'rig', type: 'item', id: 'i-1' },
    payload: { eventId },
    ...fields,
  };
}

export function newEvents(prefix: string, count: number): DomainEventEnvelope[] {
  return Array.from({ length: count }, (_, index) => newEvent(`${prefix}-${index}`));
}

export { soakMinutes };

/** A new seed for each run; MILLRACE_SEED repeats a failed one. */
export function newSeed(): number {
  return Number(process.env['MILLRACE_SEED'] ?? randomInt(1_000_000));
}

/** Runs one round, or rounds until the soak ends, each with a new seed. */
export async function inRounds(round: (seed: number) => Promise<void>): Promise<void> {
  const endAt = performance.now() + soakMinutes * 60_000;
  let seed = newSeed();
  do {
    await round(seed);
    seed += 1;
  } while (performance.now() < endAt);
}

/** Generous, because the machine may be busy; only failing tests wait this long. */
const deadlineMs = 180_000;

export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  limitMs = deadlineMs,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`);
    await systemClock.sleep(5);
  }
}

/** Resolves like the promise, or fails with the name of what did not happen in time. */
export async function inTime<T>(
  what: string,
  promise: PromiseLike<T>,
  limitMs = deadlineMs,
): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`not within ${limitMs} ms: ${what}`)),
    limitMs,
  );
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Recognises messages of one kind that a child process sends. */
export function messageOfKind<M extends { readonly kind: string }>() {
  return <K extends M['kind']>(kind: K) =>
    (message: unknown): message is M & { readonly kind: K } =>
      (message as M).kind === kind;
}

/** Recognises a message that equals this string. */
export function isText(text: string) {
  return (message: unknown): message is string => message === text;
}

export function assertOutage(error: unknown): void {
  assert.ok(hasCode(error, 'STORE_UNAVAILABLE') && error.retryable, String(error));
}

export async function rejection(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error('the call did not fail');
}

/** Retries during an outage, until the store works again. */
export async function retryDuringOutage<T>(work: () => Promise<T>): Promise<T> {
  let result: { readonly value: T } | undefined;
  await until('the store works again', async () => {
    try {
      result = { value: await work() };
      return true;
    } catch (error) {
      assertOutage(error);
      return false;
    }
  });
  return (result as { readonly value: T }).value;
}

export function locationOf({ eventId, stream, revision, position }: EventLocation): EventLocation {
  return { eventId, stream, revision, position };
}

export async function readLocations(store: EventStore): Promise<EventLocation[]> {
  const locations: EventLocation[] = [];
  for await (const event of store.readAll({ pageSize: 5_000 })) locations.push(locationOf(event));
  return locations;
}

export interface Workspace extends AsyncDisposable {
  readonly folder: string;
  /** All entries of the history files in the folder, client by client. */
  histories(): Promise<HistoryEntry[]>;
}

export async function createWorkspace(): Promise<Workspace> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-rig-'));
  return {
    folder,
    async histories() {
      const files = (await readdir(folder)).filter((name) => name.endsWith('.history'));
      const texts = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')));
      return texts.flatMap(parseHistory);
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true, maxRetries: 10 }),
  };
}
