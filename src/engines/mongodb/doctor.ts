// Checks whether a MongoDB server is reachable, writable and part of a replica set.

import type { Db } from 'mongodb';
import {
  examineOver,
  latencyOf,
  remedyBy,
  skewOf,
  versionFinding,
  type Checks,
  type Examination,
  type Finding,
} from '../../foundation/finding.ts';
import { clientUrl, connectMongodb, type MongodbConnection } from './connection.ts';

const versionLeast = '5.0';

/** Safe on a production server: it only reads. */
export async function examineMongodb(
  url: string,
  { timeoutMs, nowMs }: Examination,
): Promise<readonly Finding[]> {
  // Use a shorter limit than the doctor, because the error of the driver is more specific than a timeout.
  const selectMs = Math.min(4_000, Math.floor(timeoutMs * 0.9));
  const target = clientUrl(url, { serverSelectionTimeoutMS: String(selectMs) });
  const options = { database: undefined, connectionsMax: 1 };
  const checks: Checks<MongodbConnection> = {
    reachable: ({ db }) => reach(db),
    read: ({ db }) =>
      latencyOf('read', () => db.command({ ping: 1 }), {
        slowMs: 20,
        remedy: 'Move the database closer: every command waits for several reads.',
      }),
    'clock skew': ({ db }) =>
      skewOf(nowMs, async () => {
        const { localTime } = await db.command({ hello: 1 });
        return localTime instanceof Date ? localTime.getTime() : nowMs();
      }),
  };
  return examineOver(() => connectMongodb(target, options), checks, { timeoutMs, remedyOf });
}

async function reach(db: Db): Promise<Finding[]> {
  const { version } = await db.command({ buildInfo: 1 });
  const { isWritablePrimary, setName } = await db.command({ hello: 1 });
  const found: Finding[] = [
    { check: 'reachable', level: 'ok', detail: `database ${db.databaseName}` },
    versionFinding('MongoDB', String(version), versionLeast),
  ];
  if (isWritablePrimary !== true) {
    const detail = 'the server rejects writes: it is not the primary';
    const remedy = 'Name the whole replica set in the URL.';
    found.push({ check: 'writable', level: 'broken', detail, remedy });
  }
  if (typeof setName !== 'string') {
    const detail = 'standalone server: live readers poll, because there are no change streams';
    const remedy = 'Run it as a replica set, even with one member.';
    found.push({ check: 'settings', level: 'warning', detail, remedy });
  }
  return found;
}

const remedyOf = remedyBy([
  /authenticat|authoriz/i,
  'Check user, password and authSource in the URL.',
]);
