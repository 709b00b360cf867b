// Whether a MongoDB answers, takes writes, and is more than one server.

import type { Db } from 'mongodb';
import {
  createExaminer,
  isBroken,
  latencyFinding,
  medianMs,
  skewFinding,
  unreachableRemedy,
  versionFinding,
  type Examination,
  type Finding,
} from '../../foundation/finding.ts';
import { clientUrl, connectMongodb } from './mongodb-connection.ts';

const versionLeast = '5.0';

/** Asks only. */
export async function examineMongodb(
  url: string,
  { timeoutMs, nowMs }: Examination,
): Promise<readonly Finding[]> {
  // The driver's own words tell more than that our time is up.
  const selectMs = Math.min(4_000, Math.floor(timeoutMs * 0.9));
  const target = clientUrl(url, { serverSelectionTimeoutMS: String(selectMs) });
  const options = { database: undefined, connectionsMax: 1 };
  await using examiner = createExaminer(
    () => connectMongodb(target, options),
    { timeoutMs },
    remedyOf,
  );
  const reached = await examiner.look('reachable', ({ db }) => reach(db));
  if (isBroken(reached)) return reached;
  return [
    ...reached,
    ...(await examiner.look('read', async ({ db }) => [
      latencyFinding('read', await medianMs(() => db.command({ ping: 1 })), {
        slowMs: 20,
        remedy: 'Put the database nearer: every command waits for some of these.',
      }),
    ])),
    ...(await examiner.look('clock skew', async ({ db }) => {
      const beforeMs = nowMs();
      const { localTime } = await db.command({ hello: 1 });
      const serverMs = localTime instanceof Date ? localTime.getTime() : beforeMs;
      return [skewFinding({ beforeMs, serverMs, afterMs: nowMs() })];
    })),
  ];
}

async function reach(db: Db): Promise<Finding[]> {
  const { version } = await db.command({ buildInfo: 1 });
  const { isWritablePrimary, setName } = await db.command({ hello: 1 });
  return [
    { check: 'reachable', level: 'ok', detail: `database ${db.databaseName}` },
    versionFinding('MongoDB', String(version), versionLeast),
    ...(isWritablePrimary === true
      ? []
      : [
          {
            check: 'writable',
            level: 'broken',
            detail: 'the server that answers takes no writes',
            remedy: 'Name the whole replica set in the URL.',
          } as const,
        ]),
    ...(typeof setName === 'string'
      ? []
      : [
          {
            check: 'settings',
            level: 'warning',
            detail: 'it is a single server: live readers look for events instead of being told',
            remedy: 'Run it as a replica set, even of one.',
          } as const,
        ]),
  ];
}

function remedyOf(error: unknown): string | undefined {
  const text = error instanceof Error ? error.message : '';
  if (/authenticat|authoriz/i.test(text)) return 'Check user, password and authSource in the URL.';
  return unreachableRemedy(error);
}
