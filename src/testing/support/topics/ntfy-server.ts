// A throwaway ntfy server, from the program that tools/engines.ts downloaded.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { launchServer } from '../../servers/launch-server.ts';
import type { ServerProcess } from '../../servers/server-process.ts';
import { rules, tokens, users } from './ntfy-server-facts.ts';

export interface NtfyServerProcess extends ServerProcess {
  readonly url: string;
}

const fetched = fileURLToPath(
  new URL('../../../../.millrace/engines/ntfy/usr/bin/ntfy', import.meta.url),
);

/** Undefined if ntfy was not downloaded. */
export function ntfyProgram(): string | undefined {
  const path = process.env['MILLRACE_ENGINE_NTFY'] ?? fetched;
  return existsSync(path) ? path : undefined;
}

const run = promisify(execFile);

/** Starts ntfy without rate limits, with the users and access rules of the cases. */
export async function startNtfy(
  program: string,
  more: readonly string[] = [],
): Promise<NtfyServerProcess> {
  const known = await Promise.all(
    users.map(async (user) => ({ ...user, hash: await hashOf(program, user.password) })),
  );
  const server = await launchServer({ startTimeoutMs: 30_000 }, async ({ folder, port }) => {
    const config = join(folder, 'server.yml');
    const listed = (name: string, values: readonly string[]): readonly string[] => [
      `${name}:`,
      ...values.map((value) => `  - '${value}'`),
    ];
    const lines = [
      `base-url: http://127.0.0.1:${port}`,
      `listen-http: 127.0.0.1:${port}`,
      `cache-file: ${join(folder, 'cache.db')}`,
      `attachment-cache-dir: ${join(folder, 'attachments')}`,
      'attachment-file-size-limit: "1000000"',
      `auth-file: ${join(folder, 'user.db')}`,
      'auth-default-access: read-write',
      ...listed(
        'auth-users',
        known.map(({ name, hash, role }) => `${name}:${hash}:${role}`),
      ),
      ...listed(
        'auth-tokens',
        tokens.map(({ user, token }) => `${user}:${token}`),
      ),
      ...listed(
        'auth-access',
        rules.map((each) => `${each.user}:${each.topic}:${each.permission}`),
      ),
      'visitor-request-limit-exempt-hosts: "127.0.0.1"',
      'visitor-topic-creation-limit-burst: 100000',
      'visitor-subscription-limit: 100000',
      'log-level: warn',
      ...more,
    ];
    await writeFile(config, `${lines.join('\n')}\n`);
    return {
      name: 'ntfy',
      program,
      args: ['serve', '--config', config],
      stopSignal: 'SIGTERM',
      discardSignal: 'SIGKILL',
      isReady: () => answers(`http://127.0.0.1:${port}/v1/health`),
    };
  });
  return Object.assign(server, { url: `http://${server.host}:${server.port}` });
}

/** `ntfy user hash` asks for the password twice. */
async function hashOf(program: string, password: string): Promise<string> {
  const hashing = run(program, ['user', 'hash']);
  hashing.child.stdin?.end(`${password}\n${password}\n`);
  const { stdout } = await hashing;
  return /\$2[aby]\$\S+/.exec(stdout)?.[0] ?? '';
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}
