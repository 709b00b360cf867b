// Lua scripts, which Redis runs atomically. They live in `.lua` files in the `scripts` folder of each role.
// A line `-- @include "<path>"` is replaced by the file at that path, relative to the including file; a file
// that several includes name is inserted once, at the first of them.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { RedisClient } from './connection.ts';

export interface RedisScript {
  readonly lua: string;
  readonly sha1: string;
}

/** Reads one script for each name: `setMode` is `set-mode.lua` in the folder. */
export function loadScripts<Name extends string>(
  folder: URL,
  names: readonly Name[],
): Readonly<Record<Name, RedisScript>> {
  const scripts = names.map((name) => {
    const file = `${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.lua`;
    return [name, loadScript(new URL(file, folder))] as const;
  });
  return Object.fromEntries(scripts) as Record<Name, RedisScript>;
}

export function loadScript(file: URL): RedisScript {
  const lua = withIncludes(file, new Set());
  return { lua, sha1: createHash('sha1').update(lua).digest('hex') };
}

function withIncludes(file: URL, included: Set<string>): string {
  if (included.has(file.href)) return '';
  included.add(file.href);
  return readFileSync(file, 'utf8').replaceAll(/^-- @include "(.+)"\n/gm, (_line, path: string) =>
    withIncludes(new URL(`${path}.lua`, file), included),
  );
}

export type ScriptValue = string | number | Buffer;

/** Runs a script by its hash, or by its source if the server does not know the hash (after a restart). */
export async function runScript(
  client: RedisClient,
  script: RedisScript,
  keys: readonly string[],
  values: readonly ScriptValue[],
  strings: 'text' | 'bytes',
): Promise<unknown> {
  const rest = [keys.length, ...keys, ...values] as const;
  const call = (command: 'evalsha' | 'eval', text: string): Promise<unknown> =>
    strings === 'text'
      ? client.call(command, text, ...rest)
      : client.callBuffer(command, text, ...rest);
  try {
    return await call('evalsha', script.sha1);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    return call('eval', script.lua);
  }
}
