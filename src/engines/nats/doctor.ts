// Checks of `doctor` for NATS: its version, JetStream, permissions and settings.

import {
  examineOver,
  isAtLeast,
  latencyOf,
  remedyBy,
  versionFinding,
  type Checks,
  type Examination,
  type Finding,
} from '../../foundation/finding.ts';
import { connectNats, type NatsConnection } from './connection/connection.ts';

const versionLeast = '2.9';
/** Older servers reject the setting `sync_interval: always`. */
const syncAlwaysFrom = '2.10';
const fullFrom = 0.8;

/** Runs only checks that read: a write test would create a stream. */
export async function examineNats(
  url: string,
  { timeoutMs }: Examination,
): Promise<readonly Finding[]> {
  const versionOf = async (connection: NatsConnection): Promise<string> =>
    (await connection.run(async (driver) => driver.info))?.version ?? '0';
  const checks: Checks<NatsConnection> = {
    reachable: async (connection) => [
      {
        check: 'reachable',
        level: 'ok',
        detail: await connection.run(async (driver) => driver.getServer()),
      },
      versionFinding('NATS', await versionOf(connection), versionLeast),
    ],
    async permissions(connection) {
      const reply = await connection.run((driver) =>
        driver.request('$JS.API.INFO', '', { timeout: timeoutMs }),
      );
      const { error, ...account } = reply.json<
        JetStreamAccount & { readonly error?: { readonly description?: string } }
      >();
      if (error !== undefined)
        throw new Error(error.description ?? 'JetStream rejected the request');
      return [
        { check: 'permissions', level: 'ok', detail: 'JetStream is allowed' },
        ...storageFindings(account),
      ];
    },
    settings: async (connection) => [syncFinding(await versionOf(connection))],
    read: (connection) =>
      latencyOf('read', () => connection.run((driver) => driver.rtt()), {
        slowMs: 20,
        remedy: 'Run NATS closer to the application: leases wait for it.',
      }),
  };
  return examineOver(() => connectNats(url, { timeoutMs }), checks, { timeoutMs, remedyOf });
}

export interface JetStreamAccount {
  readonly storage: number;
  readonly limits: { readonly max_storage: number };
}

/** A full account rejects new messages. An account without a limit is limited by the disk only. */
export function storageFindings({ storage, limits }: JetStreamAccount): readonly Finding[] {
  const { max_storage: max } = limits;
  if (max < 0) return [];
  const check = 'storage';
  const detail = `${storage} of ${max} bytes are used`;
  if (storage < max * fullFrom) return [{ check, level: 'ok', detail }];
  const remedy =
    'Raise the limit of the account, or trim the bus: a full account rejects new messages.';
  return [{ check, level: 'warning', detail, remedy }];
}

/** Warns of old servers only, because a client cannot read `sync_interval`. */
function syncFinding(version: string): Finding {
  const check = 'settings';
  return isAtLeast(version, syncAlwaysFrom)
    ? {
        check,
        level: 'unknown',
        detail: 'the sync interval of JetStream is not readable by clients',
        remedy: 'Check that it has sync_interval: always, or streams with 3 replicas.',
      }
    : {
        check,
        level: 'warning',
        detail:
          'the server acknowledges a write before it is on disk: a power failure loses the last minutes',
        remedy: `Use ${syncAlwaysFrom} with sync_interval: always, or run 3 servers.`,
      };
}

const remedyOf = remedyBy(
  [
    /authorization|authentication/i,
    'Check user and password, or the token, in the URL: nats://user:password@host:4222',
  ],
  [
    /no responders|jetstream not enabled|503/i,
    'Start the server with JetStream: nats-server --jetstream',
  ],
);
