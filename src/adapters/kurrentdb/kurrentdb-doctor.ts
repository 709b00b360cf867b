// Whether a KurrentDB answers, and lets us read everything.

import {
  createExaminer,
  isBroken,
  latencyFinding,
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
  await using examiner = createExaminer(
    () => connectKurrentdb(url, () => undefined),
    { timeoutMs },
    remedyOf,
  );
  const readLast = (connection: KurrentdbConnection): Promise<unknown> =>
    connection.ask((client) =>
      Array.fromAsync(client.readAll({ direction: 'backwards', fromPosition: 'end', maxCount: 1 })),
    );
  const reached = await examiner.look('reachable', async (connection) => [
    { check: 'reachable', level: 'ok', detail: `version ${await connection.ask(serverVersion)}` },
  ]);
  if (isBroken(reached)) return reached;
  return [
    ...reached,
    ...(await examiner.look('permissions', async (connection) => {
      await readLast(connection);
      return [{ check: 'permissions', level: 'ok', detail: 'it may read all streams' }];
    })),
    ...(await examiner.look('read', async (connection) => [
      latencyFinding('read', await medianMs(() => readLast(connection)), {
        slowMs: 50,
        remedy: 'Put the server nearer: every command waits for some of these.',
      }),
    ])),
  ];
}

function remedyOf(error: unknown): string | undefined {
  const text = error instanceof Error ? error.message : '';
  if (/access|unauthenticated|denied|credential/i.test(text)) {
    return 'Check user and password in the URL: kurrentdb://user:password@host:2113';
  }
  return unreachableRemedy(error);
}
