// What the bus and the tasks share: how they open a connection, run scripts and name their errors.

import type { Clock } from '../../../foundation/clock.ts';
import { hasCode, MillraceError } from '../../../foundation/error.ts';
import type { Observer } from '../../../foundation/observer.ts';
import { connectRedis, type RedisClient, type RedisConnection } from './connection.ts';
import { readRedisRisks } from './risks.ts';
import { runScript, runScriptForBytes, type RedisScript } from './script.ts';

const engines = {
  bus: {
    unavailable: 'BUS_UNAVAILABLE',
    closed: 'BUS_CLOSED',
    closedText: 'the bus was closed',
    warning: 'Redis may lose confirmed messages',
  },
  tasks: {
    unavailable: 'TASKS_UNAVAILABLE',
    closed: 'TASKS_CLOSED',
    closedText: 'the tasks were closed',
    warning: 'Redis may lose confirmed jobs',
  },
} as const;

type EngineName = keyof typeof engines;

export interface EngineOptions {
  readonly observer?: Observer | undefined;
  readonly clock?: Clock | undefined;
  readonly timeoutMs?: number | undefined;
}

/** Connects, warns of settings that may lose data, and closes the connection if `create` throws. */
export async function openEngine<T>(
  engine: EngineName,
  target: string | RedisClient,
  { observer, clock, timeoutMs }: EngineOptions,
  create: (connection: RedisConnection, calls: EngineCalls) => T,
): Promise<T> {
  if (typeof target !== 'string' && (target.options.keyPrefix ?? '') !== '') {
    const text = `the keyPrefix of the client does not apply to keys inside scripts: pass keyPrefix to the ${engine} instead`;
    throw new MillraceError('CONFIG_INVALID', text, { details: { field: 'keyPrefix' } });
  }
  const connection = await connectEngine(engine, target, { observer, clock, timeoutMs });
  try {
    const risks = (await readRedisRisks(connection)) ?? [];
    if (risks.length > 0) {
      const settings = risks.map(({ setting }) => setting).join(', ');
      observer?.log?.warn({ settings }, engines[engine].warning);
    }
    return create(connection, createCalls(engine, connection));
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw engineError(engine, error);
  }
}

export async function connectEngine(
  engine: EngineName,
  target: string | RedisClient,
  options: EngineOptions = {},
): Promise<RedisConnection> {
  try {
    return await connectRedis(target, options);
  } catch (error) {
    throw engineError(engine, error);
  }
}

export type ScriptValue = string | number | Buffer;

type RunScript = (
  script: RedisScript,
  keys: readonly string[],
  values: readonly ScriptValue[],
) => Promise<unknown>;

export interface EngineCalls {
  readonly client: RedisClient;
  ask<T>(call: (client: RedisClient) => Promise<T>): Promise<T>;
  /** Returns bulk strings as buffers. */
  readonly run: RunScript;
  /** Returns bulk strings as text. */
  readonly runText: RunScript;
}

export function createCalls(engine: EngineName, connection: RedisConnection): EngineCalls {
  const ask: EngineCalls['ask'] = async (call) => {
    try {
      return await connection.ask(call);
    } catch (error) {
      throw engineError(engine, error);
    }
  };
  return {
    client: connection.client,
    ask,
    run: (script, keys, values) => ask((client) => runScriptForBytes(client, script, keys, values)),
    runText: (script, keys, values) => ask((client) => runScript(client, script, keys, values)),
  };
}

function engineError(engine: EngineName, error: unknown): unknown {
  const { closed, closedText, unavailable } = engines[engine];
  if (hasCode(error, 'STORE_CLOSED')) return new MillraceError(closed, closedText);
  if (!(error instanceof MillraceError) || error.code !== 'STORE_UNAVAILABLE') return error;
  const { message, retryable, details } = error;
  return new MillraceError(unavailable, message, { cause: error, retryable, details });
}

export function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString() : String(value);
}

/** Runs a bounded number of calls concurrently, because a cluster has no command over many streams. */
export async function eachOf<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  concurrency = 32,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += concurrency) {
    results.push(...(await Promise.all(items.slice(at, at + concurrency).map(work))));
  }
  return results;
}
