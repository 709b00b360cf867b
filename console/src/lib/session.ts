// Who is signed in, and what the server allows them.

import { createContext, use } from 'react';
import type { ResponseOf, RouteName } from './api.ts';

export type Session = NonNullable<ResponseOf<'GET /console/session'>['session']>;

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = use(SessionContext);
  if (session === undefined) throw new Error('no session');
  return session;
}

/** Whether the scopes of the session allow a route. The server checks each request as well. */
export function allows(session: Session, route: RouteName): boolean {
  return session.may.includes(route);
}
