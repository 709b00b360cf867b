// One product with every protocol, and identities of tenants that read and write through each of them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { jsonEvent, KurrentDBClient } from '@kurrent/kurrentdb-client';
import { SignJWT } from 'jose';
import { WebSocket } from 'ws';
import { notifications } from 'millrace/customers';
import { hasCode } from '../../src/foundation/error.ts';
import type { EngineUrls } from '../../src/platform/index.ts';
import type { TokenScope } from '../../src/platform/tokens/scopes.ts';
import { createAuditLog } from '../../src/platform/audit-log.ts';
import { openNtfy, startNtfyServer } from '../../src/server/topics/index.ts';
import {
  authenticateByTokens,
  kurrentStoreOptions,
  startKurrentServer,
} from '../../src/server/kurrent/index.ts';
import { openApi, type Api } from '../../src/testing/support/server/api-rig.ts';
import type { Certificate } from '../../src/testing/support/throwaway-certificate.ts';

export interface Identity {
  readonly tenant: string;
  readonly bearer: string;
  /** Absent: a JWT, which gRPC does not accept. */
  readonly grpc?: GrpcCredentials;
}

interface GrpcCredentials {
  readonly username: string;
  readonly password: string;
}

/** What a reader got; undefined: access denied. */
type Seen = readonly { readonly tenant: string }[] | undefined;

interface SocketReply {
  readonly type: string;
  readonly problem?: { readonly status: number };
}

export interface TenantRig extends AsyncDisposable {
  readonly api: Api;
  /** The URL of topics. */
  readonly topics: string;
  /** Per-call credentials. */
  readonly grpcClient: KurrentDBClient;
  /** A client whose connection has the credentials. */
  connect(identity: Identity): KurrentDBClient;
  /** Credentials of an administrator of all tenants for gRPC. */
  admin(): Promise<GrpcCredentials>;
  /** Undefined: the tenant overlaps another one. */
  token(tenant: string, scopes?: readonly TokenScope[]): Promise<Identity | undefined>;
  jwt(tenant: string, claims?: Readonly<Record<string, unknown>>): Promise<Identity>;
  readonly readers: Readonly<
    Record<string, (identity: Identity, stream: string) => Promise<Seen> | undefined>
  >;
  /** Return whether the append was accepted. */
  readonly writers: Readonly<
    Record<string, (identity: Identity, stream: string) => Promise<boolean> | undefined>
  >;
  /** All messages until the subscription has caught up or is denied. */
  overSocket(identity: Identity, subscribe: object): Promise<Seen>;
  /** The first reply to one message. */
  replyTo(identity: Identity, message: object): Promise<SocketReply>;
}

const secret = 'a shared secret of 32 bytes, at least';
const allScopes: readonly TokenScope[] = ['use', 'read', 'append', 'work', 'admin'];
let names = 0;

export async function openTenantRig(
  tls: Certificate,
  engineUrls: EngineUrls = { store: 'memory:' },
): Promise<TenantRig> {
  await using stack = new AsyncDisposableStack();
  const jwtSettings = { secret, audience: 'millrace' };
  const api = stack.use(
    await openApi({ jwt: jwtSettings }, engineUrls, [notifications()], kurrentStoreOptions),
  );
  const { tokens, engines } = api.platform;
  const server = stack.use(
    await startKurrentServer(engines.store, {
      port: 0,
      tls,
      authenticate: authenticateByTokens(tokens),
      tenants: tokens.tenants,
      audit: createAuditLog(engines.store),
    }),
  );
  const settings = { attachments: false } as const;
  const ntfy = stack.use(await openNtfy(api.platform, { settings, url: () => undefined }));
  const { url: topics } = stack.use(await startNtfyServer(ntfy));
  const url = `${server.url.replace('127.0.0.1', 'localhost')}&tlsCAFile=${tls.authorityFile}`;
  const client = KurrentDBClient.connectionString(url);
  stack.defer(() => client.dispose());

  const overSocket: TenantRig['overSocket'] = (identity, subscribe) =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${identity.bearer}` };
      const wsUrl = `${api.server.url.replace('http', 'ws')}/ws`;
      const socket = new WebSocket(wsUrl, 'millrace.v1', { headers });
      const seen: { readonly tenant: string }[] = [];
      const end = (outcome: Seen): void => {
        socket.terminate();
        resolve(outcome);
      };
      socket.on('error', reject);
      // The upgrade itself is refused.
      socket.on('unexpected-response', () => end(undefined));
      socket.on('message', (data: Buffer) => {
        const message = JSON.parse(data.toString()) as {
          readonly type: string;
          readonly event?: { readonly tenant: string };
        };
        if (message.type === 'ready') {
          socket.send(JSON.stringify({ type: 'subscribe', id: 's', ...subscribe }));
        }
        if (message.event !== undefined) seen.push(message.event);
        if (message.type === 'caughtUp') end(seen);
        if (message.type === 'problem') end(undefined);
      });
      socket.on('close', () => resolve(undefined));
    });

  const replyTo: TenantRig['replyTo'] = async ({ bearer }, message) => {
    const headers = { authorization: `Bearer ${bearer}` };
    const wsUrl = `${api.server.url.replace('http', 'ws')}/ws`;
    const socket = new WebSocket(wsUrl, 'millrace.v1', { headers });
    try {
      await once(socket, 'message');
      socket.send(JSON.stringify({ id: 'm', ...message }));
      const [data] = (await once(socket, 'message')) as [Buffer];
      return JSON.parse(data.toString()) as SocketReply;
    } finally {
      socket.terminate();
    }
  };

  const all = stack.move();
  return {
    api,
    topics,
    grpcClient: client,
    overSocket,
    replyTo,
    connect({ grpc: { username, password } = assert.fail() }) {
      const own = KurrentDBClient.connectionString(url.replace('//', `//${username}:${password}@`));
      all.defer(() => own.dispose());
      return own;
    },
    async admin() {
      const name = `i${(names += 1)}`;
      const { secret: password } = await tokens.create({ name, scopes: ['admin'] });
      return { username: name, password };
    },
    async token(tenant, scopes = allScopes) {
      const name = `i${(names += 1)}`;
      try {
        const { secret: password } = await tokens.create({ name, tenant, scopes });
        return { tenant, bearer: password, grpc: { username: name, password } };
      } catch (error) {
        assert.ok(hasCode(error, 'TENANT_OVERLAP'));
        return undefined;
      }
    },
    async jwt(tenant, claims = {}) {
      const bearer = await new SignJWT({ tenant, scope: allScopes.join(' '), ...claims })
        .setProtectedHeader({ alg: 'HS256' })
        .setSubject('ada')
        .setAudience('millrace')
        .setExpirationTime('1h')
        .sign(Buffer.from(secret));
      return { tenant, bearer };
    },
    readers: {
      async http({ bearer }, stream) {
        const answer = await api.ask(`/api/v1/streams/${stream}/events`, bearer);
        if (answer.status === 403) return undefined;
        assert.equal(answer.status, 200);
        return ((await answer.json()) as { readonly items: Seen }).items;
      },
      websocket: (identity, stream) => overSocket(identity, { stream }),
      grpc({ grpc: credentials }, stream) {
        return credentials === undefined
          ? undefined
          : denied(async () => {
              const seen: { tenant: string }[] = [];
              for await (const { event } of client.readStream(stream, { credentials })) {
                seen.push(event?.data as { tenant: string });
              }
              return seen;
            });
      },
    },
    writers: {
      async http({ bearer, tenant }, stream) {
        const events = [{ type: 'order.placed.v1', payload: { tenant } }];
        const path = `/api/v1/streams/${stream}/events`;
        const { status } = await api.post(path, { events }, bearer);
        assert.ok(status === 201 || status === 403, `${status}`);
        return status === 201;
      },
      grpc: ({ grpc: credentials, tenant }, stream) =>
        credentials === undefined
          ? undefined
          : denied(async () => {
              const event = jsonEvent({ type: 'order.placed.v1', data: { tenant } });
              await client.appendToStream(stream, [event], { credentials });
              return true;
            }).then((isDone) => isDone === true),
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Undefined: access denied. */
async function denied<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    const type = (error as { readonly type?: string }).type;
    if (type === 'stream-not-found') return [] as T;
    assert.equal(type, 'access-denied', String(error));
    return undefined;
  }
}
