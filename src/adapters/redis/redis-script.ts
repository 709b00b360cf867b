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

/** By its hash; a server that was restarted, or never saw it, is sent the whole. */
export async function runScript(
  client: RedisClient,
  script: RedisScript,
  keys: readonly string[],
  values: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await client.evalsha(script.sha1, keys.length, ...keys, ...values);
  } catch (error) {
    const isUnknown = error instanceof Error && error.message.startsWith('NOSCRIPT');
    if (!isUnknown) throw error;
    return client.eval(script.lua, keys.length, ...keys, ...values);
  }
}
