// How the bus asks Redis: scripts whose answers stay bytes, and errors in the words of the bus.

import { hasCode, MillraceError } from '../../foundation/error.ts';
import type { RedisClient, RedisConnection } from './redis-connection.ts';
import { runScriptForBytes, type RedisScript } from './redis-script.ts';

export type ScriptValue = string | number | Buffer;

export interface BusCalls {
  readonly client: RedisClient;
  ask<T>(call: (client: RedisClient) => Promise<T>): Promise<T>;
  /** Bulk strings come as buffers. */
  run(
    script: RedisScript,
    keys: readonly string[],
    values: readonly ScriptValue[],
  ): Promise<unknown>;
}

export function createBusCalls(connection: RedisConnection): BusCalls {
  async function ask<T>(call: (client: RedisClient) => Promise<T>): Promise<T> {
    try {
      return await connection.ask(call);
    } catch (error) {
      throw busError(error);
    }
  }
  return {
    client: connection.client,
    ask,
    run: (script, keys, values) => ask((client) => runScriptForBytes(client, script, keys, values)),
  };
}

export function busError(error: unknown): unknown {
  if (hasCode(error, 'STORE_CLOSED')) return new MillraceError('BUS_CLOSED', 'the bus was closed');
  if (!(error instanceof MillraceError) || error.code !== 'STORE_UNAVAILABLE') return error;
  const { message, retryable, details } = error;
  return new MillraceError('BUS_UNAVAILABLE', message, { cause: error, retryable, details });
}

export function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString() : String(value);
}

/** Some at once: a cluster has no command for many streams. */
export async function eachOf<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  atOnce = 32,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += atOnce) {
    results.push(...(await Promise.all(items.slice(at, at + atOnce).map(work))));
  }
  return results;
}
