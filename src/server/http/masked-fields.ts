// Fields of responses whose values come from payloads. The server masks them for callers that must not see payloads.

import type { TSchema } from 'typebox';
import { Type } from '../../contracts/type.ts';
import { MillraceError } from '../../foundation/error.ts';
import { maskedValue } from '../../platform/modules/hide-secrets.ts';
import type { Principal } from '../../platform/modules/principal.ts';
import type { Route } from '../../platform/modules/route.ts';

const mark = 'x-payload';
const maskedMessage = '(masked)';

/** A value of a payload, or made of one, such as a result. */
export const payloadValue = (): ReturnType<typeof Type.Unknown> =>
  Type.Unknown({ [mark]: 'value' });

/** The message of an error, which may quote a payload: only the status or the class of the error is shown. */
export const errorText = (description?: string): ReturnType<typeof Type.String> =>
  Type.String({ [mark]: 'error', ...(description === undefined ? {} : { description }) });

/** Free text that may quote a payload. */
export const payloadText = (description?: string): ReturnType<typeof Type.String> =>
  Type.String({ [mark]: 'value', ...(description === undefined ? {} : { description }) });

interface Marked {
  readonly [mark]?: 'error' | 'value';
  readonly anyOf?: readonly Marked[];
  readonly items?: Marked;
  readonly properties?: Readonly<Record<string, Marked>>;
}

/** The route with masked fields in its responses to callers whose payloads are masked. */
export function maskingRoute(route: Route): Route {
  const schemas = Object.values(route.responses).flatMap(({ schema = [] }) => schema as Marked);
  // A worker needs the payloads of the jobs that it has claimed.
  const marked = route.access === 'work' ? [] : schemas.filter(isMarked);
  if (marked.length === 0) return route;
  return {
    ...route,
    async handle(request) {
      const response = await route.handle(request);
      if (request.principal?.isMasked !== true || !('body' in response)) return response;
      const body = marked.reduce((value, schema) => masked(schema, value), response.body);
      return { ...response, body };
    },
  };
}

/** A value with masked fields, for responses that are not JSON bodies. */
export function maskedBy(
  schema: TSchema,
  value: unknown,
  principal: Pick<Principal, 'isMasked'> | undefined,
): unknown {
  return principal?.isMasked === true ? masked(schema, value) : value;
}

/** A caller that does not see payloads must not find their values by guessing. */
export function checkPayloadSearch(
  principal: Pick<Principal, 'isMasked'> | undefined,
  field: string,
): void {
  if (principal?.isMasked !== true) return;
  throw new MillraceError(
    'NOT_ALLOWED',
    `payloads are masked for these credentials: ${field} needs the scope 'admin'`,
    { details: { field, scope: 'admin' } },
  );
}

function isMarked({ [mark]: kind, anyOf = [], items, properties = {} }: Marked): boolean {
  const parts = [...anyOf, ...Object.values(properties), ...(items === undefined ? [] : [items])];
  return kind !== undefined || parts.some(isMarked);
}

function masked(schema: Marked, value: unknown): unknown {
  const { [mark]: kind, anyOf = [], items, properties = {} } = schema;
  if (value === undefined || value === null) return value;
  if (kind === 'error' && typeof value === 'string') return maskedError(value);
  if (kind !== undefined) return maskedValue(value);
  if (Array.isArray(value)) {
    return items === undefined || !isMarked(items)
      ? value
      : value.map((item) => masked(items, item));
  }
  const either = anyOf.reduce<unknown>((given, each) => masked(each, given), value);
  if (typeof either !== 'object' || either === null) return either;
  const changed = Object.entries(properties).flatMap(([name, property]) =>
    Object.hasOwn(either, name) && isMarked(property)
      ? [[name, masked(property, (either as Readonly<Record<string, unknown>>)[name])] as const]
      : [],
  );
  return changed.length === 0 ? either : { ...either, ...Object.fromEntries(changed) };
}

/** The message of an error for a caller whose payloads are masked; `name` says more than no message. */
export function shownError(
  principal: Pick<Principal, 'isMasked'> | undefined,
  { error, name }: { readonly error: string; readonly name: string | undefined },
): string {
  if (principal?.isMasked !== true) return error;
  const text = maskedError(error);
  return text === maskedMessage && name !== undefined ? `${name}: ${text}` : text;
}

function maskedError(error: string): string {
  const [known] = /^(?:HTTP \d{3}|\w*(?:Error|Exception))(?=: |$)/.exec(error) ?? [];
  if (known === undefined) return maskedMessage;
  return known === error ? error : `${known}: ${maskedMessage}`;
}
