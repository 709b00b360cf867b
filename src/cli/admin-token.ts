// The admin token of the first start. Its secret stays in a file that only this user can read, and is shown on terminals only.

import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { hasCode } from '../foundation/error.ts';
import type { Tokens } from '../platform/tokens/open-tokens.ts';
import { tokenState } from '../platform/tokens/token.ts';

export interface KeptToken {
  readonly name: string;
  readonly secret: string;
  readonly file: string;
}

/** The first token of a folder whose secret is valid for this store; several stores may share a folder. */
export async function readKeptToken(
  tokens: Pick<Tokens, 'verify'>,
  folder: string,
  isOwn: (file: string) => boolean = (file) => /^admin.*\.token$/.test(file),
): Promise<KeptToken | undefined> {
  const names = await readdir(folder).catch(() => []);
  for (const file of names.filter(isOwn).map((name) => join(folder, name))) {
    const secret = (await readFile(file, 'utf8').catch(() => '')).trim();
    const verified = tokens.verify(secret);
    if (verified !== undefined) return { name: verified.token.name, secret, file };
  }
  return undefined;
}

/** Without a first token, no request could be authenticated and no token created over HTTP. */
export async function createFirstToken(
  tokens: Tokens,
  folder: string,
): Promise<{ readonly problem: string } | undefined> {
  if ((await liveTokens(tokens)).length > 0) return undefined;
  let file: string | undefined;
  try {
    // First the file: the secret of a stored token must not be lost because the folder cannot be written.
    file = await newFile(folder);
    const wanted = { name: 'admin', scopes: ['admin'], by: 'millrace start' } as const;
    const { secret } = await tokens.create(wanted);
    await writeSecret(file, secret);
    return undefined;
  } catch (error) {
    if (file !== undefined) await rm(file, { force: true });
    // Another process that started at the same time has created the token.
    if (hasCode(error, 'TOKEN_EXISTS')) return undefined;
    // KurrentDB lets only its administrators write system streams.
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

export async function liveTokens(tokens: Pick<Tokens, 'list'>): Promise<readonly object[]> {
  const nowMs = Date.now();
  return (await tokens.list()).filter((token) => tokenState(token, nowMs) === 'live');
}

/** Never replaces a file: it may be the only copy of the token of another store. */
async function newFile(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (let number = 1; ; number += 1) {
    const file = join(folder, number === 1 ? 'admin.token' : `admin-${number}.token`);
    try {
      await writeFile(file, '', { mode: 0o600, flag: 'wx' });
      return file;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
  }
}

export async function writeSecret(file: string, secret: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFile(file, `${secret}\n`, { mode: 0o600 });
}
