// An HTTP server in a separate process, and fifty connections to it.

import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { startChild } from '../../src/testing/child-process.ts';

export const connections = 50;

export interface ServedHttpInput {
  /** The file of the database. */
  readonly file: string;
}

export interface ServedHttpMessage {
  readonly kind: 'listening';
  readonly port: number;
  readonly token: string;
}

export interface ServedHttp {
  /** Any status except 200 and 201 is an error. */
  readonly call: (method: 'GET' | 'POST', path: string, body?: object) => Promise<unknown>;
  /** The memory after garbage collection. */
  readonly rssMiB: () => Promise<number>;
  readonly close: () => Promise<void>;
}

export async function startServedHttp(script: URL, input: ServedHttpInput): Promise<ServedHttp> {
  const child = startChild(script, { input, nodeFlags: ['--expose-gc'] });
  const { port, token } = await child.message(
    (message): message is ServedHttpMessage => (message as ServedHttpMessage).kind === 'listening',
  );
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'x-tenant-id': 'core',
  };
  return {
    call: (method, path, body) =>
      new Promise((resolve, reject) => {
        const sent = request(
          { host: '127.0.0.1', port, agent, method, path, headers },
          (response) => {
            let text = '';
            response.setEncoding('utf8').on('data', (part: string) => (text += part));
            response.on('error', reject).on('end', () => {
              const { statusCode } = response;
              if (statusCode === 200 || statusCode === 201) resolve(JSON.parse(text));
              else reject(new Error(`${method} ${path}: ${statusCode} ${text}`));
            });
          },
        );
        sent.on('error', reject);
        sent.end(body === undefined ? undefined : JSON.stringify(body));
      }),
    async rssMiB() {
      child.send({ kind: 'collect' });
      await child.message(
        (message): message is object => (message as { kind: string }).kind === 'collected',
      );
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
      return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1_024;
    },
    async close() {
      agent.destroy();
      await child.kill();
    },
  };
}
