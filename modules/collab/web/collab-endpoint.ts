// From a row of the table to a route: it knows who asks, and hands its handler the rule to be obeyed.

import { buildIdempotencyKey, type NewCommand, Type } from 'millrace/contracts';
import { createIds, idFromKey } from 'millrace/foundation';
import {
  flowHeadersShown,
  flowOf,
  route,
  type Answer,
  type ApiRequest,
  type Route,
  type WebContext,
} from 'millrace/platform';
import type { Static, TObject, TSchema } from 'typebox';
import { collabErrors } from './collab-errors.ts';
import { endpoints, type EndpointName } from './endpoints.ts';
import type { WebUser, WebUsers } from './web-users.ts';

export type CommandOutcome = Awaited<ReturnType<WebContext['handle']>>;

export interface Asking<Name extends EndpointName> {
  readonly me: WebUser;
  readonly rule: (typeof endpoints)[Name]['rule'];
  /** Sends a command of this user's, as a part of the flow of the request. */
  readonly send: (wanted: {
    readonly id: string;
    readonly command: NewCommand;
    readonly key?: string | undefined;
    /** Of a command before it. */
    readonly correlationId?: string | undefined;
    readonly headers?: Readonly<Record<string, unknown>>;
  }) => Promise<CommandOutcome>;
  /** With `Idempotency-Key`, a repeat is the same command on the same id; without, each is a new one. */
  readonly newId: (operation: string) => { readonly id: string; readonly key?: string };
}

type EndpointDefinition<
  Name extends EndpointName,
  Params extends TObject,
  Query extends TObject,
  Body extends TSchema,
> = Pick<Route, 'answers' | 'description' | 'headersShown' | 'summary' | 'tag'> & {
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  handle(
    request: ApiRequest<Static<Params>, Static<Query>, Static<Body>>,
    asking: Asking<Name>,
  ): Promise<Answer>;
};

/** As ids come in; whether there is one is another question. */
export const idText = Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9._-]+$' });

export type MakeEndpoint = ReturnType<typeof createEndpointMaker>;

const ids = createIds();

export function createEndpointMaker({
  platform,
  users,
}: {
  readonly platform: Pick<WebContext, 'handle'>;
  readonly users: WebUsers;
}) {
  return <
    Name extends EndpointName,
    Params extends TObject = TObject,
    Query extends TObject = TObject,
    Body extends TSchema = TSchema,
  >(
    name: Name,
    definition: EndpointDefinition<Name, Params, Query, Body>,
  ): Route => {
    const { method, path, rule } = endpoints[name];
    return route<Params, Query, Body>({
      ...definition,
      method,
      path,
      access: 'known',
      errors: collabErrors,
      ...(method === 'GET'
        ? {}
        : { headersShown: { ...definition.headersShown, ...flowHeadersShown } }),
      async handle(request) {
        const me = await users.of(request.principal);
        return definition.handle(request, {
          me,
          rule,
          send({ id, command, key, correlationId, headers }) {
            const flow = flowOf(request);
            return platform.handle({
              ...flow,
              tenant: me.tenant,
              id,
              command,
              user: { id: me.userId },
              signal: request.signal,
              ...(key === undefined ? {} : { idempotencyKey: key }),
              ...(correlationId === undefined ? {} : { correlationId }),
              ...(headers === undefined ? {} : { headers: { ...flow.headers, ...headers } }),
            });
          },
          newId: (operation) => newId(me, request.headers['idempotency-key'], operation),
        });
      },
    });
  };
}

function newId(
  { tenant, userId }: WebUser,
  given: string | undefined,
  operation: string,
): { readonly id: string; readonly key?: string } {
  if (given === undefined) return { id: ids.next() };
  // Of one user's keys others know nothing.
  const naturalKey = `${userId}|${given}`;
  const key = buildIdempotencyKey({ tenant, service: 'collab', operation, naturalKey });
  return { id: idFromKey(key), key };
}

/** Of endpoints that use `newId`. */
export const repeatableShown = {
  'Idempotency-Key': 'A repeat under the same one gets the first answer, and makes nothing new.',
};

/** The flow that everything that follows belongs to. */
export function flowHeader({ events }: CommandOutcome): Readonly<Record<string, string>> {
  const correlationId = events[0]?.correlationId;
  return correlationId === undefined ? {} : { 'x-correlation-id': correlationId };
}
