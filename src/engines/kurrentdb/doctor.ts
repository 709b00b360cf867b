// Checks whether a KurrentDB server is reachable and permits reading all streams.

import {
  examineOver,
  latencyOf,
  remedyBy,
  type Checks,
  type Examination,
  type Finding,
} from '../../foundation/finding.ts';
import { serverVersion } from './client.ts';
import { connectKurrentdb, type KurrentdbConnection } from './connection.ts';

/** Safe on a production server: it only reads. */
export async function examineKurrentdb(
  url: string,
  { timeoutMs }: Examination,
): Promise<readonly Finding[]> {
  const readLast = (connection: KurrentdbConnection): Promise<unknown> =>
    connection.use((client) =>
      Array.fromAsync(client.readAll({ direction: 'backwards', fromPosition: 'end', maxCount: 1 })),
    );
  const checks: Checks<KurrentdbConnection> = {
    async reachable(connection) {
      const detail = `version ${await connection.use(serverVersion)}`;
      return [{ check: 'reachable', level: 'ok', detail }];
    },
    async permissions(connection) {
      await readLast(connection);
      return [{ check: 'permissions', level: 'ok', detail: 'the user may read all streams' }];
    },
    read: (connection) =>
      latencyOf('read', () => readLast(connection), {
        slowMs: 50,
        remedy: 'Move the server closer: every command waits for several reads.',
      }),
  };
  return examineOver(() => connectKurrentdb(url, () => undefined), checks, { timeoutMs, remedyOf });
}

const remedyOf = remedyBy([
  /access|unauthenticated|denied|credential/i,
  'Check user and password in the URL: kurrentdb://user:password@host:2113',
]);
