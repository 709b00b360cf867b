// Whether a NATS can keep leases and the bus: its version, JetStream, and whether we may use it.

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
/** Before it, a server refuses the setting. */
const syncAlwaysFrom = '2.10';
const fullFrom = 0.8;

/** Asks only: whatever it wrote would be a stream. */
export async function examineNats(
  url: string,
  { timeoutMs }: Examination,
): Promise<readonly Finding[]> {
  const versionOf = async (connection: NatsConnection): Promise<string> =>
    (await connection.ask(async (driver) => driver.info))?.version ?? '0';
  const checks: Checks<NatsConnection> = {
    reachable: async (connection) => [
      {
        check: 'reachable',
        level: 'ok',
        detail: await connection.ask(async (driver) => driver.getServer()),
      },
      versionFinding('NATS', await versionOf(connection), versionLeast),
    ],
    async permissions(connection) {
      const answer = await connection.ask((driver) =>
        driver.request('$JS.API.INFO', '', { timeout: timeoutMs }),
      );
      const { error, ...account } = answer.json<
        JetStreamAccount & { readonly error?: { readonly description?: string } }
      >();
      if (error !== undefined) throw new Error(error.description ?? 'JetStream refuses');
      return [
        { check: 'permissions', level: 'ok', detail: 'it may use JetStream' },
        ...storageFindings(account),
      ];
    },
    settings: async (connection) => [syncFinding(await versionOf(connection))],
    read: (connection) =>
      latencyOf('read', () => connection.ask((driver) => driver.rtt()), {
        slowMs: 20,
        remedy: 'Put the NATS nearer: leases wait for it.',
      }),
  };
  return examineOver(() => connectNats(url, { timeoutMs }), checks, { timeoutMs, remedyOf });
}

export interface JetStreamAccount {
  readonly storage: number;
  readonly limits: { readonly max_storage: number };
}

/** Nothing is dropped when it is full: the bus takes no more. Without a limit there is the disk. */
export function storageFindings({ storage, limits }: JetStreamAccount): readonly Finding[] {
  const { max_storage: most } = limits;
  if (most < 0) return [];
  const check = 'storage';
  const detail = `${storage} of ${most} bytes are used`;
  if (storage < most * fullFrom) return [{ check, level: 'ok', detail }];
  const remedy =
    'Give the account more, or trim the bus: who publishes is refused when it is full.';
  return [{ check, level: 'warning', detail, remedy }];
}

/** No client can ask for it. */
function syncFinding(version: string): Finding {
  const check = 'settings';
  return isAtLeast(version, syncAlwaysFrom)
    ? {
        check,
        level: 'unknown',
        detail: 'how often JetStream syncs cannot be asked',
        remedy: 'See that it has sync_interval: always, or streams with 3 replicas.',
      }
    : {
        check,
        level: 'warning',
        detail: 'it confirms before the disk has it: a power loss takes the last minutes with it',
        remedy: `Take ${syncAlwaysFrom} with sync_interval: always, or run 3 servers.`,
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
