// Events that contain a text of a user and must outlive it: the text is encrypted with the key of the user, and the header
// `erased` has the payload without the text.

import type { ProjectedEvent } from 'millrace/projections';
import { subjectHeader } from 'millrace/store';
import { userSubject } from './user.ts';

/** Replaces a text that was erased. */
export const erasedText = '(erased)';

export function writtenBy<Event extends { readonly payload: object }>(
  { tenant, userId }: { readonly tenant: string; readonly userId: string },
  event: Event,
  erased: Partial<Event['payload']>,
): Event {
  const subject = userSubject(tenant, userId);
  return {
    ...event,
    headers: { [subjectHeader]: subject, erased: { ...event.payload, ...erased } },
  };
}

interface WithHeaders {
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
}

/** Undefined: nothing remains of an event after its text was erased. */
export function withoutText({ headers }: WithHeaders): object | undefined {
  return headers?.['erased'] as object | undefined;
}

/** Applies an event by the table of an aggregate; the compiler cannot relate each payload to its handler. */
export function evolveBy<State>(
  table: object,
  state: State,
  event: WithHeaders & { readonly type: string; readonly payload: unknown },
): State {
  const apply = table[event.type as keyof typeof table] as (
    from: State,
    payload: unknown,
    event: WithHeaders,
  ) => State;
  return apply(state, event.payload, event);
}

/** Applies what remains of an event. */
export function evolveErased<State>(
  table: object,
  state: State,
  event: WithHeaders & { readonly type: string },
): State {
  const payload = withoutText(event);
  return payload === undefined ? state : evolveBy(table, state, { ...event, payload });
}

/** Names the author for a command that copies the text of an event. */
export function authorOf({ headers }: WithHeaders, userId: string): { readonly by?: string } {
  return headers?.[subjectHeader] === undefined ? {} : { by: userId };
}

/** For `onForgotten`: applies what remains of an event by the table of the projection. */
export function applyErased<Document extends object>(
  table: object,
): (document: Document | null, event: ProjectedEvent) => Document | null {
  return (document, event) => {
    const payload = withoutText(event);
    if (payload === undefined) return document;
    // The compiler cannot relate each payload to its handler through the table.
    const apply = table[event.type as keyof typeof table] as (
      before: Document | null,
      change: ProjectedEvent,
    ) => Document | null;
    return apply(document, { ...event, payload });
  };
}
