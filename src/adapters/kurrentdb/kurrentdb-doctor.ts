// Whether a KurrentDB answers, and lets us read everything.

import {
  examineOver,
  latencyOf,
  remedyBy,
  type Checks,
  type Examination,
  type Finding,
} from '../../foundation/finding.ts';
import { serverVersion } from './kurrentdb-client.ts';
import { connectKurrentdb, type KurrentdbConnection } from './kurrentdb-connection.ts';

/** Reads only. */
export async function examineKurrentdb(
  url: string,
  { timeoutMs }: Examination,
): Promise<readonly Finding[]> {
  const readLast = (connection: KurrentdbConnection): Promise<unknown> =>
    connection.ask((client) =>
      Array.fromAsync(client.readAll({ direction: 'backwards', fromPosition: 'end', maxCount: 1 })),
    );
  const checks: Checks<KurrentdbConnection> = {
    reachable: async (connection) => [
      { check: 'reachable', level: 'ok', detail: `version ${await connection.ask(serverVersion)}` },
    ],
    async permissions(connection) {
      await readLast(connection);
      return [{ check: 'permissions', level: 'ok', detail: 'it may read all streams' }];
    },
    read: (connection) =>
      latencyOf('read', () => readLast(connection), {
        slowMs: 50,
        remedy: 'Put the server nearer: every command waits for some of these.',
      }),
  };
  return examineOver(() => connectKurrentdb(url, () => undefined), checks, { timeoutMs, remedyOf });
}

const remedyOf = remedyBy([
  /access|unauthenticated|denied|credential/i,
  'Check user and password in the URL: kurrentdb://user:password@host:2113',
]);
