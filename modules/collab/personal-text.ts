// Events that contain a text of a user and must outlive it: the text is encrypted with the key of the user, and the header
// `erased` has the payload without the text.

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

/** Names the author for a command that copies the text of an event. */
export function authorOf({ headers }: WithHeaders, userId: string): { readonly by?: string } {
  return headers?.[subjectHeader] === undefined ? {} : { by: userId };
}
