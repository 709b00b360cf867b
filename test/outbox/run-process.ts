// Runs `millrace outbox run` as a process, with a configuration for the test.

import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { notifyReaper } from '../../src/testing/servers/reaper.ts';
import { programPath } from '../cli-store-terminal.ts';

const source = (path: string): string => new URL(`../../src/${path}`, import.meta.url).href;

/** Sends every event to the webhook receiver. */
export async function writeConfig(
  folder: string,
  receiverUrl: string,
  { leaseMs = 60_000, bc }: { readonly leaseMs?: number; readonly bc?: string } = {},
): Promise<void> {
  await writeFile(
    join(folder, 'outbox.config.ts'),
    `import { defineOutbox } from '${source('platform/index.ts')}';
import { webhookDestination } from '${source('destinations/webhook/index.ts')}';

export default defineOutbox(({ webhookTimeoutMs }) => ({
  bc: ${JSON.stringify(bc)},
  projectors: [
    {
      name: 'sub:rig:outbox:v1',
      mapper: {
        map: ({ type, payload }) => ({
          integrationType: 'webhook:partner',
          eventType: type,
          payload: payload as { readonly eventId: string },
        }),
      },
    },
  ],
  destinations: {
    webhook: webhookDestination({
      endpoint: {
        id: 'partner',
        url: '${receiverUrl}',
        secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
      },
      allowAddresses: ['127.0.0.1/32'],
      allowHttp: true,
      timeoutMs: webhookTimeoutMs,
    }),
  },
  dispatcher: { leaseMs: ${leaseMs}, schedule: { initialMs: 10, factor: 1, capMs: 10, jitterMs: 0 } },
}));
`,
  );
}

export interface OutboxProcess {
  /** Resolves to the first log line with this message. */
  said(message: string): Promise<Readonly<Record<string, unknown>>>;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string }>;
}

export function runOutbox(
  folder: string,
  env: Readonly<Record<string, string>>,
  ...more: readonly string[]
): OutboxProcess {
  const args = [programPath, 'outbox', 'run', '--json', '--verbose', ...more];
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid = 0 } = child;
  notifyReaper({ kind: 'process', pid, signal: 'SIGKILL' });
  const lines: Readonly<Record<string, unknown>>[] = [];
  const waiting = new Map<string, (line: Readonly<Record<string, unknown>>) => void>();
  createInterface({ input: child.stdout }).on('line', (text) => {
    const line = JSON.parse(text) as Readonly<Record<string, unknown>>;
    lines.push(line);
    waiting.get(String(line['message']))?.(line);
  });
  let stderr = '';
  child.stderr.on('data', (text: Buffer) => (stderr += text.toString()));
  const ended = new Promise<{ code: number | null; stderr: string }>((resolve) => {
    child.once('close', (code) => {
      notifyReaper({ kind: 'process-ended', pid });
      resolve({ code, stderr });
    });
  });
  return {
    lines,
    ended,
    kill: (signal) => void child.kill(signal),
    async said(message) {
      const found = lines.find((line) => line['message'] === message);
      if (found !== undefined) return found;
      return Promise.race([
        new Promise<Readonly<Record<string, unknown>>>((resolve) => waiting.set(message, resolve)),
        ended.then(({ code, stderr: text }) => {
          throw new Error(`the process ended with ${code} before it logged '${message}': ${text}`);
        }),
      ]);
    },
  };
}
