// Whether a KurrentDB answers, and lets us read everything.

import {
  examine,
  isBroken,
  latencyFinding,
  letGo,
  medianMs,
  unreachableRemedy,
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
  const held: { connection?: KurrentdbConnection } = {};
  const look = (check: string, work: (connection: KurrentdbConnection) => Promise<Finding[]>) =>
    examine(
      check,
      async () => work((held.connection ??= await connectKurrentdb(url, () => undefined))),
      { timeoutMs },
      remedyOf,
    );
  const readLast = (connection: KurrentdbConnection): Promise<unknown> =>
    connection.ask((client) =>
      Array.fromAsync(client.readAll({ direction: 'backwards', fromPosition: 'end', maxCount: 1 })),
    );
  try {
    const reached = await look('reachable', async (connection) => [
      { check: 'reachable', level: 'ok', detail: `version ${await connection.ask(serverVersion)}` },
    ]);
    if (isBroken(reached)) return reached;
    return [
      ...reached,
      ...(await look('permissions', async (connection) => {
        await readLast(connection);
        return [{ check: 'permissions', level: 'ok', detail: 'it may read all streams' }];
      })),
      ...(await look('read', async (connection) => [
        latencyFinding('read', await medianMs(() => readLast(connection)), {
          slowMs: 50,
          remedy: 'Put the server nearer: every command waits for some of these.',
        }),
      ])),
    ];
  } finally {
    await letGo(held.connection);
  }
}

function remedyOf(error: unknown): string | undefined {
  const text = error instanceof Error ? error.message : '';
  if (/access|unauthenticated|denied|credential/i.test(text)) {
    return 'Check user and password in the URL: kurrentdb://user:password@host:2113';
  }
  return unreachableRemedy(error);
}
