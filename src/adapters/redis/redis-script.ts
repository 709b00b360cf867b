// Lua on the server: what a script does, it does alone and at once.

import { createHash } from 'node:crypto';
import type { RedisClient } from './redis-connection.ts';

export interface RedisScript {
  readonly lua: string;
  readonly sha1: string;
}

export function redisScript(lua: string): RedisScript {
  return { lua, sha1: createHash('sha1').update(lua).digest('hex') };
}

/** In milliseconds, by the server's clock. */
export const luaNow = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

type ScriptValues = readonly (string | number | Buffer)[];

/** By its hash; a server that was restarted, or never saw it, is sent the whole. */
export async function runScript(
  client: RedisClient,
  script: RedisScript,
  keys: readonly string[],
  values: ScriptValues,
): Promise<unknown> {
  const rest = [keys.length, ...keys, ...values] as const;
  return orWhole(
    () => client.evalsha(script.sha1, ...rest),
    () => client.eval(script.lua, ...rest),
  );
}

/** The same, where strings may hold any bytes. */
export async function runScriptForBytes(
  client: RedisClient,
  script: RedisScript,
  keys: readonly string[],
  values: ScriptValues,
): Promise<unknown> {
  const rest = [keys.length, ...keys, ...values] as const;
  return orWhole(
    () => client.callBuffer('evalsha', script.sha1, ...rest),
    () => client.callBuffer('eval', script.lua, ...rest),
  );
}

async function orWhole(
  byHash: () => Promise<unknown>,
  whole: () => Promise<unknown>,
): Promise<unknown> {
  try {
    return await byHash();
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    return whole();
  }
}
