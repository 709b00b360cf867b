// The messages of a WebSocket as schemas: they validate incoming messages, and document both directions.

import type { Static, TObject, TProperties, TSchema } from 'typebox';
import { Type } from '../../contracts/type.ts';
import { MillraceError } from '../../foundation/error.ts';
import { parseJson } from '../../foundation/parse-json.ts';
import type { ModuleSocket } from '../../platform/modules/module-web.ts';
import type { Access } from '../../platform/modules/principal.ts';
import { checked } from './read-inputs.ts';

function message<const Name extends string, Properties extends TProperties>(
  type: Name,
  properties: Properties,
) {
  return Type.Object(
    { type: Type.Literal(type), ...properties },
    { additionalProperties: false, title: type },
  );
}

const id = Type.String({
  minLength: 1,
  maxLength: 100,
  description: 'Chosen by the client; the response has the same id.',
});
const short = Type.Optional(Type.String({ maxLength: 400 }));
/** A string that HTTP headers allow. */
const header = Type.Optional(Type.String({ maxLength: 400, pattern: '^[\\x20-\\x7e]+$' }));
const tenant = Type.Optional(
  Type.String({ maxLength: 100, description: 'Required if the token is for all tenants.' }),
);

const incoming = {
  auth: message('auth', {
    token: Type.String({ maxLength: 10_000, description: 'An API key or a JWT.' }),
  }),
  subscribe: message('subscribe', {
    id,
    stream: Type.Optional(
      Type.String({ maxLength: 400, description: 'Default: all streams that match the filter.' }),
    ),
    after: Type.Optional(
      Type.String({
        maxLength: 40,
        description:
          "A position; of a stream, a revision; or 'end'. Default: from the first event.",
      }),
    ),
    types: Type.Optional(Type.Array(Type.String({ maxLength: 400 }), { maxItems: 1_000 })),
    typePrefix: short,
    category: short,
    tenant,
  }),
  unsubscribe: message('unsubscribe', { id }),
  command: message('command', {
    id,
    command: Type.String({
      maxLength: 400,
      description: 'The command type, such as account.deposit.',
    }),
    aggregate: Type.Optional(
      Type.String({
        maxLength: 400,
        description:
          'The category of the aggregate, if several accept the command: banking.account.v2.',
      }),
    ),
    aggregateId: short,
    payload: Type.Unknown(),
    expected: Type.Optional(
      Type.Union([Type.Integer({ minimum: 0 }), Type.Literal('none'), Type.Literal('exists')]),
    ),
    idempotencyKey: header,
    correlationId: header,
    tenant,
  }),
  query: message('query', {
    id,
    bc: Type.String({ maxLength: 100 }),
    aggregate: Type.String({ maxLength: 100 }),
    documentId: Type.Optional(
      Type.String({ maxLength: 400, description: 'Default: a page, like GET /api/v1/documents.' }),
    ),
    query: Type.Optional(
      Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
        description: 'set, index, value, range, from, to, limit, cursor, waitFor, waitMs',
      }),
    ),
    tenant,
  }),
} as const;

/** What the sender of a message needs. The scope of a `command` is that of its HTTP route. */
export const wsMessageAccess: Readonly<Record<keyof typeof incoming, Access | 'command'>> = {
  auth: 'anonymous',
  subscribe: 'read',
  unsubscribe: 'read',
  command: 'command',
  query: 'read',
};

/** What all messages of modules need; the module has its own rules in addition. */
export const moduleMessageAccess: Access = 'use';

export type WsMessage = { [Name in keyof typeof incoming]: Static<(typeof incoming)[Name]> };
export type AnyWsMessage = WsMessage[keyof WsMessage];

const outgoing: readonly TObject[] = [
  message('ready', {
    name: Type.String(),
    scopes: Type.Array(Type.String()),
    tenant: Type.Optional(Type.String()),
  }),
  message('subscribed', { id }),
  message('event', { id, event: Type.Unknown() }),
  message('caughtUp', { id, position: Type.String() }),
  message('fellBehind', { id, position: Type.String() }),
  message('checkpoint', { id, position: Type.String() }),
  message('unsubscribed', { id }),
  message('result', { id, result: Type.Unknown() }),
  message('problem', { id: Type.Optional(id), problem: Type.Unknown() }),
];

/** The messages of both directions, for the reference. */
export function wsMessages(sockets: readonly ModuleSocket[]): TSchema {
  const theirs = sockets.flatMap(({ messages }) => described(messages, moduleMessage));
  const sent = sockets.flatMap(({ sends }) => described(sends, message));
  return closedPair({
    toServer: Type.Union([...Object.values(incoming), ...theirs]),
    toClient: Type.Union([...outgoing, ...sent]),
  });
}

function described(
  messages: ModuleSocket['messages'],
  toSchema: (type: string, properties: TProperties) => TObject,
): TObject[] {
  return Object.entries(messages).map(([type, { properties }]) => toSchema(type, properties));
}

function moduleMessage(type: string, properties: TProperties): TObject {
  return message(type, { id: Type.Optional(id), ...properties });
}

/** A message of a module: its socket and its schema. */
export interface ModuleMessage {
  readonly socket: ModuleSocket;
  readonly schema: TObject;
}

/** Each type belongs to the server or to one module. */
export function moduleMessages(
  sockets: readonly ModuleSocket[],
): ReadonlyMap<string, ModuleMessage> {
  const found = new Map<string, ModuleMessage>();
  for (const socket of sockets) {
    for (const [type, { properties }] of Object.entries(socket.messages)) {
      if (Object.hasOwn(incoming, type) || found.has(type)) {
        throw new MillraceError('CONFIG_INVALID', `duplicate message type '${type}'`, {
          details: { field: 'modules', message: type },
        });
      }
      found.set(type, { socket, schema: moduleMessage(type, properties) });
    }
  }
  return found;
}

function closedPair(pair: TProperties): TSchema {
  return Type.Object(pair, { title: 'WebSocketMessages', additionalProperties: false });
}

type Checked =
  | { readonly ours: AnyWsMessage }
  | { readonly theirs: { readonly type: string }; readonly socket: ModuleSocket };

/** Returns id and owner also for an invalid message, because the sender needs the id in the error. */
export function readMessage(
  text: string,
  modules: ReadonlyMap<string, ModuleMessage>,
): {
  readonly id: string | undefined;
  readonly socket: ModuleSocket | undefined;
  readonly check: () => Checked;
} {
  const value = parse(text);
  const { id: given, type } = (value ?? {}) as Readonly<Record<string, unknown>>;
  const theirs = typeof type === 'string' ? modules.get(type) : undefined;
  return {
    id: typeof given === 'string' && given.length <= 100 ? given : undefined,
    socket: theirs?.socket,
    check() {
      if (theirs !== undefined) {
        const content = checked('message', theirs.schema, value) as { readonly type: string };
        return { theirs: content, socket: theirs.socket };
      }
      if (typeof type !== 'string' || !Object.hasOwn(incoming, type)) {
        const sent = typeof type === 'string' ? ` '${type.slice(0, 100)}'` : '';
        const names = [...Object.keys(incoming), ...modules.keys()].join(', ');
        throw new MillraceError('REQUEST_INVALID', `unknown message type${sent}; known: ${names}`, {
          details: { field: 'type' },
        });
      }
      const schema = incoming[type as keyof WsMessage];
      return { ours: checked('message', schema, value) as AnyWsMessage };
    },
  };
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    const reason = error instanceof RangeError ? error.message : 'not JSON';
    throw new MillraceError('REQUEST_INVALID', `the message is ${reason}`, { cause: error });
  }
}
